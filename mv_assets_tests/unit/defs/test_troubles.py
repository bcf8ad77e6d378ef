"""What is wrong with a view is seen in Dagster wherever one looks: ticks, checks, jobs and runs."""

from __future__ import annotations

import logging
from collections.abc import Callable

import dagster as dg
import pytest

from mv_assets_tests.support.lake import HOURLY, day, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, failure_of

Make = Callable[..., InProcessDagster]


def noise(made: InProcessDagster) -> None:
    """A file of which nobody knows where its rows belong."""
    (made.lake.folder / "events" / "noise.parquet").write_bytes(b"not parquet at all")


def logged(made: InProcessDagster, run_id: str) -> list[str]:
    """What a run says that is an error."""
    return [each.user_message for each in made.instance.all_logs(run_id) if each.level == logging.ERROR]


def by_hand(made: InProcessDagster, name: str) -> dg.AssetCheckEvaluation:
    """A check as a person makes it."""
    key = dg.AssetCheckKey(dg.AssetKey("v"), name)
    job = made.repository.get_implicit_global_asset_job_def()
    subset = job.get_subset(asset_selection=set(), asset_check_selection={key})
    (evaluation,) = subset.execute_in_process(
        instance=made.instance, raise_on_error=False
    ).get_asset_check_evaluations()
    return evaluation


def test_a_tick_that_asks_for_nothing_names_a_file_that_holds_the_watermark(dagster: Make) -> None:
    made = dagster()
    made.settle()
    noise(made)
    for _ in range(2):
        said = str(made.tick().skip_reason)
        assert "v: events: file noise.parquet: it can't be read as Parquet" in said
    told = made.check("v", "no_failed_buckets")
    assert told is not None
    assert (told.passed, "noise.parquet" in (told.description or "")) == (False, True)
    assert not by_hand(made, "no_failed_buckets").passed
    (made.lake.folder / "events" / "noise.parquet").unlink()
    assert "up to date" in str(made.tick().skip_reason)
    healed = made.check("v", "no_failed_buckets")
    assert healed is not None
    assert healed.passed


def test_refresh_view_fails_over_a_file_that_holds_the_watermark(dagster: Make) -> None:
    made = dagster()
    made.settle()
    noise(made)
    result = made.job("refresh_view", view="v")
    assert not result.success
    assert "v: events: file noise.parquet: it can't be read as Parquet" in failure_of(result)


def test_a_run_that_did_its_part_says_what_is_wrong_with_its_view(dagster: Make) -> None:
    made = dagster()
    made.settle()
    noise(made)
    result = made.materialize("v", "1970-01-02")
    assert result.success
    assert ["noise.parquet" in line for line in logged(made, result.run_id)] == [True]
    told = made.check("v", "no_failed_buckets")
    assert told is not None
    assert (told.passed, "noise.parquet" in (told.description or "")) == (False, True)


def test_a_run_with_nothing_wrong_says_nothing_of_it(dagster: Make) -> None:
    made = dagster()
    made.settle()
    before = made.check("v", "no_failed_buckets")
    result = made.materialize("v", "1970-01-02")
    assert (result.success, logged(made, result.run_id)) == (True, [])
    assert made.check("v", "no_failed_buckets") == before


def test_130_a_damaged_file_with_a_whole_footer_is_a_run_that_fails_and_names_it(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.write("late.parquet", [day(1)])
    made.lake.spoil("late.parquet", "at")
    (request,) = made.tick().run_requests or []
    result = made.run(request)
    assert not result.success
    assert "late.parquet" in failure_of(result)
    assert made.lake.states(0, 1, 2, 3) == "VSVV"


def test_a_fenced_deployment_fails_its_check_by_hand_too(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.declare(view(sql=HOURLY.replace("count(*)", "count(at)")))
    made.lake.look()
    evaluation = by_hand(made, "no_failed_buckets")
    assert (evaluation.passed, "it is fenced" in (evaluation.description or "")) == (False, True)


def test_a_table_that_is_not_there_yet_is_waited_for(dagster: Make, caplog: pytest.LogCaptureFixture) -> None:
    made = dagster(days=())
    folder = made.lake.folder / "events"
    folder.rmdir()
    found = made.tick()
    assert "v: waits for table events, which is not there yet" in str(found.skip_reason)
    assert found.asset_events == []
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    folder.mkdir()
    made.lake.days(0, 1)
    assert made.settle() == ["v 1970-01-01..1970-01-02"]
    folder.rename(folder.with_name("elsewhere"))
    # What was there once and is gone is nobody's plan.
    assert "can't be listed" in str(made.tick().skip_reason)
    told = made.check("v", "no_failed_buckets")
    assert told is not None
    assert not told.passed
