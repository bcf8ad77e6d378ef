"""Published tables that are not as we left them, and tables of the same name that others publish."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake import Field as DeltaField
from deltalake.schema import PrimitiveType
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import StringType

from mv_assets.buckets import DAY, HOUR
from mv_assets.config import DeltaTarget, IcebergTarget, Target
from mv_assets.publish.errors import NotPublished
from mv_assets.publish.iceberg.changes import forget
from mv_assets.state.errors import LeaseExpired
from mv_assets.state.store import Store
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.process_memory import process_of_its_own
from mv_assets_tests.support.published_lake import (
    DeltaReader,
    IcebergReader,
    PublishedLake,
    PublishedLakes,
    rows_of,
)
from mv_assets_tests.support.warehouse_lake import GRACE, clocked_lakes


def renamed(table: Table) -> None:
    with table.update_schema() as update:
        update.rename_column("n", "number")


def widened(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("note", StringType())


def partitioned(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("n", IdentityTransform(), "n_as_it_is")


def configured(table: Table) -> None:
    with table.transaction() as changes:
        changes.set_properties({"gc.enabled": "true", "schema.name-mapping.default": "[]"})


def unmapped(table: Table) -> None:
    with table.transaction() as changes:
        changes.remove_properties("schema.name-mapping.default")


CHANGES: dict[Callable[[Table], None], str] = {
    renamed: "columns",
    widened: "columns",
    partitioned: "partitions",
    configured: "properties",
    unmapped: "properties",
}


def filled(lakes: PublishedLakes) -> tuple[PublishedLake, IcebergReader]:
    made = lakes()
    made.days(0, 1, 2)
    made.run()
    made.published()
    reader = made.reader
    assert isinstance(reader, IcebergReader)
    return made, reader


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("looks", [True, False])
def test_140_a_table_that_somebody_has_changed_is_said_and_set_right(
    iceberg_lake: PublishedLakes, change: Callable[[Table], None], *, looks: bool
) -> None:
    made, reader = filled(iceberg_lake)
    settings = reader.table().properties
    change(reader.table())
    if not looks:
        made.overwrite(1)
    found = made.publish(look=looks)
    assert found.error is None
    assert found.publication is not None
    assert found.publication.replaced == f"its {CHANGES[change]} were changed by somebody else"
    made.check_published()
    assert reader.rows().column_names == ["hour", "n"]
    assert reader.table().properties == settings
    assert not reader.table().spec().fields
    assert made.publish(look=True).publication == found.publication
    made.overwrite(2)
    made.published()
    made.check_published()


def test_140_columns_that_were_changed_are_right_beside_files_that_stay(iceberg_lake: PublishedLakes) -> None:
    made, reader = filled(iceberg_lake)
    made.write("later.parquet", [day(3), day(4)])
    made.run()
    made.published()
    renamed(reader.table())
    kept = set(reader.files())
    made.overwrite(3)
    made.published()
    assert kept & set(reader.files())
    made.check_published()


def test_140_what_somebody_wrote_is_said_however_late(iceberg_lake: PublishedLakes) -> None:
    made, reader = filled(iceberg_lake)
    reader.scribble()
    made.later(10 * DAY)
    assert made.publisher.expire(["v"]) == []
    found = made.publish(look=True).publication
    assert found is not None
    assert "somebody else's" in str(found.replaced)
    made.check_published()


def test_140_a_table_of_which_only_somebody_else_s_snapshot_is_left_is_said(
    iceberg_lake: PublishedLakes,
) -> None:
    made, reader = filled(iceberg_lake)
    [ours] = reader.snapshots()
    reader.scribble()
    with reader.table().transaction() as tx:
        forget(tx, [int(ours)])
    found = made.publish(look=True).publication
    assert found is not None
    assert "somebody else's" in str(found.replaced)
    made.check_published()


def test_140_a_peer_s_new_columns_are_not_taken_back(iceberg_lake: PublishedLakes) -> None:
    """Between the look at what somebody has changed and the mending of it."""
    made, reader = filled(iceberg_lake)
    renamed(reader.table())
    with_sum = "SELECT date_trunc('hour', at) AS hour, sum(x) AS total FROM events GROUP BY ALL"

    class Late:
        def __init__(self, target: Any) -> None:
            self._target = target

        def __getattr__(self, name: str) -> Any:
            if name == "commit":
                made.wrap = lambda target: target
                made.declare(view(sql=with_sum))
                made.run()
                made.published()
            return getattr(self._target, name)

    made.wrap = Late
    made.publish(look=True)
    assert reader.rows().column_names == ["hour", "total"]
    made.check_published()


@pytest.fixture
def delta_lake(tmp_path: Path) -> Iterator[PublishedLakes]:
    state = f"sqlite:///{tmp_path}/state.db"
    with clocked_lakes(tmp_path, state, PublishedLake, format="delta") as make:
        yield make


def noted(table: DeltaTable) -> None:
    table.alter.set_table_description("the days of the shop")


def widened_delta(table: DeltaTable) -> None:
    table.alter.add_columns([DeltaField("note", PrimitiveType("string"))])


def configured_delta(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 hours"})


def emptied(table: DeltaTable) -> None:
    table.delete()


@pytest.mark.parametrize("change", [noted, widened_delta, configured_delta, emptied])
@pytest.mark.parametrize("looks", [True, False])
def test_140_a_delta_table_that_somebody_has_changed_is_said_and_set_right(
    delta_lake: PublishedLakes, change: Callable[[DeltaTable], None], *, looks: bool
) -> None:
    made = delta_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    reader = made.reader
    assert isinstance(reader, DeltaReader)
    before = reader.table().metadata()
    change(reader.table())
    if not looks:
        made.overwrite(1)
    found = made.publish(look=looks).publication
    assert found is not None
    assert "somebody else's" in str(found.replaced)
    made.check_published()
    after = reader.table().metadata()
    assert (after.description, after.configuration) == (before.description, before.configuration)
    assert set(reader.rows().column_names) == {"hour", "n"}


@pytest.mark.parametrize("changes", [True, False])
@pytest.mark.parametrize("tidied", [True, False])
def test_140_what_was_written_before_a_log_was_shortened_is_not_taken_for_ours(
    delta_lake: PublishedLakes, *, changes: bool, tidied: bool
) -> None:
    """As its retention allows: then nothing is left of our commit that the table could be set back to."""
    made = delta_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    made.reader.scribble()
    table = made.reader.table()  # type: ignore[attr-defined]
    if tidied:
        table.vacuum(dry_run=False)
    table.create_checkpoint()
    for entry in (made.folder / "warehouse" / "v" / "_delta_log").iterdir():
        os.utime(entry, (0, 0))
    table.cleanup_metadata()
    assert made.reader.rows().num_rows == 7
    if changes:
        made.overwrite(1)
    found = made.publish(look=True).publication
    assert found is not None
    assert found.replaced is not None
    made.check_published()
    assert made.publish(look=True).publication == found


def test_a_delta_table_of_which_nothing_tells_whose_it_is_is_left_alone(
    delta_lake: PublishedLakes, tmp_path: Path
) -> None:
    made = delta_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    made.reader.scribble()
    table = made.reader.table()  # type: ignore[attr-defined]
    table.create_checkpoint()
    for entry in (made.folder / "warehouse" / "v" / "_delta_log").iterdir():
        os.utime(entry, (0, 0))
    table.cleanup_metadata()
    (tmp_path / "state.db").unlink()
    made.store.close()
    store = Store(f"sqlite:///{tmp_path}/state.db", now=made.clock)
    other = PublishedLake(made.folder, store, [view()], clock=made.clock, format="delta")
    other.run()
    with process_of_its_own():
        assert "another project publishes" in str(other.publish().error)
    store.close()


def test_a_delta_table_that_is_tidied_up_is_as_it_was(delta_lake: PublishedLakes) -> None:
    made = delta_lake(keep=1)
    # Long ago: what is no longer shown is old enough for the library.
    made.clock.now -= 100 * DAY
    made.days(0, 1, 2)
    made.run()
    for number in range(45):
        made.manager.force(made.catalog.view("v").declaration, [0], f"it looks odd, {number}")
        made.later(2 * HOUR)
        made.published()
    reader = made.reader
    assert isinstance(reader, DeltaReader)
    operations = [each["operation"] for each in reader.table("v__buckets").history()]
    assert "VACUUM END" in operations
    assert "RESTORE" not in operations
    made.check_published()


@contextmanager
def neighbour(made: PublishedLake, folder: Path) -> Iterator[PublishedLake]:
    """Another project, with a state of its own, that publishes a view of the same name to the same place."""

    class Other(PublishedLake):
        @property
        def target(self) -> Target:
            given = made.target
            if isinstance(given, IcebergTarget):
                return given
            return DeltaTarget(folder=str(made.folder / "warehouse"))

    (folder / "other").mkdir()
    store = Store(f"sqlite:///{folder}/other/state.db", now=made.clock)
    yield Other(folder / "other" / "lake", store, [view()], clock=made.clock, format=made.format)
    store.close()


def test_a_table_that_is_another_project_s_by_now_is_neither_withdrawn_nor_expired(
    published_lake: PublishedLakes, tmp_path: Path
) -> None:
    """Somebody dropped ours, as the message to the other one proposes."""
    made = published_lake(keep=0)
    made.days(0, 1, 2)
    made.run()
    made.published()
    with made.publisher._opened("v") as target:
        target.withdraw()
    with neighbour(made, tmp_path) as other:
        other.days(5, 6)
        other.run()
        other.published()
        first = str(other.published().snapshot)
        other.overwrite(5)
        other.published()
        made.later(DAY // 2)
        assert "another project publishes" in str(made.publish(look=True).error)
        assert made.publisher.expire(["v"]) == []
        made.manager.drop("v")
        assert made.publisher.withdraw("v") is None
        assert made.known() is None
        assert first in made.reader.snapshots()
        assert made.reader.exists("v__buckets")
        if isinstance(made.target, IcebergTarget):
            assert made.reader.rows(snapshot=first).num_rows == 4
            other.check_published()


def test_another_project_s_table_is_not_published_over(
    published_lake: PublishedLakes, tmp_path: Path
) -> None:
    made = published_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    rows = made.check_published()
    with neighbour(made, tmp_path) as other:
        check_refused(other, made)
    assert rows_of(made.reader.rows()) == rows
    made.overwrite(1)
    made.published()
    made.check_published()


def check_refused(other: PublishedLake, made: PublishedLake) -> None:
    other.days(5, 6)
    other.run()
    other.overwrite(5, 6)
    assert other.snapshot().header.version > made.snapshot().header.version
    error = other.publish().error
    assert isinstance(error, NotPublished)
    assert "another project publishes a view of that name there" in str(error)
    # Nothing is kept for readers that it does not have.
    assert other.known() is None


def test_a_table_that_is_reached_by_another_address_is_still_ours(
    iceberg_lake: PublishedLakes, tmp_path: Path
) -> None:
    made, _ = filled(iceberg_lake)
    moved = tmp_path / "moved.db"
    shutil.copy(f"{made.folder}/catalog.db", moved)
    catalog = {"type": "sql", "uri": f"sqlite:///{moved}"}

    class Moved(PublishedLake):
        @property
        def target(self) -> Target:
            return IcebergTarget(catalog=catalog, namespace="marts")

    after = Moved(made.folder, made.store, [view()], clock=made.clock)
    after.published()
    made.overwrite(1)
    after.published()
    after.check_published()
    assert len(after.publisher.left("v")) == 1


def test_a_publisher_that_slept_longer_than_its_lease_shows_nothing(published_lake: PublishedLakes) -> None:
    made = published_lake()
    made.days(0, 1, 2)
    made.run()

    class Asleep:
        """All that the map named is replaced and collected, before the first publication knows of a table."""

        def __init__(self, target: Any) -> None:
            self._target = target

        def __getattr__(self, name: str) -> Any:
            if name == "shown":
                made.wrap = lambda target: target
                made.later(10 * GRACE)
                made.overwrite(0, 1, 2)
                made.later(10 * GRACE)
                assert made.garbage().collect("v").deleted
            return getattr(self._target, name)

    made.wrap = Asleep
    assert isinstance(made.publish().error, LeaseExpired)
    assert not made.reader.exists()
    assert made.known() is None
    made.published()
    made.check_published()
