"""Cases 26 and 55 to 64, 85 to 100 where they are about looks: real files, all but the Spark run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from mv_assets.config import MaterializedView
from mv_assets.errors import MvError
from mv_assets.observe import consistency
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.state.errors import Fenced
from mv_assets.state.model import EMPTY, Outcome
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.inventory import Inventory
from mv_assets_tests.support.lake import (
    HOURLY,
    Lake,
    current_inputs_of,
    day,
    observation_of,
    operations_of,
    through,
    view,
)
from mv_assets_tests.support.memory_table import DAY

Lakes = Callable[..., Lake]
JOINED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL
"""
DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM v GROUP BY ALL"


def daily(**given: object) -> MaterializedView:
    return view("daily", **{"base": "v", "sql": DAILY, "time_column": "day", **given})


@pytest.fixture
def filled(lake: Lakes) -> Lake:
    """Days 0 to 3, all VALID."""
    made = lake()
    made.days(0, 1, 2, 3)
    made.refresh()
    assert (made.states(0, 1, 2, 3), made.watermark()) == ("VVVV", 4)
    return made


def test_26_touch_copy_and_restore_leave_the_buckets_alone(filled: Lake) -> None:
    version, path = filled.version(), filled.folder / "events" / "day-1.parquet"
    path.touch()
    filled.look()
    shutil.copy2(path, path.with_suffix(".bak~"))
    path.unlink()
    path.with_suffix(".bak~").rename(path)
    filled.look()
    assert (filled.version(), filled.states(0, 1, 2, 3)) == (version, "VVVV")


def test_a_late_file_makes_exactly_its_buckets_stale_and_says_which_file(filled: Lake) -> None:
    filled.write("late.parquet", [day(1), day(2)])
    filled.look()
    assert filled.states(0, 1, 2, 3) == "VSSV"
    assert filled.reason(1) == "1 segment added (late.parquet)"
    assert filled.planned() == [("OVERWRITE", [1, 2])]
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_a_corrected_file_and_a_deleted_one_are_disagreed_on(filled: Lake) -> None:
    filled.write("day-1.parquet", through(1), value=99)
    filled.write("more.parquet", [day(2)])
    filled.converge()
    filled.remove("more.parquet")
    filled.write("day-1.parquet", through(1), value=100)
    filled.look()
    assert filled.reason(1) == "1 segment changed (day-1.parquet)"
    assert filled.reason(2) == "1 segment removed (more.parquet)"


def test_marks_of_one_look_are_one_write(filled: Lake) -> None:
    version = filled.version()
    for number in (0, 1, 2, 3):
        filled.write(f"day-{number}.parquet", through(number), value=50)
    filled.look()
    assert (filled.states(0, 1, 2, 3), filled.version()) == ("SSSS", version + 1)
    filled.look()
    assert filled.version() == version + 1


def test_55_delete_then_backfill_goes_valid_empty_stale_and_overwritten(filled: Lake) -> None:
    content = filled.remove("day-1.parquet")
    assert filled.planned() == [("DELETE", [1])]
    filled.converge()
    row = filled.row(1)
    assert row is not None
    assert row.inputs is not None
    assert (filled.states(1), row.inputs.base, filled.watermark()) == ("V", EMPTY, 4)
    (filled.folder / "events" / "day-1.parquet").write_bytes(content)
    assert filled.planned() == [("OVERWRITE", [1])]
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_56_a_backfill_between_the_deletes_look_and_its_write_is_mended_by_the_next_look(
    filled: Lake,
) -> None:
    content = filled.remove("day-1.parquet")
    observed = filled.look()
    looked = current_inputs_of(filled.dry())
    (filled.folder / "events" / "day-1.parquet").write_bytes(content)
    work = planner.plan(observed).work[0]
    assert filled.compute(observed, work, lambda: looked)[1] is Outcome.COMMITTED
    filled.look()
    assert filled.states(1) == "S"
    filled.converge()
    assert filled.states(1) == "V"


def test_57_a_file_without_a_readable_time_range_is_named_and_nothing_is_guessed(filled: Lake) -> None:
    (filled.folder / "events" / "noise.parquet").write_bytes(b"not parquet at all")
    observed = filled.look()
    assert [broken.name for _, broken in observation_of(observed).view_inputs.broken()] == ["noise.parquet"]
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_57_a_file_of_unknown_range_holds_w_but_not_the_work_of_others(filled: Lake) -> None:
    noise = filled.folder / "events" / "noise.parquet"
    noise.write_bytes(b"not parquet at all")
    filled.days(4, 5)
    filled.refresh()
    assert (filled.states(4, 5), filled.watermark()) == ("VV", 4)
    noise.unlink()
    filled.look()
    assert filled.watermark() == 6


def test_57_while_a_file_of_unknown_range_is_there_no_look_is_idle(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    (made.folder / "events" / "noise.parquet").write_bytes(b"not parquet at all")
    made.look()
    assert operations_of(planner.plan(made.look())) == [("APPEND", [0, 1])]
    made.clock.now += 10 * DAY
    assert operations_of(planner.plan(made.look())) == [("APPEND", [0, 1])]


def test_58_a_table_with_no_view_is_not_even_asked_for_its_version(lake: Lakes) -> None:
    made = lake(dimensions=["unused"])
    shutil.rmtree(made.folder / "unused")
    made.days(0)
    made.refresh()
    assert made.states(0) == "V"


def test_59_one_views_failure_does_not_stop_another(lake: Lakes) -> None:
    made = lake(view("bad", sql=JOINED, dimensions=["zones"]), view("good"), dimensions=["zones"])
    made.days(0)
    shutil.rmtree(made.folder / "zones")
    observed = made.watch().round()
    assert isinstance(observed["bad"], TableUnreadable)
    assert not isinstance(observed["good"], MvError)
    assert operations_of(planner.plan(observed["good"])) == [("APPEND", [0])]


def test_60_a_crash_between_inventory_and_marks_loses_no_mark(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.tables["events"].current().listing()
    assert filled.states(1) == "V"
    filled.look()
    assert filled.states(1) == "S"


def test_61_a_compaction_costs_one_refresh_at_most(filled: Lake) -> None:
    for number in (0, 1, 2, 3):
        filled.remove(f"day-{number}.parquet")
    filled.write("compacted.parquet", through(0, 3))
    assert filled.planned() == [("OVERWRITE", [0, 1, 2, 3])]
    filled.converge()
    version = filled.version()
    filled.look()
    assert (filled.states(0, 1, 2, 3), filled.version()) == ("VVVV", version)


def test_62_a_view_that_freezes_keeps_what_retention_removes(lake: Lakes) -> None:
    made = lake(view(on_base_delete="freeze"))
    made.days(0, 1, 2)
    made.converge()
    before, content = made.row(1), made.remove("day-1.parquet")
    made.converge()
    row = made.row(1)
    assert before is not None
    assert row is not None
    assert (row.state, row.frozen, row.generation) == (before.state, True, before.generation)
    assert made.planned() == []
    (made.folder / "events" / "day-1.parquet").write_bytes(content)
    made.converge()
    thawed = made.row(1)
    assert thawed is not None
    assert (thawed.frozen, thawed.generation) == (False, before.generation)


def test_62_a_change_beside_a_missing_file_waits_and_says_for_what(lake: Lakes) -> None:
    made = lake(view(on_base_delete="freeze"))
    made.days(0, 1)
    made.write("second.parquet", [day(0)])
    made.converge()
    made.remove("day-0.parquet")
    made.write("second.parquet", [day(0)], value=7)
    plan = planner.plan(made.look())
    assert (made.states(0), operations_of(plan)) == ("S", [])
    assert [waits.bucket // DAY for waits in plan.waiting] == [0]
    assert "frozen: 1 of its files are gone (day-0.parquet)" in plan.waiting[0].reason


@pytest.mark.parametrize("times", [[day(1)], []], ids=["moved", "emptied"])
def test_62_a_file_rewritten_in_place_is_changed_and_not_gone(lake: Lakes, times: list[datetime]) -> None:
    made = lake(view(on_base_delete="freeze"))
    made.write("a.parquet", [*through(0), *through(1)])
    made.converge()
    assert made.states(0, 1) == "VV"
    made.write("a.parquet", times)
    made.look()
    assert made.states(0, 1) == "SS"
    assert made.reason(0) == ("1 segment removed (a.parquet)")
    row = made.row(0)
    assert row is not None
    assert not row.frozen


def test_63_a_rollback_of_the_base_table_is_followed(filled: Lake) -> None:
    before = {path.name: path.read_bytes() for path in (filled.folder / "events").iterdir()}
    filled.write("day-2.parquet", through(2), value=7)
    filled.write("late.parquet", [day(1)])
    filled.converge()
    filled.remove("late.parquet")
    (filled.folder / "events" / "day-2.parquet").write_bytes(before["day-2.parquet"])
    assert filled.planned() == [("OVERWRITE", [1, 2])]
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_64_downstream_waits_while_upstream_is_stale_and_then_follows_with_exactly_that_bucket(
    lake: Lakes,
) -> None:
    made = lake(view(), daily())
    made.days(0, 1, 2)
    made.converge()
    assert (made.states(0, 1, 2, name="daily"), made.watermark("daily")) == ("VVV", 3)
    made.write("late.parquet", [day(1)])
    plan = planner.plan(made.look("daily"))
    assert (made.states(0, 1, 2), made.states(0, 1, 2, name="daily"), operations_of(plan)) == (
        "VSV",
        "VVV",
        [],
    )
    assert [(w.bucket // DAY, w.reason) for w in plan.waiting] == [
        (1, "waits for v 1970-01-02, which is STALE")
    ]
    made.refresh("v")
    assert made.planned("daily") == [("OVERWRITE", [1])]
    made.converge()
    assert made.states(0, 1, 2, name="daily") == "VVV"


def test_64_a_downstream_that_freezes_takes_a_stale_upstream_bucket_for_no_file_that_is_gone(
    lake: Lakes,
) -> None:
    made = lake(view(), daily(on_base_delete="freeze"))
    made.days(0, 1)
    made.converge()
    made.manager.force(made.catalog.view("daily").declaration, [DAY], "it looks odd")
    made.write("late.parquet", [day(1)])
    plan = planner.plan(made.look("daily"))
    assert [(w.bucket // DAY, w.reason) for w in plan.waiting] == [
        (1, "waits for v 1970-01-02, which is STALE")
    ]
    made.converge()
    assert made.states(0, 1, name="daily") == "VV"


def test_64_downstream_w_is_capped_by_upstream_w(lake: Lakes) -> None:
    made = lake(view(), daily())
    made.days(0, 1, 2)
    made.damage("day-1.parquet")
    (made.folder / "events" / "day-1.parquet").unlink()
    made.write("day-1.parquet", through(1))
    made.look()
    made.damage("day-1.parquet")
    made.converge()
    assert (made.states(0, 1, 2), made.watermark()) == ("VSV", 1)
    assert (made.states(0, 1, 2, name="daily"), made.watermark("daily")) == ("V--", 1)


def test_85_a_changed_dimension_makes_every_bucket_stale_once(lake: Lakes) -> None:
    made = lake(view(sql=JOINED, dimensions=["zones"]), dimensions=["zones"])
    made.write("z.parquet", [day(0)], table="zones")
    made.days(0, 1)
    made.converge()
    made.write("z.parquet", [day(0)], value=5, table="zones")
    made.look()
    assert (made.states(0, 1), made.reason(0)) == ("SS", "dimension zones changed")
    assert made.planned() == [("OVERWRITE", [0, 1])]
    made.converge()
    version = made.version()
    made.look(whole=True)
    assert (made.states(0, 1), made.version()) == ("VV", version)


def joined(lake: Lakes, **options: object) -> Lake:
    made = lake(view(sql=JOINED, dimensions=["zones"]), dimensions=["zones"], **options)
    made.write("z.parquet", [day(0)], table="zones")
    made.days(0, 1)
    made.converge()
    return made


def test_85_a_dimensions_broken_file_makes_its_views_stale_and_fails_their_buckets(lake: Lakes) -> None:
    made = joined(lake)
    (made.folder / "zones" / "z.parquet").write_bytes(b"PAR1 but not really")
    assert operations_of(planner.plan(made.look())) == []
    assert (made.states(0, 1), made.reason(0)) == ("SS", "dimension zones changed")
    made.refresh()
    record = made.snapshot().attempts[0]
    assert record.last_error is not None
    assert "dimension zones: file z.parquet: it can't be read" in record.last_error
    made.write("z.parquet", [day(0)], table="zones")
    assert made.refresh() == {0: "reverted", 1: "reverted"}


def test_85_a_dimension_that_is_being_written_is_waited_for(lake: Lakes) -> None:
    made = joined(lake, table={"settle": "10s"})
    path = made.write("z.parquet", [day(0)], value=5, table="zones")
    made.clock.now = path.stat().st_ctime_ns // 1_000_000 + 9_000
    plan = planner.plan(made.look())
    assert (made.states(0, 1), operations_of(plan)) == ("SS", [])
    assert {waits.reason for waits in plan.waiting} == {"its files are still arriving"}
    made.clock.now += 10_000
    assert made.planned() == [("OVERWRITE", [0, 1])]


def test_85_a_view_on_a_view_waits_for_its_dimension_too(lake: Lakes) -> None:
    sql = (
        "SELECT date_trunc('day', v.hour) AS day, count(*) AS n FROM v JOIN zones z ON v.n = z.x GROUP BY ALL"
    )
    made = lake(view(), daily(dimensions=["zones"], sql=sql), dimensions=["zones"])
    made.write("z.parquet", [day(0)], table="zones")
    made.days(0)
    made.converge()
    path = made.write("z.parquet", [day(0)], value=5, table="zones")
    made.clock.now = path.stat().st_ctime_ns // 1_000_000 + 4_000
    plan = planner.plan(made.look("daily"))
    assert (made.states(0, name="daily"), operations_of(plan)) == ("S", [])
    assert {waits.reason for waits in plan.waiting} == {"its files are still arriving"}


def test_88_a_look_that_only_restores_the_sources_end_moves_w(filled: Lake) -> None:
    noise = filled.folder / "events" / "noise.parquet"
    noise.write_bytes(b"x")
    filled.days(4)
    filled.refresh()
    assert filled.watermark() == 4
    noise.unlink()
    version = filled.version()
    filled.look()
    assert (filled.watermark(), filled.version()) == (5, version + 1)


def test_90_a_change_that_a_commit_did_not_see_is_found_though_the_table_rests(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    observed = filled.look()
    seen = current_inputs_of(observed)
    filled.write("later.parquet", [day(1)])
    filled.look()
    filled.compute(observed, planner.plan(observed).work[0], lambda: seen)
    assert filled.states(1) == "V"
    filled.look()
    assert filled.states(1) == "S"


def test_90_an_unchanged_table_and_map_end_the_look_before_anything_is_listed(filled: Lake) -> None:
    filled.look()
    assert isinstance(filled.look(), Unchanged)
    filled.manager.force(filled.look().view.declaration, [DAY], "a person")
    assert isinstance(filled.look(), Observation)


def test_94_one_row_dated_2099_neither_moves_w_nor_is_lost(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.write("typo.parquet", [day(1), day(47_482)])
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("VV", 2)


def test_95_a_frozen_bucket_is_not_replaced_by_a_forced_mark(lake: Lakes) -> None:
    made = lake(view(on_base_delete="freeze"))
    made.days(0, 1)
    made.converge()
    before = made.row(0)
    made.remove("day-0.parquet")
    made.look()
    made.manager.force(made.look().view.declaration, [0], "a person")
    assert made.planned() == []
    made.converge()
    row = made.row(0)
    assert before is not None
    assert row is not None
    assert (row.generation, row.forced) == (before.generation, True)


def test_96_downstream_is_not_emptied_when_upstream_is_dropped(lake: Lakes) -> None:
    made = lake(view(), daily())
    made.days(0, 1)
    made.converge()
    made.manager.drop("v")
    plan = planner.plan(made.look("daily"))
    assert (made.states(0, 1, name="daily"), operations_of(plan)) == ("VV", [])
    made.converge()
    assert (made.states(0, 1), made.states(0, 1, name="daily")) == ("VV", "VV")


def test_97_the_same_base_name_in_two_hive_folders_is_two_segments(lake: Lakes) -> None:
    made = lake()
    made.write("region=a/part-0.parquet", through(0))
    made.write("region=b/part-0.parquet", through(0))
    made.converge()
    assert (row := made.row(0)) is not None
    assert row.inputs is not None
    assert row.inputs.base.segment_count == 2
    made.remove("region=a/part-0.parquet")
    assert made.planned() == [("OVERWRITE", [0])]


def test_98_buckets_of_an_unreadable_file_fail_and_are_not_rebuilt_without_it(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.converge()
    before = filled.row(1)
    filled.damage("late.parquet")
    plan = planner.plan(filled.look())
    assert operations_of(plan) == []
    assert [failing.planned.bucket // DAY for failing in plan.failing] == [1]
    assert filled.refresh() == {1: "failed"}
    row, record = filled.row(1), filled.snapshot().attempts[DAY]
    assert before is not None
    assert row is not None
    assert (filled.states(0, 1, 2, 3), row.generation) == ("VSVV", before.generation)
    assert record.last_error is not None
    assert "late.parquet" in record.last_error
    assert filled.refresh() == {}
    filled.write("late.parquet", [day(1)])
    filled.converge()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_98_a_broken_file_whose_range_was_forgotten_still_has_the_one_it_was_read_with(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.converge()
    filled.damage("late.parquet")
    inventory = Inventory(filled.store.database, filled.tables["events"].inventory.table)  # type: ignore[attr-defined]
    inventory.forget([name for name, _ in inventory.known()])
    # A view that never read the file is told by the one that did, whichever of them comes first.
    filled.declare(view("a"), view())
    found = filled.watch().round(whole=True)
    for observed in found.values():
        assert isinstance(observed, Observed)
        assert [failing.planned.bucket // DAY for failing in planner.plan(observed).failing] == [1]
    assert (filled.states(0, 1, 2, 3), operations_of(planner.plan(filled.look()))) == ("VSVV", [])


def test_98_a_new_file_whose_pages_are_damaged_fails_the_buckets_of_its_footer(filled: Lake) -> None:
    before = filled.row(1)
    filled.write("late.parquet", [day(1)])
    filled.spoil("late.parquet", "at")
    filled.days(4)
    plan = planner.plan(filled.look())
    assert operations_of(plan) == [("APPEND", [4])]
    assert [failing.planned.bucket // DAY for failing in plan.failing] == [1]
    assert filled.refresh()[1] == "failed"
    row = filled.row(1)
    assert before is not None
    assert row is not None
    assert (filled.states(0, 1, 2, 3, 4), row.generation) == ("VSVVV", before.generation)
    # Nothing is held that is not its own: it is known where the file's rows belong.
    assert filled.watermark() == 5
    assert "late.parquet" in (filled.snapshot().attempts[DAY].last_error or "")


@pytest.mark.parametrize("healed", [True, False])
def test_98_a_damaged_file_that_heals_or_goes_leaves_its_buckets_valid(filled: Lake, *, healed: bool) -> None:
    filled.write("late.parquet", [day(1)])
    filled.spoil("late.parquet", "at")
    filled.refresh()
    assert filled.states(0, 1, 2, 3) == "VSVV"
    if healed:
        filled.write("late.parquet", [day(1)])
    else:
        filled.remove("late.parquet")
    filled.converge()
    row = filled.row(1)
    assert row is not None
    assert row.inputs is not None
    assert (filled.states(0, 1, 2, 3), row.inputs.base.segment_count) == ("VVVV", 2 if healed else 1)


def test_98_a_new_file_above_w_fails_its_bucket_and_holds_w_there(filled: Lake) -> None:
    filled.days(4, 5, 6)
    filled.spoil("day-5.parquet", "at")
    filled.refresh()
    assert (filled.states(4, 5, 6), filled.watermark()) == ("VSV", 5)
    filled.days(5)
    filled.converge()
    assert (filled.states(4, 5, 6), filled.watermark()) == ("VVV", 7)


@pytest.mark.parametrize("bucket", ["1w", "1mo"])
def test_100_week_and_month_buckets_hold_their_days_before_1970_too(lake: Lakes, bucket: str) -> None:
    sql = HOURLY.replace("'hour'", "'day'")
    made = lake(view(sql=sql, bucket=bucket, start="1969-11-03"))
    for number in range(-59, 3):
        made.write(f"{number}.parquet", through(number))
    made.converge()
    header = made.snapshot().header
    assert header.watermark == header.buckets.floor(2 * DAY + DAY - 1)
    late = made.folder / "events" / "-40.parquet"
    made.write(late.name, through(-40), value=3)
    made.look()
    stale = [b for b in made.snapshot().rows if made.snapshot().rows[b].state == "STALE"]
    assert stale == [header.buckets.floor(-40 * DAY)]


def test_a_new_definition_takes_over_and_the_earlier_deployment_is_fenced(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    changed = HOURLY.replace("count(*)", "count(x)")
    newer = lake(view(sql=changed))
    newer.look()
    assert (newer.states(0, 1), newer.watermark()) == ("SS", 0)
    assert newer.planned() == [("OVERWRITE", [0, 1])]
    assert planner.plan(newer.look()).work[0].reason == "the view's definition changed"
    with pytest.raises(Fenced):
        made.look()
    newer.converge()
    made.manager.adopt("v", made.catalog.view("v").definition)
    made.converge()
    assert (made.states(0, 1), made.watermark()) == ("VV", 2)


def test_a_changed_type_of_a_partition_column_is_an_input_that_can_go_back(lake: Lakes) -> None:
    sql = "SELECT date_trunc('hour', at) AS hour, region, count(*) AS n FROM events GROUP BY ALL"
    made = lake(view(sql=sql))
    made.write("region=1/a.parquet", through(0))
    made.write("region=2/a.parquet", through(1))
    made.converge()
    path = made.write("region=x/a.parquet", through(2))
    made.look()
    assert made.reason(0) == "schema of events changed"
    path.unlink()
    assert made.planned() == [("REVERT", [0, 1])]
    made.converge()
    assert made.states(0, 1) == "VV"


def test_a_root_that_is_gone_is_not_an_empty_table(filled: Lake) -> None:
    (filled.folder / "events").rename(filled.folder / "elsewhere")
    with pytest.raises(TableUnreadable, match="events"):
        filled.look()
    assert filled.states(0, 1, 2, 3) == "VVVV"


def test_a_bucket_above_w_is_marked_like_any_other(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1, 2)
    made.look()
    made.damage("day-0.parquet")
    made.refresh()
    assert (made.states(0, 1, 2), made.watermark()) == ("SVV", 0)
    made.write("late.parquet", [day(2)])
    made.look()
    assert made.states(0, 1, 2) == "SVS"


def test_files_before_coverage_are_nobodys_business(lake: Lakes) -> None:
    made = lake(view(start="1970-01-02"))
    made.days(0, 1)
    made.converge()
    version = made.version()
    made.write("early.parquet", [day(0)])
    made.look()
    assert (made.states(0, 1), made.version()) == ("-V", version)


def test_a_dry_look_sees_the_same_and_writes_nothing(filled: Lake) -> None:
    filled.write("late.parquet", [day(1)])
    filled.days(4)
    version = filled.version()
    dry = operations_of(planner.plan(filled.dry()))
    assert (filled.version(), filled.states(1)) == (version, "V")
    assert dry == filled.planned() == [("OVERWRITE", [1]), ("APPEND", [4])]


def test_a_second_round_sees_what_came_after_the_first(filled: Lake) -> None:
    watch = filled.watch()
    watch.round()
    filled.write("late.parquet", [day(1)])
    watch.round()
    assert filled.states(0, 1, 2, 3) == "VSVV"


def test_the_reason_names_a_few_files_and_counts_the_rest(filled: Lake) -> None:
    for number in range(7):
        filled.write(f"late-{number}.parquet", [day(1) + timedelta(minutes=number)])
    filled.look()
    reason = "7 segments added (late-0.parquet, late-1.parquet, late-2.parquet and 4 more)"
    assert filled.reason(1) == reason


def test_comparing_needs_recorded_segments_only_where_the_base_differs(lake: Lakes) -> None:
    made = lake(view(sql=JOINED, dimensions=["zones"]), dimensions=["zones"])
    made.write("z.parquet", [day(0)], table="zones")
    made.days(0, 1)
    made.converge()
    made.write("z.parquet", [day(0)], value=5, table="zones")
    made.write("late.parquet", [day(1)])
    observation, snapshot = observation_of(made.dry()), made.snapshot()
    found = consistency.differing(snapshot, observation.buckets.values(), snapshot.header.version)
    assert [each.bucket // DAY for each in found] == [0, 1]
    assert consistency.needs_recorded(snapshot, found) == [DAY]


def test_a_row_written_since_the_look_began_is_left_to_the_next_look(filled: Lake) -> None:
    began = observation_of(filled.look(whole=True))
    filled.write("late.parquet", [day(1)])
    filled.converge()
    peers, seen = filled.snapshot(), began.buckets.values()
    assert consistency.differing(peers, seen, began.snapshot.header.version) == []
    found = consistency.differing(peers, seen, peers.header.version)
    assert [each.bucket // DAY for each in found] == [1]
