"""A Delta table whose columns have other names in its files; by hand, as the library does not write such."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets_tests.proof.lakehouse.delta import DeltaHistory, File
from mv_assets_tests.proof.lakehouse.rows import AT, GROUP, SCHEMA, Row
from mv_assets_tests.unit.tables.delta import log

_TYPES = {"timestamp": AT, "long": pa.int64(), "integer": pa.int32(), "string": pa.string()}


class MappedDeltaHistory(DeltaHistory):
    """Its columns are renamed, dropped, added again and widened; a file is read by the numbers it has."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self._numbers, self._names = count(1), count()
        self._columns: dict[str, tuple[int, str]] = {}
        # Files of each version that was committed: what they are, and the vectors they had.
        self._known: list[dict[str, log.Action]] = []
        super().__init__(root, chance)

    def create(self) -> None:
        kinds = {"at": "timestamp", "id": "long", "x": "string", "v": "integer", "c": "long"}
        self._columns = {name: (next(self._numbers), kind) for name, kind in kinds.items()}
        log.commit(
            self.root, log.protocol("deletionVectors", "columnMapping", "typeWidening"), self._metadata()
        )

    @property
    def steps(self) -> dict[Callable[[], object], int]:
        return {
            self.append: 4, self.late: 4, self.delete: 2, self.overwrite: 1, self.restore: 2,
            self.add_column: 1, self.rename_column: 1, self.replace_column: 1, self.drop_column: 1,
            self.widen: 1, self.compact: 3, self.commit_nothing: 1, self.vector: 6, self.two_vectors: 2,
            self.other_vector: 2, self.without_vector: 2,
        }  # fmt: skip

    def seen(self, row: Row, file: File) -> Row:  # noqa: ARG002 - it has no partitions
        return {name: row.get(_inside(self._columns[name][0])) for name in SCHEMA.names}

    def files(self) -> list[File]:
        """By the log and what was written: the library does not read tables with widened types."""
        listed: dict[str, log.Action] = {}
        for version in sorted((self.root / "_delta_log").glob("0*.json")):
            actions = [json.loads(line) for line in version.read_text().splitlines()]
            gone = {action["remove"]["path"] for action in actions if "remove" in action}
            listed = {path: each for path, each in listed.items() if path not in gone}
            listed |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
        return [File(path, self._places(each), {}) for path, each in sorted(listed.items())]

    def _places(self, added: log.Action) -> list[int]:
        vector = added.get("deletionVector")
        return [] if vector is None else self.vectors[vector["pathOrInlineDv"], vector.get("offset")]

    def write(self, rows: list[Row]) -> object:
        log.commit(self.root, self._add(rows))
        self._note()
        return None

    def delete(self) -> object:
        """The rows of a number, by writing the others anew."""
        number = self.random.randrange(8)
        hit = [file for file in self.files() if any(row["v"] == number for row in self._live(file))]
        if not hit:
            return False
        kept = [row for file in hit for row in self._live(file) if row["v"] != number]
        self._replace(hit, [kept] if kept else [], change=True)
        return None

    def overwrite(self) -> None:
        self._replace(self.files(), [self.arrivals.late(), self.arrivals.next_day()], change=True)

    def compact(self) -> object:
        """All in one file, or in two."""
        files = self.files()
        rows = [row for file in files for row in self._live(file)]
        self.random.shuffle(rows)
        half = self.random.choice((len(rows), len(rows) // 2 + 1))
        parts = [part for part in (rows[:half], rows[half:]) if part]
        self._replace(files, parts, change=False)
        return None

    def restore(self) -> object:
        """A past version's files, as they were deleted from then."""
        then, now = self.random.choice(self._known), self._known[-1]
        if then == now:
            return False
        gone = [_remove(each) for path, each in now.items() if then.get(path) != each]
        come = [{"add": each} for path, each in then.items() if now.get(path) != each]
        log.commit(self.root, *gone, *come)
        self._note()
        return None

    def commit_nothing(self) -> None:
        """A commit that changes nothing."""
        log.commit(self.root, {"commitInfo": {"operation": "nothing"}})

    def add_column(self) -> None:
        self._columns[f"d{next(self._names)}"] = next(self._numbers), "long"
        self._redefine()

    def drop_column(self) -> object:
        others = [name for name in self._columns if name not in SCHEMA.names]
        if not others:
            return False
        del self._columns[self.random.choice(others)]
        self._redefine()
        return None

    def rename_column(self) -> None:
        """One that views use is another one now: the first has another name."""
        self._columns[f"e{next(self._names)}"] = self._columns["c"]
        self._columns["c"] = next(self._numbers), "long"
        self._redefine()

    def replace_column(self) -> None:
        """One that views use was dropped, and added again; or another one is called so now."""
        others = [name for name, (_, kind) in self._columns.items() if kind == "long" and name[0] in "de"]
        self._columns["c"] = (
            self._columns.pop(self.random.choice(others))
            if others and self.random.random() < 0.5
            else (next(self._numbers), "long")
        )
        self._redefine()

    def widen(self) -> object:
        number, kind = self._columns["v"]
        if kind == "long":
            return False
        self._columns["v"] = number, "long"
        self._redefine()
        return None

    def _redefine(self) -> None:
        log.commit(self.root, self._metadata())

    def _metadata(self) -> log.Action:
        widened = [{"fromType": "integer", "toType": "long", "tableVersion": 1}]
        fields = [
            log.column(
                name,
                kind,
                (number, _inside(number)),
                **({"delta.typeChanges": widened} if (name, kind) == ("v", "long") else {}),
            )
            for name, (number, kind) in self._columns.items()
        ]
        mode: dict[str, Any] = {
            "delta__columnMapping__mode": "name",
            "delta__columnMapping__maxColumnId": "999",
        }
        return log.metadata(*fields, **mode)

    def _commit(self, vectors: Mapping[str, log.Action | None]) -> None:
        super()._commit(vectors)
        self._note()

    def _note(self) -> None:
        self._known.append({file.path: self.last_added(file.path) for file in self.files()})

    def _live(self, file: File) -> list[Row]:
        held, gone = pq.read_table(self.root / file.path).to_pylist(), set(file.gone)
        numbers = {name: _inside(number) for name, (number, _) in self._columns.items()}
        return [
            {name: row.get(inside) for name, inside in numbers.items()}
            for at, row in enumerate(held)
            if at not in gone
        ]

    def _replace(self, files: Sequence[File], parts: Sequence[list[Row]], *, change: bool) -> None:
        removed = [_remove(self.last_added(file.path), dataChange=change) for file in files]
        log.commit(self.root, *removed, *(self._add(part, dataChange=change) for part in parts))
        self._note()

    def _add(self, rows: list[Row], **more: Any) -> log.Action:
        kinds = {name: (_inside(number), _TYPES[kind]) for name, (number, kind) in self._columns.items()}
        schema = pa.schema(kinds.values())
        listed = [{inside: row.get(name) for name, (inside, _) in kinds.items()} for row in rows]
        name = f"f{next(self._names)}.parquet"
        pq.write_table(pa.Table.from_pylist(listed, schema), self.root / name, row_group_size=GROUP)
        times = sorted(row["at"] for row in rows if row["at"] is not None)
        time, nulls = kinds["at"][0], len(rows) - len(times)
        said = (
            log.stats(time, _text(times[0]), _text(times[-1]), len(rows), nulls)
            if times
            else {"numRecords": len(rows), "nullCount": {time: nulls}}
        )
        return log.add(name, said, **{"size": (self.root / name).stat().st_size, **more})


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z"


def _inside(number: int) -> str:
    return f"col-{number}"


def _remove(added: log.Action, **more: Any) -> log.Action:
    vector = {key: added[key] for key in ("deletionVector",) if key in added}
    return log.remove(added["path"], **vector, **more)
