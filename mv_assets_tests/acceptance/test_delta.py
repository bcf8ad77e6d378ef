"""Cases of Delta tables that need no Spark: which buckets a commit makes STALE."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import delete

from mv_assets.config import DeclaredProject, MaterializedView
from mv_assets.config import DeltaTable as DeclaredTable
from mv_assets.config.file import Draft
from mv_assets.state.store import Store
from mv_assets.state.store.schema import remembered
from mv_assets.tables.delta.remembered import KEPT
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import Lake, through
from mv_assets_tests.unit.tables.delta import log


class DeltaLake(Lake):
    """A lake whose events are a Delta table, with a file for each write."""

    @property
    def root(self) -> Path:
        return self.folder / "events"

    def declare(self, *views: MaterializedView) -> None:
        events = DeclaredTable.model_validate(
            {"name": "events", "format": "delta", "path": str(self.root), "time_column": "at"}
        )
        self.project = DeclaredProject(tables=(events,), views=tuple(views))
        self.catalog = prepare(Draft("test", self.project), schemas=False)
        self.tables = {"events": open_table(events, self.store.database, self.clock)}

    def append(self, first: int, last: int | None = None) -> str:
        """A file from the first to the last millisecond of some days; its name."""
        rows = pa.table({"at": pa.array(through(first, last), pa.timestamp("us", "UTC")), "x": [first, 0]})
        write_deltalake(self.root, rows, mode="append")
        return str(log.actions(self.root, "add")[-1]["path"])


@pytest.fixture
def filled(store: Store, tmp_path: Path) -> DeltaLake:
    """Days 0 to 5, the last two of them in one file; all VALID."""
    made = DeltaLake(tmp_path / "lake", store)
    for number in range(4):
        made.append(number)
    made.append(4, 5)
    made.converge()
    assert made.states(*range(6)) == "VVVVVV"
    return made


def test_119_a_vector_makes_exactly_the_buckets_stale_that_its_file_overlaps(filled: DeltaLake) -> None:
    log.with_vector(filled.root, log.deletion_vector(0))
    assert filled.planned() == [("OVERWRITE", [4, 5])]
    assert filled.states(*range(6)) == "VVVVSS"
    filled.converge()
    assert filled.states(*range(6)) == "VVVVVV"


def test_120_a_vector_that_is_taken_back_reverts_and_nothing_is_computed(filled: DeltaLake) -> None:
    log.with_vector(filled.root, log.deletion_vector(0))
    filled.look()
    assert filled.states(4, 5) == "SS"
    DeltaTable(filled.root).restore(4)
    assert filled.planned() == [("REVERT", [4, 5])]
    assert filled.refresh() == {4: "reverted", 5: "reverted"}


@pytest.mark.parametrize("kind", ["inline", "relative", "absolute"])
def test_121_vectors_of_all_kinds_mark_their_files_buckets_and_two_files_share_one(
    filled: DeltaLake, kind: str
) -> None:
    first, second = (added["path"] for added in log.actions(filled.root, "add")[1:3])
    vectors = (
        [log.deletion_vector(0), log.deletion_vector(1)]
        if kind == "inline"
        else log.vector_file(filled.root, [0], [1], absolute=kind == "absolute")
    )
    for path, vector in zip((first, second), vectors, strict=True):
        log.with_vector(filled.root, vector, path)
    assert filled.planned() == [("OVERWRITE", [1, 2])]


def unchanged(made: DeltaLake) -> None:
    """Nothing was computed before, so nothing is to be done."""
    assert made.planned() == []
    assert made.states(*range(6)) == "VVVVVV"


def lose_memory(made: DeltaLake) -> None:
    KEPT.clear()
    with made.store.database.write() as connection:
        connection.execute(delete(remembered))


def restore_backup(made: DeltaLake) -> None:
    """What is remembered is of a version that the table does not have any more."""
    backup = shutil.copytree(made.root, made.root.with_name("backup"))
    made.append(9)
    made.dry()
    shutil.rmtree(made.root)
    shutil.copytree(backup, made.root)


STALE: dict[str, Callable[[DeltaLake], None]] = {
    "lost": lose_memory,
    "lost by the process": lambda _: KEPT.clear(),
    "newer than the table": restore_backup,
}


@pytest.mark.parametrize("how", STALE)
def test_128_whatever_happens_to_what_is_remembered_no_bucket_changes(filled: DeltaLake, how: str) -> None:
    STALE[how](filled)
    unchanged(filled)
    filled.append(2)
    assert filled.planned() == [("OVERWRITE", [2])]
