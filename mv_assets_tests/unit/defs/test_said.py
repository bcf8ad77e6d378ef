"""What Dagster is told: of a run that failed, of a base table, of a Spark that is waited for.

Dagster reads the types of an asset, so annotations can't be left for later.
"""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from mv_assets.buckets import DAY, Buckets
from mv_assets.config import DeclaredProject, Spark
from mv_assets.defs import deployment, events
from mv_assets.defs.deployment import identity, spark_resource
from mv_assets.defs.io_manager import _incomplete
from mv_assets.run import turns
from mv_assets.run.result import Result
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.spark.startup import REMOTE, starts_here
from mv_assets.state.model import Outcome
from mv_assets.state.rules import Due
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import DuckDbLake
from mv_assets_tests.unit.run.test_turns import end, holder, line

DuckDbLakes = Callable[..., DuckDbLake]


def test_a_failed_run_begins_with_a_bucket_and_why(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(view())
    refresh = cast("TwoStepRefresh", SimpleNamespace(view=made.catalog.view("v")))
    results = {
        0: Result(
            0, Due.OVERWRITE, Outcome.SOURCE_CHANGED, reason="the base table changed while it was read"
        ),
        DAY: Result(
            DAY, Due.APPEND, Outcome.FAILED, reason="events: file day-1.parquet: it can't be read as Parquet"
        ),
        2 * DAY: Result(2 * DAY, Due.APPEND, Outcome.FAILED, reason="no memory"),
        3 * DAY: Result(3 * DAY, Due.APPEND, Outcome.COMMITTED),
    }
    said = (_incomplete(refresh, results).description or "").splitlines()
    why = "events: file day-1.parquet: it can't be read as Parquet"
    assert said[0] == f"v 1970-01-02 failed: {why}; mend that, and it is asked for again"
    assert said[1] == "3 of 4 buckets of v are not up to date:"
    assert said[3:] == [
        "- 1970-01-03 failed: no memory",
        "- 1970-01-01 source changed: the base table changed while it was read",
    ]


def test_a_run_without_a_failed_bucket_says_that_nobody_has_to_do_anything(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    refresh = cast("TwoStepRefresh", SimpleNamespace(view=duckdb_lake_on_sqlite(view()).catalog.view("v")))
    results = {0: Result(0, Due.APPEND, Outcome.WAITING, reason="waits for 1970-01-01 of w")}
    said = (_incomplete(refresh, results).description or "").splitlines()
    assert said[0] == "v 1970-01-01 waiting: waits for 1970-01-01 of w; it is asked for again when it is due"


def test_a_base_table_shows_its_files_its_newest_data_and_what_is_broken(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite(view())
    made.days(0, 1)
    made.damage("day-0.parquet")
    listing = made.tables["events"].current().listing()
    (seen,) = events.observations(dg.AssetKey("events"), listing, Buckets.of("1d"), [DAY])
    found = {name: value.value for name, value in seen.metadata.items()}
    assert (found["files"], found["files of the table"]) == (1, 2)
    assert found["newest data"] == "1970-01-02T23:59:59.999Z"
    assert str(found["broken files"]).startswith("- `file day-0.parquet: ")


def test_a_table_without_files_says_so(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    listing = duckdb_lake_on_sqlite(view()).tables["events"].current().listing()
    found = events.of_table(listing)
    assert (found["files of the table"], found["newest data"]) == (0, "none")


@pytest.mark.processes
def test_a_run_that_waits_for_a_local_spark_says_so_in_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(turns, "_held", {})
    # What it would start is of no matter here.
    monkeypatch.setattr(deployment, "start", lambda _declared: "a session")
    project = DeclaredProject()
    first = holder(tmp_path, identity(project))
    assert line(first) == "mine"

    class Ends(logging.Handler):
        """Ends the other process once it is waited for."""

        def emit(self, record: logging.LogRecord) -> None:
            if "waits for process" in record.getMessage():
                end(first)

    @dg.asset
    def uses(context: dg.AssetExecutionContext, spark: dg.ResourceParam[Any]) -> None:
        context.log.info("has %s", spark.spark_session)

    logger, handler = dg.get_dagster_logger(), Ends()
    logger.addHandler(handler)
    try:
        with dg.DagsterInstance.ephemeral() as instance:
            run = dg.materialize([uses], resources={"spark": spark_resource(project)}, instance=instance)
            said = [each.user_message for each in instance.all_logs(run.run_id)]
    finally:
        logger.removeHandler(handler)
        end(first)
    waits = f"waits for process {first.pid}, which has this project's local Spark: there is one at a time"
    assert said.index(waits) < said.index("has a session")


def test_only_a_spark_that_starts_here_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(REMOTE, raising=False)
    assert starts_here(Spark())
    assert starts_here(Spark(master="local[2]"))
    assert not starts_here(Spark(master="spark://host:7077"))
    assert not starts_here(Spark(remote="sc://host"))
    monkeypatch.setenv(REMOTE, "sc://127.0.0.1:15002")
    assert not starts_here(Spark())
