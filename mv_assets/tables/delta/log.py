"""A Delta log: the actions of its commits, and the files that a checkpoint sums up.

The deltalake library tells neither which rows of a file are deleted nor what only rewrote files, and reads
all of a log each time. Commits never change: one that was read needs no second reading.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from mv_assets.tables.delta.stats import Stats, StatsOf
from mv_assets.tables.delta.vectors import Vector

_LOG = "_delta_log"
_CHECKPOINT = re.compile(
    r"(?P<version>\d{20})\.checkpoint(\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.[0-9a-fA-F-]{36})?"
    r"\.(?P<kind>parquet|json)"
)
# As much of a commit as tells it from any other: it names its time, and files that nobody else has.
_TELLING = 1 << 16
_ROWS_AT_ONCE = 1 << 16

# A file's path, and the id of the vector that deletes rows of it: with another vector it is another entry.
Key = tuple[str, str | None]


class Add(NamedTuple):
    """A file of the table."""

    path: str
    size: int
    changed: int
    partition: Mapping[str, str | None]
    stats: Stats
    vector: Vector | None

    @property
    def key(self) -> Key:
        return self.path, None if self.vector is None else self.vector.id


class Commit(NamedTuple):
    """What one commit did to the list of files.

    One that `rewrites` has the same rows in other files, by its own word. One that `redefines` may change
    what the table's columns are, and what it asks of its readers.
    """

    version: int
    digest: str
    adds: Mapping[Key, Add]
    removes: frozenset[Key]
    rewrites: bool
    redefines: bool


class Checkpoint(NamedTuple):
    version: int
    files: tuple[str, ...]


class Log(NamedTuple):
    """The log in a table's folder, and the column whose statistics are wanted."""

    folder: fs.FileSystem
    wanted: StatsOf = StatsOf()

    def digest(self, version: int) -> str:
        """A hash of a commit; of nothing where only a checkpoint is left of it."""
        try:
            with self.folder.open_input_file(_commit(version)) as file:
                return _digest(file.read(_TELLING))
        except FileNotFoundError:
            return _digest(b"")

    def commit(self, version: int) -> Commit | None:
        """A commit; None if there is none of that version.

        Raises:
            ValueError: it can't be understood.

        """
        try:
            with self.folder.open_input_file(_commit(version)) as file:
                content = file.read()
        except FileNotFoundError:
            return None
        try:
            return self._understood(version, content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            why = f"{type(error).__name__}: {error}" if not isinstance(error, ValueError) else error
            raise ValueError(f"commit {_commit(version)} can't be understood ({why})") from error

    def _understood(self, version: int, content: bytes) -> Commit:
        actions = [json.loads(line) for line in content.splitlines() if line.strip()]
        adds = [said for action in actions if (said := action.get("add"))]
        removes = [said for action in actions if (said := action.get("remove"))]
        added, removed = _once(map(self._add, adds)), frozenset(map(_removed, removes))
        # Engines disagree on which of the two is last.
        for path, _ in added.keys() & removed:
            raise ValueError(f"it both adds and removes {path}")
        return Commit(
            version,
            _digest(content[:_TELLING]),
            added,
            removed,
            bool(adds and removes) and not any(said.get("dataChange", True) for said in [*adds, *removes]),
            any(action.get(kind) for action in actions for kind in ("metaData", "protocol")),
        )

    def _add(self, said: Mapping[str, Any]) -> Add:
        stats = self.wanted.in_text(said.get("stats"))
        return _checked(said, stats)

    def checkpoint(self, latest: int) -> Checkpoint | None:
        """The newest complete checkpoint of that version or an earlier one."""
        found: dict[tuple[int, int], list[str]] = {}
        for info in self.folder.get_file_info(fs.FileSelector(_LOG)):
            match = _CHECKPOINT.fullmatch(info.base_name)
            if match and int(match["version"]) <= latest:
                key = int(match["version"]), int(match["parts"] or 1)
                found.setdefault(key, []).append(f"{_LOG}/{info.base_name}")
        complete = [key for key, parts in found.items() if key[1] in (1, len(parts))]
        if not complete:
            return None
        # One of several alike is enough, but for the parts of one.
        version, parts = max(complete, key=lambda key: (key[0], -key[1]))
        return Checkpoint(version, tuple(sorted(found[version, parts])[:parts]))

    def active(self, checkpoint: Checkpoint) -> Iterator[Add]:
        """The files that a checkpoint lists, in itself and in files beside it."""
        for file in checkpoint.files:
            yield from self._summed_up(file)

    def _summed_up(self, file: str) -> Iterator[Add]:
        try:
            if file.endswith(".json"):
                with self.folder.open_input_file(file) as source:
                    actions = [json.loads(line) for line in source.read().splitlines() if line.strip()]
                yield from (self._add(action["add"]) for action in actions if action.get("add"))
                sidecars = [action["sidecar"]["path"] for action in actions if action.get("sidecar")]
            else:
                sidecars = yield from self._in_parquet(file)
        except (ValueError, KeyError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
            why = str(error).strip().split("\n", 1)[0]
            raise ValueError(f"checkpoint {file} can't be read ({why})") from error
        for path in sidecars:
            yield from self._summed_up(f"{_LOG}/_sidecars/{path}")

    def _in_parquet(self, file: str) -> Generator[Add, None, list[str]]:
        with self.folder.open_input_file(file) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            kinds = parquet.schema_arrow.names
            if "add" in kinds:
                for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=self._columns()):
                    yield from self._of_rows(batch.column("add"))
            found = (
                parquet.read(columns=["sidecar.path"])["sidecar"].to_pylist() if "sidecar" in kinds else []
            )
        sidecars = [each["path"] for each in found if each and each["path"]]
        if "add" not in kinds and not sidecars:
            raise ValueError("it lists no files, and none that do")
        return sidecars

    def _columns(self) -> list[str]:
        bounds = (f"{kind}.{self.wanted.column}" for kind in ("minValues", "maxValues", "nullCount"))
        kinds = ("numRecords", *(() if self.wanted.column is None else bounds))
        parts = ("path", "size", "modificationTime", "partitionValues", "stats", "deletionVector")
        return [f"add.{part}" for part in (*parts, *(f"stats_parsed.{kind}" for kind in kinds))]

    def _of_rows(self, rows: pa.StructArray) -> Iterator[Add]:
        adds = rows.filter(rows.is_valid())
        kept = [name for name in adds.type.names if name not in ("stats", "stats_parsed")]
        columns = [adds.field(name).to_pylist() for name in kept]
        for values, stats in zip(zip(*columns, strict=True), self.wanted.in_columns(adds), strict=True):
            yield _checked(dict(zip(kept, values, strict=True)), stats)


def _checked(said: Mapping[str, Any], stats: Stats) -> Add:
    path, size, changed = said["path"], said["size"], said["modificationTime"]
    # Maps of checkpoints are lists of pairs.
    partition = dict(said["partitionValues"] or {})
    if not path or type(path) is not str or type(size) is not int or type(changed) is not int or size < 0:
        raise ValueError(f"it adds a file {path!r} of size {size!r}, changed at {changed!r}")
    if not all(type(value) is str or value is None for value in partition.values()):
        raise ValueError(f"it adds file {path!r} with partition values {partition}")
    return Add(path, size, changed, partition, stats, _vector(said))


def _vector(said: Mapping[str, Any]) -> Vector | None:
    described = said.get("deletionVector")
    return Vector.of(described) if described else None


def _removed(said: Mapping[str, Any]) -> Key:
    vector = _vector(said)
    return said["path"], None if vector is None else vector.id


def _once(adds: Iterable[Add]) -> dict[Key, Add]:
    found: dict[Key, Add] = {}
    for add in adds:
        if found.setdefault(add.key, add) != add:
            raise ValueError(f"it adds {add.path} twice, and not alike")
    return found


def _commit(version: int) -> str:
    return f"{_LOG}/{version:020}.json"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


# The digest of a commit of which only a checkpoint is left.
NOTHING = _digest(b"")
