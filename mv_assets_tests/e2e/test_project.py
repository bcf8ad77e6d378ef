"""A project that `create-dagster` makes, as its page says: files, two views, a report; in real processes.

What is seen of it is seen in a real browser.
"""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance
from playwright.sync_api import Browser, expect

from mv_assets.launcher.launcher import _PROCESS
from mv_assets_tests.e2e.browser import artifacts
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.graphql_api.records import Materialization
from mv_assets_tests.e2e.pages import Ui
from mv_assets_tests.e2e.processes import DagsterProcesses
from mv_assets_tests.e2e.site import days
from mv_assets_tests.e2e.wait import state_of_affairs, wait_until
from mv_assets_tests.scenarios.docs.pages import DOCS, Block, blocks
from mv_assets_tests.scenarios.docs.reader import comparable, steps

pytestmark = pytest.mark.slow

RAW, REPORT = "raw_trips", "busiest_zones"
VIEWS = ("trips_hourly", "zones_daily")
DG = Path(sys.executable).with_name("dg")


@dataclass
class Typist:
    """Somebody who does what the page says, in a folder."""

    folder: Path
    environment: dict[str, str]

    def does(self, block: Block) -> None:
        if block.title:
            (self.folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.title).write_text(block.text)
        elif block.language == "console":
            for step in steps(block.text):
                printed = self.types(step.command)
                assert not step.shown or comparable(printed) == comparable(step.shown), step.command

    def types(self, command: str) -> str:
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return ""
        ran = subprocess.run(  # noqa: S602 - the page's own lines
            command,
            shell=True,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        return ran.stdout


@dataclass
class Project:
    """The project with its Dagster."""

    typist: Typist
    dagster: Dagster
    processes: DagsterProcesses

    def until(self, condition: Callable[[], object], awaited: str) -> None:
        wait_until(condition, awaited, lambda: state_of_affairs(self.dagster, self.processes))

    def succeeds(self, run: str) -> None:
        self.until(lambda: self.dagster.run(run).finished, f"the end of run {run[:8]}")
        assert self.dagster.run(run).status == "SUCCESS", self.dagster.errors(run)

    def report(self) -> dict[str, int]:
        with (self.typist.folder / "data" / "busiest.csv").open() as file:
            return {row["zone"]: int(row["trips"]) for row in csv.DictReader(file)}

    def until_filled(self, view: str) -> None:
        """The last day waits for a newer file."""
        self.until(lambda: self.dagster.partitions(view).materialized == days(1, 6), f"{view} to be filled")

    def until_replaced(self, view: str, bucket: str, before: Materialization | None) -> None:
        self.until(
            lambda: self.dagster.materialization(view, bucket) != before,
            f"{bucket} of {view} to be computed again",
        )


@pytest.fixture(scope="module")
def typist(tmp_path_factory: pytest.TempPathFactory) -> Typist:
    folder = tmp_path_factory.mktemp("scaffolded")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("MV_ASSETS_")}
    path = [str(folder / "city" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return Typist(
        folder,
        inherited
        | {
            "PATH": f"{DG.parent}:{os.environ['PATH']}",
            # As `pip install --editable .` would have it.
            "PYTHONPATH": ":".join(path),
            # Dagster warns of components of others.
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_CLI_TELEMETRY_ENABLED": "0",
        },
    )


@pytest.fixture(scope="module")
def project(typist: Typist, connect_server: str) -> Iterator[Project]:
    # The last is a late file.
    *before, _ = (block for block in blocks(DOCS / "dagster-project.md") if block.language != "sh")
    for block in before:
        typist.does(block)
    settings = {
        "PYTHONPATH": typist.environment["PYTHONPATH"],
        # The tests' own, which is warm; it is attached to where a project names no other.
        "MV_ASSETS_SPARK_REMOTE": connect_server,
    }
    processes = DagsterProcesses(
        typist.folder.parent / "dagster", settings, (str(DG), "dev"), folder=typist.folder
    )
    # As the page has it at its end.
    file = processes.home / "dagster.yaml"
    told = yaml.safe_load(file.read_text())
    told["run_launcher"]["config"] = {"modules": ["city.definitions"]}
    file.write_text(yaml.safe_dump(told))
    processes.start()
    try:
        yield Project(typist, Dagster.at(processes.address), processes)
    finally:
        processes.stop()


def test_files_that_an_asset_writes_become_views_and_a_report_on_one(project: Project) -> None:
    dagster = project.dagster
    assert "mv_assets.MaterializedViewsComponent" in project.typist.types("dg list components")
    assert dagster.assets() == sorted([RAW, *VIEWS, REPORT])

    project.succeeds(dagster.materialize(RAW, "2024-01-01", "2024-01-07"))
    for view in VIEWS:
        project.until_filled(view)
    project.succeeds(dagster.launch_job("report_busiest_zones", {}))
    assert project.report() == {"0": 288, "1": 288, "2": 288}


def test_its_runs_are_forked_though_their_steps_have_processes_of_their_own(project: Project) -> None:
    def is_forked() -> bool:
        run = project.dagster.materialize("trips_hourly", "2024-01-02")
        project.succeeds(run)
        with DagsterInstance.from_config(str(project.processes.home)) as instance:
            found = instance.get_run_by_id(run)
        return found is not None and _PROCESS in found.tags

    # The first ones are no forks: nobody waits until the code is loaded.
    project.until(is_forked, "a run that is forked")


@pytest.mark.browser
def test_a_late_file_is_computed_again_in_both_views_and_seen_in_the_ui(
    project: Project, browser: Browser, tmp_path: Path
) -> None:
    dagster, third = project.dagster, "2024-01-03"
    before = {view: dagster.materialization(view, third) for view in VIEWS}
    known = {run.id for run in dagster.runs()}
    *_, late = (block for block in blocks(DOCS / "dagster-project.md") if block.language == "console")
    project.typist.does(late)
    for view in VIEWS:
        project.until_replaced(view, third, before[view])
    # And nothing else was.
    new = [run for run in dagster.runs() if run.id not in known]
    assert {(run.assets, run.range) for run in new} == {((view,), (third, third)) for view in VIEWS}
    with browser.new_context(viewport={"width": 1500, "height": 1000}) as context:
        ui = Ui(context.new_page(), project.processes.address, artifacts(tmp_path))
        ui.open_partition("trips_hourly", third)
        assert ui.count_of("Materialized") == 6
        expect(ui.metadata("files added")).to_contain_text("1")
        expect(ui.metadata("reason")).to_contain_text("late.parquet")
        ui.screenshot("a bucket of a scaffolded project")
        ui.page.goto(f"{ui.address}/automation")
        for name in ("views_watch_trips", "zones_watch_trips", "report_busiest_zones_schedule"):
            expect(ui.page.get_by_text(name, exact=True).first).to_be_visible()
        ui.screenshot("automation of a scaffolded project")
