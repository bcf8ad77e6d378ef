"""Runs of a view's asset: what the sensor asks for, and what a person does in the UI."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from sqlalchemy import text

from mv_assets.buckets import DAY
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.spark.errors import EngineUnavailable
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, failure_of, name_of

Make = Callable[..., InProcessDagster]
SUMS = "SELECT date_trunc('hour', at) AS hour, sum(x) AS n FROM events GROUP BY ALL"


def test_a_cold_view_is_filled_by_one_ranged_run(dagster: Make) -> None:
    made = dagster()
    assert made.settle() == ["v 1970-01-01..1970-01-04"]
    assert sorted(made.materialized("v")) == ["1970-01-01", "1970-01-02", "1970-01-03", "1970-01-04"]
    assert made.lake.states(0, 1, 2, 3) == "VVVV"


ELSEWHERE = dg.DailyPartitionsDefinition("1970-01-01", timezone="America/New_York")
PLACES = dg.StaticPartitionsDefinition(["eu", "us"])


@pytest.mark.parametrize(
    ("partitions", "key"),
    [
        (ELSEWHERE, "1970-01-02"),
        (dg.DailyPartitionsDefinition("1970-01-04", timezone="UTC"), "1970-01-04"),
        (PLACES, "eu"),
        (dg.MultiPartitionsDefinition({"day": ELSEWHERE, "place": PLACES}), "1970-01-02|eu"),
        (None, None),
    ],
)
def test_an_asset_that_writes_the_base_table_may_be_partitioned_as_it_likes(
    dagster: Make, partitions: dg.PartitionsDefinition | None, key: str | None
) -> None:
    @dg.asset(partitions_def=partitions)
    def raw() -> None: ...

    made = dagster(extra=dg.Definitions(assets=[raw]), produced_by={"events": raw.key})
    made.instance.report_runless_asset_event(dg.AssetMaterialization("raw", partition=key))
    made.settle()
    assert made.lake.states(0, 1, 2, 3) == "VVVV"


def test_a_late_file_is_one_bucket_of_every_view_above_it(dagster: Make) -> None:
    made = dagster(view(), view("w", base="v", sql="SELECT hour, n FROM v", bucket="1d"))
    assert made.settle() == ["v 1970-01-01..1970-01-04", "w 1970-01-01..1970-01-04"]
    made.lake.write("late.parquet", [day(1)])
    assert made.settle() == ["v 1970-01-02", "w 1970-01-02"]


def test_a_person_who_materializes_what_is_valid_gets_it_computed_again(dagster: Make) -> None:
    made = dagster()
    made.settle()
    before = made.generations()
    assert made.materialize("v", "1970-01-02", "1970-01-03").success
    after = made.generations()
    assert [b for b in before if after[b] != before[b]] == [1, 2]
    assert made.settle() == []


def test_a_machine_that_asks_for_what_is_valid_gets_nothing_computed(dagster: Make) -> None:
    made = dagster()
    made.settle()
    before = made.generations()
    assert made.materialize("v", "1970-01-02", tags={"dagster/schedule_name": "nightly"}).success
    assert made.materialize("v", "1970-01-02", config={"force": False}).success
    assert made.generations() == before


def test_a_damaged_file_is_a_run_that_fails_and_names_it(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.damage("day-1.parquet")
    (request,) = made.tick().run_requests or ()
    assert name_of(request) == "v 1970-01-02"
    said = failure_of(made.run(request))
    assert "1970-01-02 failed" in said
    assert "day-1.parquet" in said


def test_a_state_that_can_not_be_used_fails_a_run_in_one_sentence(dagster: Make) -> None:
    made = dagster()
    (request,) = made.tick().run_requests or ()
    with made.lake.store.database.write() as connection:
        connection.execute(text("UPDATE mv_schema SET version = version + 1"))
    said = failure_of(made.run(request))
    with made.lake.store.database.write() as connection:
        connection.execute(text("UPDATE mv_schema SET version = version - 1"))
    assert said.startswith("the state database")
    assert said.endswith("upgrade mv_assets, or point `state` at another database")


def test_only_what_failed_of_a_range_is_missing(dagster: Make) -> None:
    made = dagster(view(sql=SUMS))
    made.lake.spoil("day-1.parquet", "x")
    (request,) = made.tick().run_requests or ()
    result = made.run(request)
    assert not result.success
    assert "1 of 4 buckets of v are not up to date" in failure_of(result)
    told = made.materialized("v")
    assert sorted(told) == ["1970-01-01", "1970-01-03", "1970-01-04"]
    assert told["1970-01-01"].metadata["operation"].value == "APPEND"
    assert "dagster/input_event_pointer/events" in (told["1970-01-01"].tags or {})


def test_healing_a_file_is_asked_for_at_once(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.damage("day-1.parquet")
    made.settle()
    made.lake.write("day-1.parquet", through(1), 7)
    assert made.settle() == ["v 1970-01-02"]
    assert made.lake.states(0, 1, 2, 3) == "VVVV"


def test_a_bucket_whose_inputs_turned_out_equal_needs_no_run(dagster: Make) -> None:
    made = dagster()
    made.settle()
    kept = made.lake.remove("day-1.parquet")
    made.lake.look()
    (made.lake.folder / "events" / "day-1.parquet").write_bytes(kept)
    made.tick()
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert made.settle() == []


def test_re_executing_a_failed_run_tries_what_failed_whatever_its_backoff(dagster: Make) -> None:
    made = dagster(view(sql=SUMS))
    made.lake.spoil("day-1.parquet", "x")
    first = [made.run(request) for request in made.tick().run_requests or ()]
    (failed,) = [result for result in first if not result.success]
    before = made.generations()
    made.lake.clock.now += 1
    again = made.materialize("v", "1970-01-01", "1970-01-04", tags={"dagster/parent_run_id": failed.run_id})
    assert not again.success
    assert "1 of 4 buckets" in failure_of(again)
    after = made.generations()
    assert [after[b] == before[b] for b in (0, 2, 3)] == [True] * 3


def test_metadata_tells_of_the_bucket_and_once_of_the_view(dagster: Make) -> None:
    made = dagster()
    made.settle()
    told = made.materialized("v")
    bucket = {name: value.value for name, value in told["1970-01-02"].metadata.items()}
    assert (bucket["operation"], bucket["rows"], bucket["files"]) == ("APPEND", 2, 1)
    assert "partition_map" not in bucket
    assert (bucket["files added"], bucket["files removed"]) == (1, 0)
    last = told["1970-01-04"].metadata
    assert last["watermark"].value == "1970-01-05T00:00:00Z"
    assert str(last["partition_map"].value).startswith("![partition map](data:image/png;base64,")
    columns = last["dagster/column_schema"].value
    assert isinstance(columns, dg.TableSchema)
    assert [column.name for column in columns.columns] == ["hour", "n"]


def test_a_run_warns_nobody_of_what_is_in_beta(dagster: Make) -> None:
    made = dagster()
    requests = made.tick().run_requests or ()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for request in requests:
            assert made.run(request).success
    assert [str(each.message) for each in warned if "mv_assets" in each.filename] == []


def test_metadata_says_which_files_were_the_reason(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.write("late.parquet", [day(1)])
    (made.lake.folder / "events" / "day-2.parquet").unlink()
    made.settle()
    told = made.materialized("v")
    late = {name: value.value for name, value in told["1970-01-02"].metadata.items()}
    assert late["reason"] == "1 file added (late.parquet)"
    assert (late["files added"], late["files changed"], late["files removed"]) == (1, 0, 0)
    # The lake's clock is an hour ahead of the one that dates its files.
    assert 3_000 < cast("float", late["seconds from newest file"]) <= 3_600
    gone = {name: value.value for name, value in told["1970-01-03"].metadata.items()}
    assert gone["reason"] == "1 file removed (day-2.parquet)"
    assert "seconds from newest file" not in gone


def test_a_bucket_that_lies_in_no_data_yet_is_computed_for_a_person_only(dagster: Make) -> None:
    made = dagster(days=(0, 1))
    made.lake.write("more.parquet", [day(2, 1)])
    assert made.settle() == ["v 1970-01-01..1970-01-02"]
    assert made.materialize("v", "1970-01-03").success
    assert made.lake.states(0, 1, 2) == "VVV"
    made.lake.write("rest.parquet", through(2))
    assert made.settle() == ["v 1970-01-03"]


def test_a_bucket_without_rows_is_no_empty_one_for_a_person_either(dagster: Make) -> None:
    made = dagster(view(closes="1h"), days=(0, 1))
    made.settle()
    said = failure_of(made.materialize("v", "1970-01-02", "1970-01-03"))
    assert "1 of 2 buckets of v are not up to date" in said
    assert "1970-01-03 waiting: events has no rows of it yet: it ends at 1970-01-04T00:00:00Z" in said
    assert (made.lake.states(0, 1, 2), made.lake.watermark()) == ("VV-", 2)


def test_executing_a_failed_run_again_computes_what_is_not_due(dagster: Make) -> None:
    made = dagster(days=(0, 1))
    made.settle()
    failed = made.materialize("v", "1970-01-03")
    assert not failed.success
    made.lake.write("more.parquet", [day(2, 1)])
    assert made.settle() == []
    again = {"dagster/parent_run_id": failed.run_id}
    assert made.materialize("v", "1970-01-03", tags=again).success
    assert (made.lake.states(2), made.lake.watermark()) == ("V", 2)


def test_a_machine_gets_nothing_that_is_not_due(dagster: Make) -> None:
    made = dagster(days=(0, 1))
    made.lake.write("more.parquet", [day(2, 1)])
    made.settle()
    for given in ({"tags": {"dagster/schedule_name": "nightly"}}, {"config": {"force": False}}):
        assert made.materialize("v", "1970-01-03", **given).success
        assert made.lake.states(0, 1, 2) == "VV-"


def test_dagsters_own_retry_of_a_failed_run_does_not_defeat_the_backoff(dagster: Make) -> None:
    made = dagster(view(sql=SUMS))
    made.lake.spoil("day-1.parquet", "x")
    (request,) = made.tick().run_requests or ()
    failed = made.run(request)
    retry = {"dagster/parent_run_id": failed.run_id, "dagster/retry_number": "1"}
    assert not made.materialize("v", "1970-01-02", tags=retry).success
    snapshot = made.lake.store.snapshot("v")
    assert not snapshot.rows[DAY].forced
    assert snapshot.attempts[DAY].count == 1


def test_executing_a_good_run_again_computes_it_all_once_more(dagster: Make) -> None:
    made = dagster()
    (request,) = made.tick().run_requests or ()
    first = made.run(request)
    before = made.generations()
    again = {**request.tags, "dagster/sensor_name": "watch_events", "dagster/parent_run_id": first.run_id}
    assert made.execute([dg.AssetKey("v")], None, again).success
    after = made.generations()
    assert all(after[number] != before[number] for number in before)


def test_spark_that_goes_away_between_two_works_loses_none_of_the_first(dagster: Make) -> None:
    made = dagster(days=(0, 1, 2, 3))
    made.settle()
    for number in (0, 2):
        made.lake.write(f"late-{number}.parquet", [day(number)])
    project = made.lake.open()
    with TwoStepRefresh(project, made.lake.catalog.view("v"), [0, DAY, 2 * DAY, 3 * DAY]) as refresh:
        sessions = iter([project.engine.session])

        def once() -> Any:
            try:
                return next(sessions)()
            except StopIteration:
                raise EngineUnavailable("unplugged") from None

        object.__setattr__(project, "engine", SimpleNamespace(session=once))
        assert refresh.stage()
        found = {bucket // DAY: result for bucket, result in refresh.commit().items()}
    assert [found[number].outcome.value for number in (1, 2, 3)] == ["replay", "committed", "replay"]
    assert "not reached: Spark is not available: unplugged" in str(found[0].reason)
    assert made.lake.states(0, 1, 2, 3) == "SVVV"
