"""The files of a lake's tables; of each there is a copy of all that it ever held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mv_assets.tables.parquet.examine import _checksum
from mv_assets_tests.support.lake import EPOCH


@dataclass(frozen=True)
class Version:
    """What a file held at a time; from its first to its last millisecond, or None if no row has a time."""

    table: str
    name: str
    crc: int
    content: bytes = field(repr=False, compare=False)
    rows: pa.Table = field(repr=False, compare=False)
    span: tuple[int, int] | None

    def __str__(self) -> str:
        return f"{self.table}/{self.name}"

    @classmethod
    def of(cls, table: str, name: str, rows: pa.Table) -> Version:
        out = pa.BufferOutputStream()
        pq.write_table(rows, out)
        content = out.getvalue().to_pybytes()
        crc, _ = _checksum(pa.BufferReader(content), len(content))
        return cls(table, name, crc, content, rows, _span(rows) if "at" in rows.column_names else None)


def _span(rows: pa.Table) -> tuple[int, int] | None:
    ends = pc.min_max(rows["at"]).as_py()
    if ends["min"] is None:
        return None
    low, high = ((ends[end] - EPOCH) // timedelta(milliseconds=1) for end in ("min", "max"))
    return low, high


class Files:
    """All tables of a lake, on the disk as here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.now: dict[tuple[str, str], Version] = {}
        self._ever: dict[tuple[str, str, int], Version] = {}

    def put(self, table: str, name: str, rows: pa.Table) -> Version:
        """Write a file anew, as a writer that replaces it."""
        made = Version.of(table, name, rows)
        self.restore(made)
        return made

    def restore(self, version: Version) -> None:
        """Have a file hold again what it once did; as another object, if it does already."""
        path = self._folder / version.table / version.name
        path.with_suffix(".tmp~").write_bytes(version.content)
        path.with_suffix(".tmp~").replace(path)
        self.now[version.table, version.name] = version
        self._ever[version.table, version.name, version.crc] = version

    def remove(self, version: Version) -> None:
        (self._folder / version.table / version.name).unlink()
        del self.now[version.table, version.name]

    def of(self, table: str) -> list[Version]:
        """What a table holds now."""
        return [version for (each, _), version in sorted(self.now.items()) if each == table]

    def once(self, table: str, name: str, crc: int) -> Version:
        """What a file held when it had that checksum."""
        return self._ever[table, name, crc]

    def ever(self, table: str) -> Iterator[Version]:
        return (version for (each, _, _), version in self._ever.items() if each == table)

    def end(self, table: str) -> int:
        """The last millisecond of a table."""
        return max(version.span[1] for version in self.of(table) if version.span is not None)


def concatenated(versions: Sequence[Version], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([version.rows for version in versions] or [schema.empty_table()])


Contents = Mapping[str, frozenset[Version]]
