"""Cases 61 and 125 where a table says that it only rewrote files: the same rows, so nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from mv_assets.config import MaterializedView
from mv_assets.maintain.audit import audit
from mv_assets.observe import additions
from mv_assets.plan import planner
from mv_assets.query.route.pinned import Pinned
from mv_assets.state.errors import Fenced
from mv_assets.state.model import Operation, Outcome, PartitionRow, Segment, Snapshot
from mv_assets_tests.support.lake import Lake, day, observation_of, operations_of, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.queried_lake import ZONES, QueriedLakes
from mv_assets_tests.support.spark_lake import SparkLake

Lakes = Callable[..., Lake]
SparkLakes = Callable[..., SparkLake]
DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"
ROLLING = "SELECT :bucket_start AS day, count(*) AS n FROM events"
PAID = """
    SELECT :bucket_start AS day, (SELECT count(*) FROM events) AS n, (SELECT count(*) FROM payments) AS paid
"""
JOINED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL
"""
FILES = [f"day-{number}.parquet" for number in range(4)]


def daily() -> MaterializedView:
    return view("daily", base="v", sql=DAILY, time_column="day")


@pytest.fixture
def filled(lake: Lakes) -> Lake:
    """Days 0 to 3, all VALID."""
    return fill(lake())


def fill(made: Lake) -> Lake:
    made.days(0, 1, 2, 3)
    made.converge()
    assert made.states(0, 1, 2, 3) == "VVVV"
    return made


def data_of(made: Lake, name: str = "v") -> dict[int, object]:
    """What a reader, Dagster and views above see of each bucket."""
    rows = made.snapshot(name).rows
    return {b: (r.state, r.generation, r.content, r.rows, r.refreshed_at) for b, r in rows.items()}


def recorded(made: Lake, number: int, name: str = "v") -> set[str]:
    return {each.name for each in made.store.recorded(name, [number * DAY])[number * DAY]}


def log(made: Lake, number: int) -> list[Operation]:
    """What happened to a bucket, the last first."""
    with made.store.read("v") as reader:
        return [event.operation for event in reader.events(number * DAY)]


def row_of(made: Lake, number: int) -> PartitionRow:
    row = made.row(number)
    assert row is not None
    return row


def test_61_a_compaction_that_the_table_tells_of_computes_nothing(filled: Lake) -> None:
    before, version = data_of(filled), filled.version()
    filled.compact(FILES, "all.parquet")
    assert operations_of(planner.plan(filled.look())) == []
    assert (data_of(filled), filled.version()) == (before, version + 1)
    assert {each for number in range(4) for each in recorded(filled, number)} == {"all.parquet"}
    assert [log(filled, number)[0] for number in range(4)] == [Operation.FOLLOW] * 4
    filled.look(whole=True)
    assert filled.version() == version + 1


def test_the_log_says_what_became_of_which_files(filled: Lake) -> None:
    filled.compact(FILES[:2], "both.parquet")
    filled.look()
    with filled.store.read("v") as reader:
        [event] = reader.events(0, 1)
    assert event.why == (
        "rewritten files, same rows by the table's word: "
        "1 segment added (both.parquet), 1 segment removed (day-0.parquet)"
    )
    assert log(filled, 2)[0] is Operation.APPEND


def test_61_a_compaction_that_nobody_tells_of_costs_one_refresh(filled: Lake) -> None:
    filled.compact(FILES, "all.parquet")
    filled.rewrites["events"].clear()
    assert filled.planned() == [("OVERWRITE", [0, 1, 2, 3])]
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_a_dry_look_sees_no_work_and_writes_nothing(filled: Lake) -> None:
    filled.compact(FILES, "all.parquet")
    version = filled.version()
    assert operations_of(planner.plan(filled.dry())) == []
    assert filled.version() == version


def test_a_compaction_of_a_compaction_is_followed_in_one_look(filled: Lake) -> None:
    before = data_of(filled)
    filled.compact(FILES[:2], "low.parquet")
    filled.compact(FILES[2:], "high.parquet")
    filled.compact(["low.parquet", "high.parquet"], "a.parquet", "b.parquet", "c.parquet")
    filled.look()
    assert data_of(filled) == before
    assert recorded(filled, 1) == {"a.parquet", "b.parquet"}
    filled.compact(["a.parquet", "b.parquet", "c.parquet"], "all.parquet")
    filled.look()
    assert (data_of(filled), recorded(filled, 1)) == (before, {"all.parquet"})


def test_a_bucket_between_two_files_that_became_one_is_not_touched_by_the_rows_of_neither(
    filled: Lake,
) -> None:
    """The new file's range covers days of which it holds nothing."""
    before = data_of(filled)
    filled.compact(["day-0.parquet", "day-3.parquet"], "ends.parquet")
    filled.look()
    assert data_of(filled) == before
    assert recorded(filled, 1) == {"day-1.parquet", "ends.parquet"}
    filled.compact(["ends.parquet"], "first.parquet", "last.parquet")
    filled.look()
    assert (data_of(filled), recorded(filled, 1)) == (before, {"day-1.parquet"})


def test_a_late_file_after_a_compaction_in_one_look_marks_its_bucket_only(filled: Lake) -> None:
    before = data_of(filled)
    filled.compact(FILES, "all.parquet")
    filled.write("late.parquet", [day(1)])
    plan = planner.plan(filled.look())
    assert (filled.states(0, 1, 2, 3), operations_of(plan)) == ("VSVV", [("OVERWRITE", [1])])
    assert filled.reason(1) == "1 segment added (late.parquet)"
    assert recorded(filled, 1) == {"all.parquet"}
    assert {b: each for b, each in data_of(filled).items() if b != DAY} == {
        b: each for b, each in before.items() if b != DAY
    }
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_a_late_file_that_is_compacted_before_anybody_looks_is_not_lost(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.compact([*FILES, "late.parquet"], "all.parquet")
    assert filled.planned() == [("OVERWRITE", [1])]
    assert filled.states(0, 1, 2, 3) == "VSVV"
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_a_late_file_that_is_seen_and_then_compacted_leaves_its_bucket_stale(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.look()
    filled.compact([*FILES, "late.parquet"], "all.parquet")
    assert filled.planned() == [("OVERWRITE", [1])]
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


@pytest.mark.parametrize("looked", [False, True])
def test_a_file_that_changed_before_it_was_compacted_is_a_change(filled: Lake, *, looked: bool) -> None:
    """As a deletion vector changes the checksum of its file."""
    filled.write("day-1.parquet", through(1), value=99)
    if looked:
        filled.look()
    filled.compact(FILES, "all.parquet")
    assert filled.planned() == [("OVERWRITE", [1])]


@pytest.mark.parametrize("looked", [False, True])
def test_125_a_new_file_that_changed_since_marks_the_buckets_it_reaches(
    filled: Lake, *, looked: bool
) -> None:
    filled.compact(FILES, "low.parquet", "high.parquet")
    if looked:
        filled.look()
    rows = pq.read_table(filled.folder / "events" / "high.parquet")
    pq.write_table(rows.slice(1), filled.folder / "events" / "high.parquet")
    filled.look()
    assert filled.states(0, 1, 2, 3) == "VVSS"
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_half_of_a_rewrite_proves_nothing(filled: Lake) -> None:
    filled.write("more.parquet", [day(1)])
    filled.converge()
    filled.write("more.parquet", [day(1), day(1)])
    filled.compact(["day-1.parquet", "more.parquet"], "one.parquet")
    assert filled.planned() == [("OVERWRITE", [1])]


def test_a_stale_bucket_whose_late_file_went_again_is_valid_by_the_rewrite(filled: Lake) -> None:
    before = data_of(filled)
    filled.write("late.parquet", [day(1)])
    filled.look()
    assert filled.states(0, 1, 2, 3) == "VSVV"
    filled.remove("late.parquet")
    filled.compact(FILES, "all.parquet")
    assert filled.planned() == []
    assert data_of(filled) == before
    assert log(filled, 1)[:2] == [Operation.FOLLOW, Operation.MARK]


def test_a_forced_mark_is_not_followed_and_is_served_by_a_later_read(filled: Lake) -> None:
    declaration = filled.catalog.view("v").declaration
    filled.manager.force(declaration, [DAY], "a person")
    filled.compact(FILES, "all.parquet")
    filled.look()
    assert (filled.states(0, 1, 2, 3), recorded(filled, 1)) == ("VSVV", {"day-1.parquet"})
    assert filled.planned() == [("OVERWRITE", [1])]


def test_a_row_without_data_and_a_vacant_one_are_computed(filled: Lake) -> None:
    filled.days(4, 5)
    filled.spoil("day-4.parquet", "at")
    filled.converge()
    assert filled.states(4, 5) == "SV"
    filled.write("day-4.parquet", through(4))
    filled.days(6)
    filled.compact([f"day-{number}.parquet" for number in (4, 5, 6)], "all.parquet")
    filled.clock.now += 3_600_000
    assert filled.planned() == [("OVERWRITE", [4]), ("APPEND", [6])]
    filled.converge()
    assert filled.states(4, 5, 6) == "VVV"


def test_a_fenced_deployment_does_not_follow(filled: Lake) -> None:
    old = filled.catalog
    filled.declare(view(sql=f"{view().sql} HAVING count(*) > 0"))
    filled.converge()
    filled.catalog = old
    filled.compact(FILES, "all.parquet")
    version = filled.version()
    with pytest.raises(Fenced):
        filled.look()
    assert filled.version() == version


def test_a_definition_that_is_adopted_again_finds_its_rows_in_the_new_files(filled: Lake) -> None:
    first, before = filled.catalog, data_of(filled)
    filled.declare(view(sql=f"{view().sql} HAVING count(*) > 0"))
    filled.look()
    filled.compact(FILES, "all.parquet")
    filled.look()
    assert filled.states(0, 1, 2, 3) == "SSSS"
    filled.catalog = first
    filled.manager.adopt("v", first.view("v").definition)
    assert filled.planned() == []
    assert data_of(filled) == before


class TestFreezing:
    @pytest.fixture
    def frozen(self, lake: Lakes) -> Lake:
        return fill(lake(view(on_base_delete="freeze")))

    def test_names_that_a_rewrite_took_are_not_gone(self, frozen: Lake) -> None:
        before = data_of(frozen)
        frozen.compact(FILES, "all.parquet")
        assert frozen.planned() == []
        assert data_of(frozen) == before
        assert not any(row.frozen for row in frozen.snapshot().rows.values())

    @pytest.mark.parametrize("looked", [False, True])
    def test_what_retention_takes_after_a_rewrite_is_kept(self, frozen: Lake, *, looked: bool) -> None:
        before = data_of(frozen)
        frozen.compact(FILES, "low.parquet", "high.parquet")
        if looked:
            frozen.look()
        frozen.remove("low.parquet")
        assert frozen.planned() == []
        assert data_of(frozen) == before
        assert [row_of(frozen, number).frozen for number in range(4)] == [True, True, False, False]

    def test_what_is_left_of_a_frozen_bucket_may_be_rewritten(self, frozen: Lake) -> None:
        frozen.write("more.parquet", [day(0), day(1)])
        frozen.converge()
        before = data_of(frozen)
        frozen.remove("day-0.parquet")
        frozen.look()
        frozen.compact(["more.parquet", "day-1.parquet"], "all.parquet")
        frozen.look()
        assert (data_of(frozen), row_of(frozen, 0).frozen) == (before, True)
        # The table need not tell of it for ever.
        frozen.rewrites["events"].clear()
        assert frozen.planned() == []
        assert (data_of(frozen), recorded(frozen, 0)) == (before, {"day-0.parquet", "all.parquet"})

    def test_a_rewrite_that_proves_nothing_is_a_change_and_no_retention(self, frozen: Lake) -> None:
        frozen.write("day-1.parquet", through(1), value=99)
        frozen.compact(FILES, "all.parquet")
        assert frozen.planned() == [("OVERWRITE", [1])]
        frozen.converge()
        assert frozen.states(0, 1, 2, 3) == "VVVV"

    def test_retention_after_a_rewrite_that_proves_nothing_empties_no_bucket(self, frozen: Lake) -> None:
        before = [row_of(frozen, number).rows for number in range(4)]
        frozen.write("day-1.parquet", through(1), value=99)
        frozen.compact(FILES, "all.parquet")
        frozen.remove("all.parquet")
        assert frozen.planned() == []
        assert [row_of(frozen, number).rows for number in range(4)] == before


def test_windows_follow_wherever_a_file_reaches(lake: Lakes) -> None:
    base: dict[str, Any] = {"table": "events", "from": "2d"}
    made = fill(lake(view(base=base, scope="bucket", sql=ROLLING, time_column="day")))
    before = data_of(made)
    made.compact(FILES[:2], "low.parquet")
    assert made.planned() == []
    assert data_of(made) == before
    assert recorded(made, 3) == {"low.parquet", "day-2.parquet", "day-3.parquet"}
    made.write("day-0.parquet", [day(0)])
    made.compact(["low.parquet", "day-0.parquet", "day-3.parquet"], "ends.parquet")
    # The file came to day 0, which is in the windows of days 0 to 2.
    assert made.planned() == [("OVERWRITE", [0, 1, 2])]


def test_of_two_tables_each_follows_its_own(lake: Lakes) -> None:
    given: dict[str, Any] = {"with": [{"table": "payments", "to": "1d"}], "scope": "bucket"}
    made = lake(view(**given, sql=PAID, time_column="day"), further=["payments"])
    made.days(0, 1, 2, 3)
    made.days(0, 1, 2, 3, 4, table="payments")
    made.converge()
    before = data_of(made)
    # The same names in both tables, and only one of them is rewritten.
    made.compact(FILES, "all.parquet", table="payments")
    assert made.planned() == []
    assert (data_of(made), recorded(made, 0)) == (before, {"day-0.parquet", "all.parquet"})
    made.compact(FILES, "all.parquet")
    made.write("late.parquet", [day(2)], table="payments")
    assert made.planned() == [("OVERWRITE", [1, 2])]
    made.converge()
    assert made.states(0, 1, 2, 3) == "VVVV"


def test_a_dimension_that_is_compacted_makes_no_bucket_stale(lake: Lakes) -> None:
    made = lake(view(sql=JOINED, dimensions=["zones"]), dimensions=["zones"])
    made.write("a.parquet", [day(0)], 0, "zones")
    made.write("b.parquet", [day(0)], 1, "zones")
    fill(made)
    before = data_of(made)
    made.compact(["a.parquet", "b.parquet"], "all.parquet", table="zones")
    assert made.planned() == []
    assert data_of(made) == before
    made.write("c.parquet", [day(0)], 2, "zones")
    made.compact(["all.parquet", "c.parquet"], "more.parquet", table="zones")
    assert made.planned() == [("OVERWRITE", [0, 1, 2, 3])]


def test_views_above_see_no_change(lake: Lakes) -> None:
    made = fill(lake(view(), daily()))
    before, version = data_of(made, "daily"), made.version("daily")
    made.compact(FILES, "all.parquet")
    made.converge()
    assert (data_of(made, "daily"), made.version("daily")) == (before, version)


def test_an_attempt_on_files_that_are_rewritten_meanwhile_ends_with_right_rows(lake: Lakes) -> None:
    made = fill(lake())
    made.write("late.parquet", [day(1)])
    observed = made.look()
    [work] = planner.plan(observed).work
    made.compact([*FILES, "late.parquet"], "all.parquet")
    now = {b: seen.current for b, seen in observation_of(made.dry()).buckets.items()}
    outcome = made.compute(observed, work, lambda: now)[1]
    # Where nothing says that a file it read has changed, its rows are committed; and then they follow.
    assert outcome in (Outcome.SOURCE_CHANGED, Outcome.COMMITTED_STALE)
    assert made.planned() == ([] if outcome is Outcome.COMMITTED_STALE else [("OVERWRITE", [1])])
    made.converge()
    assert made.states(0, 1, 2, 3) == "VVVV"


def test_a_late_file_is_merged_into_rows_that_followed(lake: Lakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "WORTH", -(1 << 30))
    made = fill(lake())
    made.compact(FILES, "all.parquet")
    made.write("late.parquet", [day(1)])
    for observed in (made.dry(), made.look()):
        found = observation_of(observed)
        added = {bucket: each.added for bucket, each in found.additions.items()}
        assert {b: [found.view_inputs.base.names[at] for at in each] for b, each in added.items()} == {
            DAY: ["late.parquet"]
        }
    made.converge()
    assert made.states(0, 1, 2, 3) == "VVVV"


def test_a_rewrite_of_other_files_than_those_recorded_is_not_applied(filled: Lake) -> None:
    """The table speaks of a file with another checksum than the one that was read."""
    filled.compact(FILES, "all.parquet")
    [told] = filled.rewrites["events"]
    other = tuple(replace(each, crc=each.crc + 1) for each in told.removed)
    filled.rewrites["events"][:] = [replace(told, removed=other)]
    assert filled.planned() == [("OVERWRITE", [0, 1, 2, 3])]


def test_a_range_that_is_told_too_narrow_is_computed_again(filled: Lake) -> None:
    filled.compact(FILES, "all.parquet")
    [told] = filled.rewrites["events"]
    narrow = (Segment("all.parquet", told.added[0].crc, 0, DAY - 1),)
    filled.rewrites["events"][:] = [replace(told, added=narrow)]
    assert filled.planned() == [("OVERWRITE", [1, 2, 3])]


def test_a_strict_query_takes_rewritten_buckets_from_the_view_before_anybody_looked(
    queried_lake: QueriedLakes,
) -> None:
    made = queried_lake(filled=3)
    made.lake.compact(FILES[:2], "both.parquet")
    made.declared()
    assert made.right(ZONES, "v: 3 + 0").served.files_from_base == 0
    made.day(1, "late.parquet", seed=1)
    made.right(ZONES, "v: 2 + 1")
    made.lake.rewrites["events"].clear()
    made.right(ZONES, "v: 1 + 2")


def test_a_query_that_reads_an_older_map_does_not_take_a_peers_record_for_its_own(
    queried_lake: QueriedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = queried_lake(filled=3)
    made.lake.compact(FILES[:2], "both.parquet")
    made.day(1, "late.parquet", seed=1)
    made.declared()
    old, read = made.lake.snapshot(), Pinned.snapshot

    def pinned(self: Pinned, name: str) -> Snapshot | None:
        read(self, name)
        return old

    made.lake.converge()
    assert made.lake.states(0, 1, 2) == "VVV"
    monkeypatch.setattr(Pinned, "snapshot", pinned)
    # Day 0 has followed as well; what is recorded of it is not what the older map has.
    made.right(ZONES, "v: 1 + 2")


def test_an_audit_finds_a_rewrite_whose_rows_are_not_the_same(spark_lake: SparkLakes) -> None:
    made = spark_lake()
    made.days(0, 1, 2, 3)
    made.converge()
    rows = pq.read_table(made.folder / "events" / "day-1.parquet")
    made.replace(["day-1.parquet"], {"less.parquet": rows.slice(1)})
    made.look()
    assert made.states(0, 1, 2, 3) == "VVVV"
    verdicts = {each.bucket // DAY: each for each in audit(made.open(), made.catalog.view("v"), None)}
    assert [number for number, each in verdicts.items() if each.wrong] == [1]
    assert (made.states(0, 1, 2, 3), row_of(made, 1).forced) == ("VSVV", True)
    made.converge()
    assert made.states(0, 1, 2, 3) == "VVVV"
