"""Mistakes with deleted rows, remembered metadata and rewritten files, in place of the real thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from mv_assets.observe import rewrites
from mv_assets.spark.read import files
from mv_assets.spark.read.deletes import is_kept
from mv_assets.tables import lakehouse
from mv_assets.tables.delta import DeltaFiles, changes, table
from mv_assets.tables.delta.description import Description, name_of
from mv_assets.tables.delta.files import FileList
from mv_assets.tables.delta.log import Commit, Log
from mv_assets.tables.iceberg import IcebergFiles, blocks
from mv_assets.tables.iceberg import rewrites as iceberg_rewrites
from mv_assets.tables.iceberg.deletes import Deletes
from mv_assets.tables.iceberg.entries import Manifest
from mv_assets.tables.iceberg.remembered import Metadata
from mv_assets_tests.proof.lakehouse.rows import GROUP

Mutant = Callable[[pytest.MonkeyPatch], None]


def vectors_are_ignored(patch: pytest.MonkeyPatch) -> None:
    for kind in (DeltaFiles, IcebergFiles):
        patch.setattr(kind, "deleted", lambda *_: pa.array([], pa.int64()))


def vectors_are_not_in_the_crc(patch: pytest.MonkeyPatch) -> None:
    real = lakehouse.content
    patch.setattr(
        lakehouse,
        "content",
        lambda name, size, partition, deletes=(): real(name, size, partition, deletes[:0]),
    )


def rows_are_counted_after_pruning(patch: pytest.MonkeyPatch) -> None:
    """A row's place is counted from the row group that is read, not from the beginning of the file."""
    patch.setattr(files, "is_kept", lambda lists, row: is_kept(lists, f"({row} % {GROUP})"))


def equality_deletes_hit_newer_rows(patch: pytest.MonkeyPatch) -> None:
    real = Deletes.add

    def add(self: Deletes, *given: Any, **how: Any) -> None:
        real(self, *given, **how)
        for found in (self.everywhere, *self.by_partition.values()):
            found[:] = [replace(each, through=1 << 62) if each.by_value else each for each in found]

    patch.setattr(Deletes, "add", add)


def manifests_are_remembered_by_table(patch: pytest.MonkeyPatch) -> None:
    """Not by the path of their list, until the process ends."""
    known: dict[str, list[Manifest]] = {}
    real = Metadata.manifests

    def manifests(self: Metadata, path: str) -> list[Manifest]:
        return known.setdefault(self.inventory.table, real(self, path))

    patch.setattr(Metadata, "manifests", manifests)
    forget = blocks._recent.clear

    def clear() -> None:
        known.clear()
        forget()

    patch.setattr(blocks._recent, "clear", clear)


def the_log_is_remembered_by_number(patch: pytest.MonkeyPatch) -> None:
    """Whether a version is still the one that was remembered is not asked."""
    patch.setattr(Log, "digest", lambda _self, version: str(version))
    real = Log.commit

    def commit(self: Log, version: int) -> Commit | None:
        found = real(self, version)
        return None if found is None else found._replace(digest=str(version))

    patch.setattr(Log, "commit", commit)


def a_commit_loses_a_file(patch: pytest.MonkeyPatch) -> None:
    """Of those that were listed before it, one that it does not name."""
    real = changes.advanced

    def advanced(files: FileList, commits: Sequence[Commit], description: Description) -> FileList:
        found = real(files, commits, description)
        touched = {name_of(path) for each in commits for path, _ in each.removes | each.adds.keys()}
        kept = [name for part in files.parts for name in part.names if name not in touched]
        return found.without(found.places(set(kept[:1])))

    patch.setattr(table, "advanced", advanced)


def changed_files_are_followed(patch: pytest.MonkeyPatch) -> None:
    """A bucket follows a rewrite of files that are not those it was computed from."""
    patch.setattr(rewrites, "_among", lambda some, files: some.keys() <= files.keys())


def every_commit_is_a_rewrite(patch: pytest.MonkeyPatch) -> None:
    """Whether rows changed by it is not asked."""
    real = Log._understood

    def understood(self: Log, version: int, content: bytes) -> Commit:
        found = real(self, version, content)
        return found._replace(rewrites=bool(found.adds and found.removes))

    patch.setattr(Log, "_understood", understood)
    patch.setattr(iceberg_rewrites, "_only_replaces", lambda _before, _after: True)
    patch.setattr(iceberg_rewrites, "_as_many", lambda *_, **__: True)


DELTA, ICEBERG = ("delta", "mapped delta"), ("iceberg",)
# Each with the tables that it can be seen at.
MUTANTS: dict[str, tuple[Mutant, tuple[str, ...]]] = {
    "vectors are ignored": (vectors_are_ignored, DELTA + ICEBERG),
    "vectors are not in the crc": (vectors_are_not_in_the_crc, DELTA + ICEBERG),
    "rows are counted after pruning": (rows_are_counted_after_pruning, DELTA + ICEBERG),
    "equality deletes hit newer rows": (equality_deletes_hit_newer_rows, ICEBERG),
    "a stale list of manifests": (manifests_are_remembered_by_table, ICEBERG),
    "a stale log": (the_log_is_remembered_by_number, DELTA[:1]),
    "a file that is lost by a commit": (a_commit_loses_a_file, DELTA),
    "files that were rewritten after they changed are followed": (
        changed_files_are_followed,
        DELTA + ICEBERG,
    ),
    "every commit counts as a rewrite": (every_commit_is_a_rewrite, DELTA + ICEBERG),
}
