"""Published tables, as strangers read them: with their own libraries, and nothing of ours."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from mv_assets.buckets import DAY
from mv_assets.publish.contents import Contents
from mv_assets.publish.errors import NotPublished
from mv_assets.state.model import _SEAL, Doing
from mv_assets.state.publications import Publications
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.published_lake import KEEP, IcebergReader, PublishedLake, PublishedLakes, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE

WITH_SUM = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(x) AS total FROM events GROUP BY ALL"
AS_TEXT = "SELECT date_trunc('hour', at) AS hour, CAST(count(*) AS STRING) AS n FROM events GROUP BY ALL"


class Crash(Exception):
    """The process ends here."""


class Broken:
    """A target of which one method ends otherwise: before it, or after it has done what it does."""

    def __init__(
        self, target: Any, method: str, *, after: bool = False, error: BaseException | None = None
    ) -> None:
        self._target, self._method, self._after = target, method, after
        self._error = error or Crash()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name != self._method:
            return found

        def broken(*given: Any) -> Any:
            if self._after:
                found(*given)
            raise self._error

        return broken


def filled(lakes: PublishedLakes, *numbers: int, **options: Any) -> PublishedLake:
    made = lakes(**options)
    made.days(*(numbers or (0, 1, 2)))
    made.run()
    return made


def test_131_after_a_commit_a_stranger_reads_exactly_the_rows_of_the_map(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    assert not made.reader.exists()
    made.published()
    rows = made.check_published()
    assert len(rows) == 6
    assert made.reader.rows().column_names == ["hour", "n"]
    summary = made.reader.summary()
    assert summary["mv-assets.view"] == "v"
    assert summary["mv-assets.watermark"] == "1970-01-04T00:00:00Z"
    assert summary["mv-assets.definition"] == made.catalog.view("v").definition
    assert summary["mv-assets.stale"] == "0"


# Another package of polars's would plan the scan faster than pyiceberg.
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_131_polars_reads_them_too(published_lake: PublishedLakes) -> None:
    import polars as pl  # noqa: PLC0415 - what it takes to load, one test needs

    made = filled(published_lake)
    made.published()
    made.overwrite(1)
    made.published()
    if isinstance(made.reader, IcebergReader):
        frame = pl.scan_iceberg(made.reader.table())
    else:
        frame = pl.scan_delta(str(made.folder / "warehouse" / "v"))
    assert rows_of(frame.collect().to_arrow()) == made.check_published()


def test_131_files_stay_where_they_are(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    before = {path: path.stat().st_mtime_ns for path in (made.folder / "warehouse" / "v").rglob("*.parquet")}
    made.published()
    assert {str(path) for path in before} == set(made.reader.files())
    after = {path: path.stat().st_mtime_ns for path in (made.folder / "warehouse" / "v").rglob("*.parquet")}
    assert after == before


def test_131_what_is_published_already_is_not_published_again(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    before = made.reader.snapshots()
    for look in (False, True):
        assert not made.publish(look=look).is_new
    assert made.reader.snapshots() == before


def test_131_a_version_that_shows_nothing_new_takes_no_snapshot(published_lake: PublishedLakes) -> None:
    made = filled(published_lake, 0)
    made.published()
    before, version = made.reader.snapshots(), made.snapshot().header.version
    made.write("later.parquet", [day(1)])
    made.look()
    assert made.snapshot().header.version > version
    assert made.published().seen == made.snapshot().header.version
    assert made.reader.snapshots() == before
    assert made.publisher.behind() == []


@pytest.mark.parametrize("method", ["commit", "commit_buckets"])
@pytest.mark.parametrize("after", [False, True])
def test_132_killed_at_a_step_of_a_publication_nothing_is_torn_and_the_next_one_shows_it_once(
    published_lake: PublishedLakes, method: str, *, after: bool
) -> None:
    made = filled(published_lake)
    made.published()
    before = made.check_published()
    made.overwrite(1)
    made.wrap = lambda target: Broken(target, method, after=after)
    with pytest.raises(Crash):
        made.publish()
    seen = rows_of(made.reader.rows())
    landed = method == "commit_buckets" or after
    assert seen == (rows_of(made.current()) if landed else before)
    made.wrap = lambda target: target
    made.published()
    made.check_published()
    versions = list(made.reader.snapshots().values())
    assert len(versions) == len(set(versions)) == 2


def test_132_killed_before_the_first_snapshot_nothing_is_visible(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.wrap = lambda target: Broken(target, "commit")
    with pytest.raises(Crash):
        made.publish()
    assert not made.reader.exists()
    known = made.known()
    assert known is not None
    assert known.oldest == made.snapshot().header.version
    made.wrap = lambda target: target
    made.published()
    made.check_published()


@pytest.mark.parametrize("step", ["shown", "commit"])
def test_133_of_two_publishers_the_later_version_stays_and_none_is_shown_twice(
    published_lake: PublishedLakes, step: str
) -> None:
    made = filled(published_lake)
    made.published()
    made.overwrite(0)
    held, goes_on = threading.Event(), threading.Event()

    class Slow(Broken):
        """Pins the older version, and comes to its commit when the newer one is there."""

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._target, name)
            if name != step:
                return found

            def slow(*given: Any) -> Any:
                if not held.is_set():
                    held.set()
                    assert goes_on.wait(60)
                return found(*given)

            return slow

    made.wrap = lambda target: Slow(target, step)
    errors: list[object] = []
    slower = threading.Thread(target=lambda: errors.append(made.publish().error), daemon=True)
    slower.start()
    assert held.wait(60)
    made.wrap = lambda target: target
    made.overwrite(1)
    made.published()
    newest = made.snapshot().header.version
    goes_on.set()
    slower.join(60)
    assert errors == [None]
    made.check_published()
    versions = [version for version in made.reader.snapshots().values() if version is not None]
    assert max(versions) == newest
    assert len(versions) == len(set(versions))


def test_133_an_older_version_is_never_shown_after_a_newer_one(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    version = made.snapshot().header.version
    with made.store.write("v") as tx:
        header = tx.known_header()
        tx.put_header(header, replace(header, version=version - 1, seal=_SEAL))
    found = made.publish(look=True)
    assert isinstance(found.error, NotPublished)
    assert "the state was set back" in str(found.error)
    assert int(made.reader.summary()["mv-assets.version"]) == version


def test_133_a_version_that_was_published_with_other_contents_is_not_taken_for_them(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    made.published()
    restore = made.backup()
    made.write("late.parquet", [day(1)])
    made.run()
    version, others = made.published().version, rows_of(made.reader.rows())
    restore()
    made.write("late.parquet", [day(2)])
    made.run()
    found = made.publish()
    assert made.snapshot().header.version == version
    assert isinstance(found.error, NotPublished)
    assert "with other contents than the map has: the state was set back" in str(found.error)
    assert [trouble.doing for trouble in made.snapshot().troubles] == [Doing.PUBLISH]
    assert rows_of(made.reader.rows()) == others
    # No version is shown twice: what comes next takes its place.
    made.overwrite(0)
    made.published()
    made.check_published()
    assert made.snapshot().troubles == ()


def test_133_what_was_set_back_is_withdrawn_and_computed_anew(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    restore = made.backup()
    made.write("late.parquet", [day(1)])
    made.run()
    made.published()
    restore()
    made.write("late.parquet", [day(2)])
    made.run()
    assert made.publish().error is not None
    made.manager.drop("v")
    assert made.publisher.withdraw("v") is None
    made.run()
    made.published()
    made.check_published()


def test_133_a_state_that_was_set_back_is_not_held_against_what_it_remembers(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    made.published()
    expected, restore = made.check_published(), made.backup()
    late = made.write("late.parquet", [day(1)])
    made.run()
    version = made.published().version
    assert version is not None
    restore()
    late.unlink()
    # The map comes to a later version that shows what it showed when it was copied.
    while made.snapshot().header.version <= version:
        made.write("later.parquet", [day(3, made.snapshot().header.version % 24)])
        made.look()
    assert made.publish(look=True).error is None
    assert made.check_published() == expected


def test_133_a_table_without_a_digest_is_taken_for_its_version(
    published_lake: PublishedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(published_lake)
    with monkeypatch.context() as before:
        summary = Contents.summary
        before.setattr(Contents, "summary", lambda *given: without_digest(summary(*given)))
        # Killed before it was recorded: nothing else says what is shown.
        made.wrap = lambda target: Broken(target, "commit_buckets")
        with pytest.raises(Crash):
            made.publish()
    assert "mv-assets.digest" not in made.reader.summary()
    snapshots = made.reader.snapshots()
    made.wrap = lambda target: target
    made.published()
    assert made.reader.snapshots() == snapshots
    assert made.publish(look=True).error is None
    assert made.reader.snapshots() == snapshots
    made.overwrite(1)
    made.published()
    made.check_published()
    assert "mv-assets.digest" in made.reader.summary()


def without_digest(summary: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in summary.items() if key != "mv-assets.digest"}


def test_134_dead_rows_of_a_shared_file_are_not_visible(published_lake: PublishedLakes) -> None:
    made = filled(published_lake, 0, 1, 2, 3)
    [shared] = {row.generation for row in made.snapshot().rows.values()}
    made.published()
    made.overwrite(1)
    assert shared in made.named().values()
    made.published()
    rows = made.check_published()
    assert len(rows) == 9
    # The buckets beside it were copied, and nothing else changed of them.
    assert shared not in made.named().values()
    assert len({row.content for row in made.snapshot().rows.values()}) == 2


def test_135_an_old_snapshot_is_read_until_it_expires_and_its_files_go_then(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    first, left = str(made.published().snapshot), made.named()[0]
    rows = rows_of(made.reader.rows(snapshot=first))
    for _ in range(2):
        made.overwrite(1)
        made.published()
        made.later(GRACE)
        assert made.collect().deleted == {}
        assert rows_of(made.reader.rows(snapshot=first)) == rows
    # A Delta log does not say when something was last shown: there it is kept for up to twice as long.
    for number in (2, 0):
        made.later(KEEP + 1)
        made.overwrite(number)
        made.published()
        made.later(GRACE)
        made.collect()
    assert left not in made.folders()
    made.check_published()


def test_135_a_view_at_rest_gives_up_what_nobody_should_still_read(iceberg_lake: PublishedLakes) -> None:
    made = filled(iceberg_lake)
    made.published()
    made.overwrite(1)
    made.published()
    made.later(KEEP + 1)
    assert len(made.collect().deleted) == 1
    assert len(made.reader.snapshots()) == 1
    made.check_published()


def test_136_another_definition_evolves_the_table_and_old_snapshots_keep_their_columns(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    first = str(made.published().snapshot)
    rows = rows_of(made.reader.rows(snapshot=first))
    made.declare(view(sql=WITH_SUM))
    made.look()
    made.published()
    # Nothing of the new definition is there yet, and the old rows are not what the view says now.
    assert made.reader.rows().num_rows == 0
    made.run()
    made.published()
    made.check_published()
    assert set(made.reader.rows().column_names) == {"hour", "n", "total"}
    assert set(made.reader.rows(snapshot=first).column_names) == {"hour", "n"}
    assert rows_of(made.reader.rows(snapshot=first)) == rows
    made.declare(view())
    made.manager.adopt("v", made.catalog.view("v").definition)
    made.run()
    made.published()
    made.check_published()
    assert rows_of(made.reader.rows(snapshot=first)) == rows


def test_136_the_column_of_time_is_called_otherwise_and_as_before_again(
    published_lake: PublishedLakes,
) -> None:
    """The table is sorted by it."""
    made = filled(published_lake)
    made.published()
    for name, more in (("moment", 0), ("hour", 1), ("moment", 2)):
        sql = f"SELECT date_trunc('hour', at) AS {name}, count(*) + {more} AS n FROM events GROUP BY ALL"
        made.declare(view(sql=sql, time_column=name))
        made.run()
        made.published()
        made.check_published()
        if isinstance(made.reader, IcebergReader):
            table = made.reader.table()
            [field] = table.sort_order().fields
            assert table.schema().find_column_name(field.source_id) == name
            assert len(table.sort_orders()) <= 2


def test_136_a_column_of_another_type_is_read_right_or_not_at_all(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    first, held = str(made.published().snapshot), made.reader.held()
    rows, left = rows_of(held()), set(made.named().values())
    made.declare(view(sql=AS_TEXT))
    made.look()
    made.published()
    made.run()
    made.published()
    made.check_published()
    # By its number only where it is read as it was.
    in_delta = made.format == "delta"
    assert (first in made.reader.snapshots()) == in_delta
    if in_delta:
        assert rows_of(made.reader.rows(snapshot=first)) == rows
    # Whoever had begun with it reads it to the end, for as long as anything is kept.
    made.later(KEEP - GRACE)
    assert made.collect().deleted == {}
    assert rows_of(held()) == rows
    for number in (0, 1, 2):
        made.later(KEEP + GRACE)
        made.overwrite(number)
        made.published()
        made.collect()
    assert not made.folders() & left
    made.check_published()


def test_136_what_somebody_tagged_is_not_lost_with_a_column_of_another_type(
    iceberg_lake: PublishedLakes,
) -> None:
    made = filled(iceberg_lake)
    first = made.published().snapshot
    assert isinstance(made.reader, IcebergReader)
    assert first is not None
    rows = rows_of(made.reader.rows(snapshot=first))
    made.reader.table().manage_snapshots().create_tag(int(first), "end of year").commit()
    made.declare(view(sql=AS_TEXT))
    made.run()
    assert "drop that branch or tag" in str(made.publish().error)
    made.later(2 * KEEP)
    made.publisher.expire(["v"])
    made.garbage().collect("v")
    assert rows_of(made.reader.rows(snapshot=first)) == rows
    made.reader.table().manage_snapshots().remove_tag("end of year").commit()
    made.published()
    made.check_published()


def test_137_drop_withdraws_the_tables_and_nothing_else(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.declare(view(), view("w"))
    made.run()
    made.published()
    made.published("w")
    rows = rows_of(made.reader.rows("w"))
    made.manager.drop("v")
    assert made.publisher.withdraw("v") is None
    assert not made.reader.exists()
    assert not made.reader.exists("v__buckets")
    assert made.known() is None
    made.later(GRACE)
    assert made.garbage().collect("v").deleted
    assert rows_of(made.reader.rows("w")) == rows
    made.run()
    made.published()
    made.check_published()


def test_137_what_can_not_be_withdrawn_is_kept_and_said(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    rows = rows_of(made.reader.rows())
    made.manager.drop("v")
    away = NotPublished("v", "it", "the catalog does not answer")
    made.wrap = lambda target: Broken(target, "withdraw", error=away)
    assert made.publisher.withdraw("v") is away
    assert [trouble.doing for trouble in made.snapshot().troubles] == [Doing.PUBLISH]
    made.later(GRACE)
    assert made.garbage().collect("v").deleted == {}
    assert rows_of(made.reader.rows()) == rows
    made.wrap = lambda target: target
    assert made.publisher.withdraw("v") is None
    assert made.snapshot().troubles == ()
    assert made.garbage().collect("v").deleted


def test_138_an_unreachable_target_holds_up_nothing_and_then_the_newest_is_shown(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    made.published()
    before = made.check_published()
    away = NotPublished("v", "it", "the catalog does not answer")
    made.wrap = lambda target: Broken(target, "shown", error=away)
    for number in (0, 1, 2):
        made.overwrite(number)
        assert made.publish().error is away
        made.later(20 * 60_000)
    assert [trouble.doing for trouble in made.snapshot().troubles] == [Doing.PUBLISH]
    assert rows_of(made.reader.rows()) == before
    made.wrap = lambda target: target
    made.published()
    made.check_published()
    assert made.snapshot().troubles == ()
    assert len(made.reader.snapshots()) == 2


def test_138_a_target_that_never_answered_keeps_nothing_from_gc(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    away = NotPublished("v", "it", "the catalog does not answer")
    made.wrap = lambda target: Broken(target, "shown", error=away)
    assert made.publish().error is away
    assert made.known() is None
    assert made.publisher.behind() == ["v"]
    made.overwrite(0, 1, 2)
    assert made.publish().error is away
    made.later(GRACE)
    assert made.garbage().collect("v").deleted
    made.wrap = lambda target: target
    made.published()
    made.check_published()


def test_139_a_stale_bucket_keeps_its_published_rows_and_is_said_to_be_stale(
    published_lake: PublishedLakes,
) -> None:
    made = filled(published_lake)
    made.published()
    before = made.check_published()
    made.manager.force(made.catalog.view("v").declaration, [DAY], "it looks odd")
    made.published()
    assert made.check_published() == before
    [stale] = [each for each in made.reader.rows("v__buckets").to_pylist() if each["state"] == "STALE"]
    assert stale["start"] == day(1, 0)
    assert stale["end"] == day(2, 0)
    assert stale["reason"] == "it looks odd"
    assert made.reader.summary()["mv-assets.stale"] == "1"


def test_139_the_buckets_are_said_at_the_version_of_the_rows(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    version = made.published().version
    made.write("later.parquet", [day(3)])
    made.look()
    assert made.snapshot().header.version != version
    assert made.publish(look=True).error is None
    for name in ("v", "v__buckets"):
        assert int(made.reader.summary(name)["mv-assets.version"]) == version


def test_139_of_the_buckets_only_the_parts_that_changed_are_written(
    published_lake: PublishedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.publish.contents._PART", 2)
    made = filled(published_lake, *range(5))
    made.published()
    before = set(made.reader.files("v__buckets"))
    made.manager.force(made.catalog.view("v").declaration, [3 * DAY], "it looks odd")
    made.published()
    made.check_published()
    after = set(made.reader.files("v__buckets"))
    assert len(before) == len(after) == 3
    assert len(after - before) == 1


def test_140_what_somebody_else_wrote_is_said_and_published_over(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    made.check_published()
    made.reader.scribble()
    assert made.reader.rows().num_rows == 7
    found = made.publish(look=True)
    assert found.error is None
    assert found.publication is not None
    assert "somebody else's" in str(found.publication.replaced)
    made.check_published()
    made.reader.scribble()
    made.overwrite(1)
    assert "somebody else's" in str(made.published().replaced)
    made.check_published()
    made.overwrite(2)
    assert made.published().replaced is None


def test_140_a_table_that_is_not_ours_is_left_alone(published_lake: PublishedLakes) -> None:
    made = filled(published_lake)
    made.published()
    made.declare(view("w"))
    made.run()
    made.published("w")
    # As if somebody had put another table in its place.
    other = PublishedLake(made.folder, made.store, [view("w")], clock=made.clock, format=made.format)
    other.wrap = of_somebody_else
    found = other.publish("w", look=True)
    assert isinstance(found.error, NotPublished)
    assert "was not made for this view" in str(found.error)


def of_somebody_else(target: Any) -> Any:
    target._rows.view = "somebody"
    return target


def test_copies_for_a_publication_leave_the_rows_of_other_files_alone(
    iceberg_lake: PublishedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = filled(iceberg_lake, *range(8))
    monkeypatch.setattr("mv_assets.maintain.copies.PORTION_BYTES", 1)
    made.published()
    made.overwrite(3)
    made.published()
    # Each bucket has a file of its own now.
    copies = {row.generation for row in made.snapshot().rows.values()}
    assert len(copies) == 2
    generation = made.named()[0]
    made.overwrite(4)
    made.published()
    assert made.named()[0] == generation
    made.check_published()


def test_of_many_buckets_in_a_file_few_are_written_again_with_one(
    iceberg_lake: PublishedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.maintain.copies.PORTION_BUCKETS", 3)
    made = filled(iceberg_lake, *range(10))
    made.published()
    made.overwrite(4)
    made.published()
    made.check_published()
    before = made.snapshot()
    made.overwrite(8)
    made.published()
    made.check_published()
    # The bucket, and those beside it in a file.
    written = [bucket for bucket, row in made.snapshot().rows.items() if row.token > before.header.version]
    assert len(written) == 3


def test_gc_asks_the_publication(iceberg_lake: PublishedLakes) -> None:
    made = filled(iceberg_lake)
    made.published()
    left = made.named()[1]
    made.overwrite(0, 1, 2)
    made.later(GRACE)
    assert made.garbage().collect("v").deleted == {}
    assert left in made.folders()
    known = made.known()
    assert known is not None
    Publications(made.store).end("v", known.target)
    assert left in made.garbage().collect("v").deleted
