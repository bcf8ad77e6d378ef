"""The launchpad's jobs, and the checks that people make."""

from __future__ import annotations

from collections.abc import Callable

import dagster as dg
import pytest

from mv_assets.defs import definitions_of
from mv_assets_tests.support.lake import HOURLY, day, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, failure_of

Make = Callable[..., InProcessDagster]


def test_refresh_view_fills_a_view_and_tells_of_it(dagster: Make) -> None:
    made = dagster()
    assert made.job("refresh_view", view="v").success
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert len(made.materialized("v")) == 4


def test_refresh_view_tells_which_files_were_the_reason(dagster: Make) -> None:
    made = dagster()
    made.lake.run()
    made.lake.write("late.parquet", [day(1)])
    made.lake.remove("day-2.parquet")
    assert made.job("refresh_view", view="v").success
    told = made.materialized("v")
    late = {name: value.value for name, value in told["1970-01-02"].metadata.items()}
    assert late["reason"] == "1 file added (late.parquet)"
    assert (late["files added"], late["files changed"], late["files removed"]) == (1, 0, 0)
    assert "seconds from newest file" in late
    assert told["1970-01-03"].metadata["reason"].value == "1 file removed (day-2.parquet)"


def test_refresh_view_of_a_range_leaves_the_rest(dagster: Make) -> None:
    made = dagster()
    assert made.job("refresh_view", view="v", first="1970-01-02", last="1970-01-03").success
    assert made.lake.states(0, 1, 2, 3) == "-VV-"


def test_a_forced_refresh_really_computes(dagster: Make) -> None:
    made = dagster()
    made.settle()
    before = made.generations()
    assert made.job("refresh_view", view="v", first="1970-01-02", force=True).success
    after = made.generations()
    assert [number for number in before if before[number] != after[number]] == [1]


def test_a_bucket_of_the_future_is_not_forced(dagster: Make) -> None:
    made = dagster()
    made.lake.look()
    refused = made.job("refresh_view", view="v", first="2999-01-01", force=True)
    assert "lies in the future" in failure_of(refused)
    assert made.lake.store.snapshot("v").rows == {}


def test_refresh_view_says_what_failed(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.damage("day-1.parquet")
    result = made.job("refresh_view", view="v")
    assert not result.success
    assert "v 1970-01-02" in failure_of(result)


def test_refresh_view_says_what_failed_before_and_backs_off(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.damage("day-1.parquet")
    made.settle()
    result = made.job("refresh_view", view="v")
    assert not result.success
    assert "v 1970-01-02: backing off" in failure_of(result)
    assert "day-1.parquet" in failure_of(result)


def test_refresh_view_computes_a_bucket_that_is_named_and_not_due_or_says_why_not(dagster: Make) -> None:
    made = dagster(days=(0, 1))
    made.lake.write("more.parquet", [day(2, 1)])
    assert made.job("refresh_view", view="v").success
    assert made.lake.states(0, 1, 2) == "VV-"
    refused = made.job("refresh_view", view="v", first="1970-01-03", last="1970-01-04")
    assert "v 1970-01-04: events has no rows of it yet" in failure_of(refused)
    assert (made.lake.states(0, 1, 2, 3), made.lake.watermark()) == ("VVV-", 2)
    assert made.job("refresh_view", view="v", first="1970-01-03").success


def test_refresh_view_covers_more_only_if_told_to(dagster: Make) -> None:
    made = dagster(view(start="1970-01-03"))
    refused = made.job("refresh_view", view="v", first="1970-01-02")
    assert not refused.success
    assert "1970-01-02" in failure_of(refused)
    mistyped = made.job("refresh_view", view="v", first="1070-01-02", extend=True)
    assert "to start at 1070-01-02 instead of 1970-01-03" in failure_of(mistyped)
    assert made.job("refresh_view", view="v", first="1970-01-02", extend=True).success
    made.load()
    made.lake.write("late.parquet", [day(1)])
    assert made.settle() == ["v 1970-01-02", "v 1970-01-03..1970-01-04"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"last": "1970-01-02"}, "a range has both `first` and `last`"),
        ({"extend": True}, "`extend` goes with `first`"),
    ],
)
def test_refresh_view_does_not_guess_a_range(dagster: Make, config: dict[str, object], said: str) -> None:
    made = dagster()
    refused = made.job("refresh_view", view="v", **config)
    assert not refused.success
    assert said in failure_of(refused)
    assert made.lake.store.views() == []


@pytest.mark.parametrize("config", [{"view": "nobody"}, {"view": "v", "force": "perhaps"}])
def test_a_config_that_makes_no_sense_is_refused_before_anything_runs(
    dagster: Make, config: dict[str, object]
) -> None:
    made = dagster()
    with pytest.raises(dg.DagsterInvalidConfigError):
        made.job("refresh_view", **config)


def test_drop_view_wants_to_hear_the_name_twice(dagster: Make) -> None:
    made = dagster()
    made.settle()
    refused = made.job("drop_view", view="v")
    assert not refused.success
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert made.job("drop_view", view="v", confirm="v").success
    assert made.lake.states(0, 1, 2, 3) == "----"
    assert made.materialized("v") == {}
    assert made.settle() == ["v 1970-01-01..1970-01-04"]


def test_drop_view_drops_what_is_based_on_a_view_only_if_told_to(dagster: Make) -> None:
    made = dagster(view(), view("w", base="v", sql="SELECT hour, n FROM v", bucket="1d"))
    made.settle()
    refused = made.job("drop_view", view="v", confirm="v")
    assert "w is based on it and would wait for it" in failure_of(refused)
    assert made.lake.states(0, 1, 2, 3) == "VVVV"
    assert made.job("drop_view", view="v", confirm="v", with_dependants=True).success
    assert made.lake.states(0, 1, 2, 3, name="w") == "----"
    assert (made.materialized("v"), made.materialized("w")) == ({}, {})
    assert made.settle() == ["v 1970-01-01..1970-01-04", "w 1970-01-01..1970-01-04"]


def test_an_audit_finds_what_was_tampered_with_and_the_sensor_mends_it(dagster: Make) -> None:
    made = dagster()
    made.settle()
    assert made.job("audit_view", view="v", sample=0).success
    generation = made.generations()[1]
    for file in (made.lake.folder / "warehouse" / "v" / str(generation)).glob("*.parquet"):
        file.unlink()
    result = made.job("audit_view", view="v", sample=0)
    assert not result.success
    told = made.check("v", "matches_base")
    assert told is not None
    assert not told.passed
    assert made.settle() == ["v 1970-01-01..1970-01-04"]
    assert made.job("audit_view", view="v", sample=0).success


def test_garbage_is_collected(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.materialize("v", "1970-01-01", "1970-01-04")
    assert made.job("collect_garbage", dry_run=True).success
    assert made.job("collect_garbage").success


@pytest.mark.parametrize("name", ["no_stale_buckets", "no_failed_buckets", "fresh", "matches_base"])
def test_every_check_can_be_made_by_hand(dagster: Make, name: str) -> None:
    made = dagster()
    made.settle()
    key = dg.AssetCheckKey(dg.AssetKey("v"), name)
    job = made.repository.get_implicit_global_asset_job_def()
    subset = job.get_subset(asset_selection=set(), asset_check_selection={key})
    result = subset.execute_in_process(instance=made.instance, raise_on_error=False)
    assert result.success
    (evaluation,) = result.get_asset_check_evaluations()
    assert evaluation.passed


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.PreviewWarning")
def test_every_launchpad_opens_without_an_error(dagster: Make) -> None:
    made = dagster(view(), view("w", base="v", sql="SELECT hour, n FROM v", bucket="1d"))
    for job in made.definitions.jobs or ():
        assert isinstance(job, dg.JobDefinition)
        dg.validate_run_config(job, {})


@pytest.mark.parametrize("name", ["refresh_view", "drop_view", "audit_view", "mark_view", "adopt_view"])
def test_a_job_that_was_not_told_which_view_names_them(dagster: Make, name: str) -> None:
    made = dagster(view(), view("w", base="v", sql="SELECT hour, n FROM v", bucket="1d"))
    assert failure_of(made.job(name)) == "name the `view`: v, w"


def test_the_only_view_need_not_be_named(dagster: Make) -> None:
    made = dagster()
    assert made.job("refresh_view").success
    assert made.lake.states(0, 1, 2, 3) == "VVVV"


def test_mark_view_has_buckets_computed_again(dagster: Make) -> None:
    made = dagster()
    made.settle()
    assert made.job("mark_view", view="v", first="1970-01-02", last="1970-01-03", reason="a bug").success
    assert made.lake.states(0, 1, 2, 3) == "VSSV"
    assert made.settle() == ["v 1970-01-02..1970-01-03"]


def test_adopt_view_goes_back_to_an_earlier_definition(dagster: Make) -> None:
    made = dagster()
    made.settle()
    first = made.lake.store.snapshot("v").header.definition
    made.lake.declare(view(sql=HOURLY.replace("count(*)", "count(*) + 1")))
    made.load()
    made.settle()
    assert made.lake.store.snapshot("v").header.definition != first
    made.lake.declare(view())
    made.load()
    assert "adopt" in str(made.tick().skip_reason)
    assert made.job("adopt_view").success
    assert made.lake.store.snapshot("v").header.definition == first


def test_plan_and_explanation_are_in_the_log_of_a_run(dagster: Make) -> None:
    made = dagster()
    made.settle()
    made.lake.write("late.parquet", [day(1)])
    assert "late.parquet" in _logged(made, made.job("plan_view").run_id)
    explained = made.job("explain_bucket", bucket="1970-01-02")
    assert "late.parquet" in _logged(made, explained.run_id)
    assert "name the `bucket`" in failure_of(made.job("explain_bucket"))
    assert made.job("publish_view").success


def _logged(made: InProcessDagster, run_id: str) -> str:
    return "\n".join(each.user_message for each in made.instance.all_logs(run_id))


@pytest.mark.parametrize("collects", [False, True])
def test_garbage_is_collected_by_itself_only_where_that_is_wanted(dagster: Make, *, collects: bool) -> None:
    found = definitions_of(dagster().deployment, collects=collects).get_repository_def()
    (schedule,) = found.schedule_defs
    assert schedule.job_name == "collect_garbage"
    assert schedule.default_status.value == ("RUNNING" if collects else "STOPPED")
