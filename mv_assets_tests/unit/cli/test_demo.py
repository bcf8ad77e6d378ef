from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mv_assets.buckets import DAY, HOUR, Buckets
from mv_assets.cli import main
from mv_assets.cli.dev.supervisor import Supervisor
from mv_assets.clock import clock
from mv_assets.demo import Demo
from mv_assets.demo.events import happen
from mv_assets_tests.unit.cli.test_commands import Lake

HOURS, DAYS = Buckets.of("1h"), Buckets.of("1d")
NAMED = ("trips_hourly", "trips_daily")


class Town(Lake):
    """The demo in a home of its own, as the commands find it without a project."""

    def __init__(self, home: Path) -> None:
        self.root = home
        self.demo = Demo(home / "demo")
        self.file = self.demo.project

    def run(self, *arguments: str) -> Result:
        environment = {"MV_ASSETS_HOME": str(self.root), "MV_ASSETS_PROJECT": None}
        return CliRunner().invoke(main, arguments, env=environment)

    def happen(self, event: str) -> Any:
        return self.json("demo", event)

    def plan(self, code: int = 0) -> dict[str, Any]:
        return {view["name"]: view for view in self.json("plan", code=code)["views"]}

    def todo(self, view: str = "trips_hourly") -> dict[str, list[str]]:
        """The buckets of each operation that is due."""
        due: dict[str, list[str]] = {}
        for work in self.plan()[view]["work"]:
            due.setdefault(work["operation"], []).extend(work["buckets"])
        return {operation: sorted(buckets) for operation, buckets in due.items()}

    def waiting(self, view: str, code: int = 0) -> list[str]:
        return sorted(each["bucket"] for each in self.plan(code)[view]["waiting"])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo whose every hour and day is VALID."""
    town = Town(tmp_path_factory.mktemp("filled") / "home")
    town.demo.ensured(clock())
    # Else each test would have to wait until its files have come to rest.
    town.file.write_text(town.file.read_text().replace("settle: 2s", "settle: 0s"))
    town.refresh(*NAMED)
    assert all(not view["work"] and not view["waiting"] for view in town.plan().values())
    return town.root


@pytest.fixture
def town(filled: Path, tmp_path: Path) -> Town:
    shutil.copytree(filled, tmp_path / "home")
    return Town(tmp_path / "home")


def hours_of(happened: Mapping[str, Any]) -> list[str]:
    found: list[str] = happened["buckets"]["trips_hourly"]
    return found


# Without a project


def test_without_a_project_the_commands_work_on_the_demo(tmp_path: Path) -> None:
    town = Town(tmp_path / "home")
    result = town.run("plan", "--json")
    assert result.exit_code == 0
    assert result.stderr.endswith(f": the demo was written to {town.demo.root}\n")
    assert [view["name"] for view in json.loads(result.stdout)["views"]] == list(NAMED)
    # It is written once, and said once.
    assert town.run("status").stderr == ""
    assert "no mistakes" in town.said("project", "check")


def test_only_what_is_written_is_said_to_be(tmp_path: Path) -> None:
    town = Town(tmp_path / "home")
    town.demo.ensured(clock())
    town.file.unlink()
    assert town.run("status").stderr.endswith(f": the demo was written to {town.file}\n")
    shutil.rmtree(town.demo.trips)
    assert town.run("status").stderr == ""
    (tmp_path / "file").write_text("")
    refused = Town(tmp_path / "file").refused("status", code=1)
    assert "nothing can be written" in refused
    assert "written to" not in refused.replace("can be written to", "")


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """A command in a folder with a project that it does not name."""
    monkeypatch.chdir(tmp_path)
    Path("project.yaml").write_text("spark: {remote: 'sc://127.0.0.1:9'}\n")
    environment = {"MV_ASSETS_HOME": None, "MV_ASSETS_PROJECT": None, "DAGSTER_HOME": None}
    return lambda *command: CliRunner().invoke(main, command, env=environment)


LIES_HERE = "no project was named (--project, MV_ASSETS_PROJECT): it is project.yaml\n"


@pytest.mark.parametrize("command", ["status", "plan", "refresh", "project check"])
def test_a_project_that_lies_here_is_used_and_that_is_said_once(
    beside: Callable[..., Result], tmp_path: Path, command: str
) -> None:
    result = beside(*command.split())
    assert result.exit_code == 0, result.output
    empty = "project.yaml declares no view yet; add one under views:\n"
    assert result.stderr.startswith(LIES_HERE + empty)
    assert result.stderr.count(LIES_HERE) == 1
    assert not (tmp_path / ".mv_assets" / "demo").exists()
    # Not where programs read.
    assert json.loads(beside(*command.split(), "--json").stdout) is not None
    # And not where it is named.
    assert LIES_HERE not in beside("--project", "project.yaml", *command.split()).stderr


@pytest.mark.parametrize("command", ["--help", "--version", "status --help", "project schema"])
def test_what_needs_no_project_says_nothing_of_it(beside: Callable[..., Result], command: str) -> None:
    result = beside(*command.split())
    assert (result.exit_code, result.stderr) == (0, "")


def test_dev_serves_a_project_that_lies_here(
    beside: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = list[Supervisor]()

    def run(self: Supervisor, _lock: object) -> int:
        """Far enough to hear it."""
        served.append(self)
        return 0

    monkeypatch.setattr(Supervisor, "run", run)
    result = beside("dev")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith(LIES_HERE)
    assert served[0].dagster.child.environment["MV_ASSETS_PROJECT"] == str(tmp_path / "project.yaml")
    assert not (tmp_path / ".mv_assets" / "demo").exists()


def test_where_another_project_lies_the_demos_events_do_not_happen(
    beside: Callable[..., Result], tmp_path: Path
) -> None:
    result = beside("demo", "late")
    assert result.exit_code == 2
    assert (
        "the project is project.yaml, and these events happen to the demo's files only; go to a folder"
        in (" ".join(result.stderr.split()))
    )
    assert [path.name for path in tmp_path.iterdir()] == ["project.yaml"]


def test_in_its_own_folder_the_demo_is_at_home(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(town.demo.root)
    assert town.run("status").exit_code == 0


def test_the_demo_starts_with_two_weeks_of_hours_to_compute(tmp_path: Path) -> None:
    town = Town(tmp_path / "home")
    now = clock()
    town.demo.ensured(now)
    town.file.write_text(town.file.read_text().replace("settle: 2s", "settle: 0s"))
    midnight = now - now % DAY
    whole = [HOURS.key(hour) for hour in HOURS.between(midnight - 14 * DAY, now - now % HOUR)]
    assert town.todo() == {"APPEND": whole}
    town.refresh("trips_hourly")
    assert town.todo("trips_daily") == {
        "APPEND": [DAYS.key(day) for day in DAYS.between(midnight - 14 * DAY, midnight)]
    }


# Events


def test_a_late_file_concerns_its_hour_and_then_its_day(town: Town) -> None:
    happened = town.happen("late")
    assert len(hours_of(happened)) == 1
    assert town.todo() == {"OVERWRITE": hours_of(happened)}
    assert town.waiting("trips_daily") == happened["buckets"]["trips_daily"]
    town.refresh("trips_hourly")
    assert town.todo("trips_daily") == {"OVERWRITE": happened["buckets"]["trips_daily"]}


def test_a_file_that_somebody_damaged_by_hand_is_not_corrected(town: Town) -> None:
    for path in town.demo.trips.rglob("*.parquet"):
        path.write_bytes(b"no parquet")
    said = town.refused("demo", "correct")
    assert "can't be read as a file of trips (" in said
    assert "Parquet magic bytes not found" in said
    assert "delete it, then try again" in said


def test_a_correction_concerns_the_six_hours_of_its_file(town: Town) -> None:
    happened = town.happen("correct")
    assert len(hours_of(happened)) == 6
    assert town.todo() == {"OVERWRITE": hours_of(happened)}
    assert town.waiting("trips_daily") == happened["buckets"]["trips_daily"]


def test_retention_empties_the_oldest_day(town: Town) -> None:
    happened = town.happen("delete")
    (day,) = happened["buckets"]["trips_daily"]
    assert len(hours_of(happened)) == 24
    assert all(name.startswith(f"{day}/") for name in happened["files"])
    assert town.todo() == {"DELETE": hours_of(happened)}
    assert not (town.demo.trips / day).exists()
    assert town.happen("delete")["buckets"]["trips_daily"] > [day]


def test_a_backfill_brings_back_the_day_that_was_deleted_last(town: Town) -> None:
    town.happen("delete")
    deleted = town.happen("delete")
    town.refresh(*NAMED)
    happened = town.happen("backfill")
    assert (happened["files"], happened["buckets"]) == (deleted["files"], deleted["buckets"])
    assert town.todo() == {"OVERWRITE": hours_of(happened)}


def test_a_day_that_comes_back_before_anybody_looked_changes_nothing(town: Town) -> None:
    town.happen("delete")
    town.happen("backfill")
    assert town.todo() == {}
    assert not town.waiting("trips_hourly")


def test_a_backfill_joins_what_has_arrived_for_that_day_meanwhile(town: Town) -> None:
    deleted = town.happen("delete")
    source = next(town.demo.trips.glob("*/trips_000000_060000.parquet"))
    arrived = town.demo.trips / deleted["buckets"]["trips_daily"][0] / "arrived.parquet"
    arrived.parent.mkdir()
    shutil.copy(source, arrived)
    assert town.happen("backfill")["files"] == deleted["files"]
    assert arrived.exists()


def test_a_damaged_file_fails_its_six_hours_and_no_others(town: Town) -> None:
    happened = town.happen("poison")
    hourly = town.plan(code=1)["trips_hourly"]
    assert [error["file"] for error in hourly["errors"]] == happened["files"]
    assert sorted(each["bucket"] for each in hourly["waiting"]) == hours_of(happened)
    assert all(happened["files"][0] in each["reason"] for each in hourly["waiting"])
    assert hourly["work"] == []
    assert town.waiting("trips_daily", code=1) == happened["buckets"]["trips_daily"]


def test_healing_makes_it_as_if_nothing_had_been(town: Town) -> None:
    before = town.bytes()
    damaged = town.happen("poison")
    happened = town.happen("heal")
    assert happened["files"] == damaged["files"]
    assert town.todo() == {}
    assert town.bytes() == before


def test_several_damaged_files_are_healed_one_by_one(town: Town) -> None:
    damaged = [town.happen("poison")["files"][0] for _ in range(3)]
    assert len(set(damaged)) == 3
    assert {town.happen("heal")["files"][0] for _ in range(3)} == set(damaged)
    assert town.todo() == {}


def test_a_damaged_file_of_a_day_that_was_deleted_comes_back_whole(town: Town) -> None:
    before = town.bytes()
    (day,) = town.happen("poison")["buckets"]["trips_daily"]
    # Tomorrow, yesterday will be old enough for retention.
    tomorrow, chance = clock() + DAY, np.random.default_rng(1)
    while happen("delete", town.demo, tomorrow, chance).days != [day]:
        pass
    town.happen("heal")
    while list(town.demo.deleted.iterdir()):
        town.happen("backfill")
    assert town.bytes() == before


def test_an_event_says_what_was_done_and_what_to_watch(town: Town) -> None:
    said = town.said("demo", "correct")
    assert "was rewritten" in said
    assert "mv-assets explain trips_hourly 20" in said
    bucket = said.partition("explain trips_hourly ")[2].split()[0]
    assert town.json("explain", "trips_hourly", bucket)["changed"]


# Refusals


@pytest.mark.parametrize("event", ["late", "correct", "delete", "backfill", "poison", "heal"])
def test_without_a_demo_an_event_says_how_to_start_it(event: str, tmp_path: Path) -> None:
    town = Town(tmp_path / "home")
    assert "start the demo with `mv-assets dev`" in town.refused("demo", event)
    assert not town.root.exists()


def test_what_has_nothing_to_happen_to_is_refused(town: Town) -> None:
    assert "`mv-assets demo poison` first" in town.refused("demo", "heal")
    assert "`mv-assets demo delete` first" in town.refused("demo", "backfill")
    result = town.run("demo", "delete")
    while result.exit_code == 0:
        result = town.run("demo", "delete")
    assert (result.exit_code, "only the last days are left" in result.stderr) == (2, True)
    # A day is left, and then none that is whole.
    for _ in range(4):
        town.happen("poison")
    assert "no whole file is left" in town.refused("demo", "poison")
    assert "no whole file is left" in town.refused("demo", "correct")


def test_the_events_of_the_demo_happen_to_no_other_project(town: Town, tmp_path: Path) -> None:
    other = tmp_path / "project.yaml"
    other.write_text("views: []\n")
    assert "unset MV_ASSETS_PROJECT" in town.refused("--project", str(other), "demo", "late")
    assert town.json("--project", str(town.file), "demo", "late")["event"] == "late"
