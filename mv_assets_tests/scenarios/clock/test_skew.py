"""Machines whose clocks differ: maps go by the database's clock alone, files by that of who wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mv_assets.buckets import HOUR
from mv_assets.cli import main
from mv_assets.clock import clock
from mv_assets.config import DeclaredProject
from mv_assets.config.file import Draft
from mv_assets.defs.deployment import Deployment as Dagster
from mv_assets.plan import planner
from mv_assets.project import Project
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import EMPTY, Attempt, Inputs, Planned
from mv_assets.state.rules import retry_delay
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store
from mv_assets.views.catalog import prepare
from mv_assets_tests.scenarios.clock.conftest import Machine, Machines
from mv_assets_tests.support.harness import Clock, Deployment
from mv_assets_tests.support.lake import HOURLY, day, operations_of, view
from mv_assets_tests.support.memory_table import DAY, BaseTable

SKEWED = pytest.mark.parametrize("ahead", [-HOUR, HOUR])
SETTLE = {"settle": "10s", "settle_at_most": "1m"}


# The clock that deployments share


def test_it_is_the_databases_clock_carried_on_between_two_questions(state_url: str) -> None:
    asked: list[int] = []
    database, machine = Clock(1_000_000), [50.0]

    def now() -> int:
        asked.append(database.now)
        return database.now

    store = Store(state_url, now=now)
    clock = SharedClock(store, lambda: machine[0])
    assert [clock(), clock()] == [1_000_000, 1_000_000]
    machine[0] += 0.75
    assert clock() == 1_000_750
    # The machine slept, or the database's clock was set: asked again, it is right again.
    machine[0], database.now = machine[0] + 3_600, 900_000
    assert clock() == 900_000
    assert asked == [1_000_000, 900_000]
    store.close()


def test_what_works_on_a_map_goes_by_the_databases_clock_and_dates_files_by_the_machines(
    tmp_path: Path, state_url: str
) -> None:
    lake = prepare(Draft("test", _project(tmp_path, state_url)), schemas=False)
    with Dagster(lake, now=lambda: 5).open("test") as project:
        assert abs(project.clock() - project.store.now()) < HOUR
        assert project.tables["events"].current().listing().at == 5
    with Project.of(lake, who="test", machine=lambda: 5) as facade:
        assert abs(facade.opened.clock() - facade.store.now()) < HOUR


def test_status_tells_the_lag_by_the_databases_clock(
    tmp_path: Path, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "project.yaml"
    file.write_text(json.dumps(_document(tmp_path, state_url)))
    store = Store(state_url)
    lake = prepare(Draft("test", _project(tmp_path, state_url)), schemas=False)
    PartitionManager(store, clock=SharedClock(store)).declare(lake.view("v").declaration)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    said = CliRunner().invoke(main, ["--project", str(file), "status", "--json"])
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["views"][0]["lag_seconds"] > 50 * 365 * DAY / 1_000
    store.close()


# Leases, heartbeats, backoff


@SKEWED
def test_a_machine_with_a_wrong_clock_makes_gc_delete_nothing_that_lives(state_url: str, ahead: int) -> None:
    """What is alive is the database's to say."""
    store = Store(state_url)
    wrong, right = (Deployment(store, BaseTable(), Clock(store.now() + skew)) for skew in (24 * ahead, 0))
    wrong.declare()
    work, lease = right.begin(0), right.leases.acquire("v")
    assert wrong.registry.alive("v") == {work.attempt.generation}
    assert (wrong.registry.garbage("v"), wrong.collect()) == ([], [])
    staged = wrong.begin(1)
    assert (right.registry.garbage("v"), right.collect()) == ([], [])
    assert right.registry.alive("v") == {work.attempt.generation, staged.attempt.generation}
    right.leases.renew(lease)
    store.close()


@SKEWED
def test_a_failed_bucket_is_tried_again_by_the_databases_clock(
    tmp_path: Path, state_url: str, ahead: int
) -> None:
    lake = prepare(Draft("test", _project(tmp_path, state_url)), schemas=False)
    view = lake.view("v").declaration
    with Dagster(lake, now=lambda: clock() + ahead).open("test") as project:
        project.manager.declare(view)
        before = project.store.now()
        attempt = Attempt("g", 1, (Planned(0, None, Inputs(EMPTY, view.definition)),))
        project.manager.register(view, attempt)
        project.manager.fail(view, attempt, {0: "its file is damaged"})
        due = project.store.snapshot("v").attempts[0].retry_after
        assert due is not None
        assert before <= due - retry_delay(1) <= project.store.now()


# Files


@SKEWED
def test_files_settle_by_the_clock_they_were_written_by(machine: Machines, ahead: int) -> None:
    made: Machine = machine(ahead=ahead, table=SETTLE)
    made.days(0)
    made.set_machine(made.changed_at("day-0.parquet") + 9_000)
    plan = planner.plan(made.look())
    assert (operations_of(plan), [waits.reason for waits in plan.waiting]) == (
        [],
        ["its files are still arriving"],
    )
    assert plan.waiting[0].until == made.clock.now + 1_000
    made.later(1_000)
    assert made.planned() == [("APPEND", [0])]


@SKEWED
def test_a_file_that_stays_unreadable_is_broken_once_it_has_settled(machine: Machines, ahead: int) -> None:
    made: Machine = machine(ahead=ahead, table=SETTLE)
    made.days(0)
    made.damage("day-0.parquet")
    made.set_machine(made.changed_at("day-0.parquet") + 1_000)
    assert planner.plan(made.look()).failing == ()
    made.later(10_000)
    made.look()
    look = made.snapshot().look
    assert look is not None
    assert "day-0.parquet" in look.broken[0]


def test_deployments_on_machines_with_different_clocks_come_to_rest(machine: Machines) -> None:
    """With data of this very hour, which one of the machines would take for past and the other for future."""
    both = [machine(ahead=ahead) for ahead in (-HOUR, HOUR)]
    today = both[0].clock.now // DAY
    both[0].days(today - 2, today - 1)
    now = (both[0].clock.now % DAY) / HOUR
    both[0].write("now.parquet", [day(today, now - 0.5), day(today, now + 0.5)])
    for each in both:
        each.declare(view(start=(day(today - 2)).strftime("%Y-%m-%d")))
        each.converge()
    version = both[0].version()
    for each in both * 2:
        assert each.refresh() == {}
    assert both[0].version() == version
    assert both[0].watermark() == today


def _document(folder: Path, state: str) -> dict[str, Any]:
    (folder / "events").mkdir(exist_ok=True)
    table = {"name": "events", "format": "parquet", "path": str(folder / "events"), "time_column": "at"}
    declared = {"name": "v", "base": "events", "sql": HOURLY, "time_column": "hour", "bucket": "1d"}
    return {
        "tables": [table],
        "views": [declared | {"start": "1970-01-01"}],
        "state": state,
        "warehouse": str(folder / "warehouse"),
    }


def _project(folder: Path, state: str) -> DeclaredProject:
    return DeclaredProject.model_validate(_document(folder, state))
