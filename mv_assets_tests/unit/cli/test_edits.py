"""What `mv-assets dev` makes of a project file that is edited while it is served."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from mv_assets.buckets import HOUR
from mv_assets.cli.dev import edits as module
from mv_assets.cli.dev.dagster import Loaded
from mv_assets.cli.dev.edits import Edits, watching
from mv_assets.clock import clock
from mv_assets.config.errors import ProjectError
from mv_assets.demo.feeder import late_file
from mv_assets.views.catalog import load
from mv_assets_tests.support.dev import PATIENCE_S, UP, dev
from mv_assets_tests.unit.cli.test_dev import asked

REMOTE = "spark: {remote: 'sc://127.0.0.1:9'}\n"
KEPT = "Dagster goes on with the version before"


class EditedFile:
    """A project file that is served, and what is said of it."""

    def __init__(self, folder: Path, text: str | None = "") -> None:
        self.file = folder / "project.yaml"
        self.accepted = folder / "accepted.yaml"
        self.said: list[str] = []
        if text is None:
            self.file.unlink()
        else:
            self.file.write_text(text)
        self.edits = Edits.begun(self.file, self.accepted, self._load, self.said.append)

    def _load(self, version: Path) -> Any:
        return load(self.file, schemas=True, version=version)

    def saved(self, text: str | None) -> str:
        """What is said once the file was edited, and has come to rest."""
        self.said.clear()
        if text is None:
            self.file.unlink()
        else:
            self.file.write_text(text)
        for _ in range(3):
            self.edits.look()
        return "\n".join(self.said)


@pytest.fixture
def edited(tmp_path: Path) -> EditedFile:
    return EditedFile(tmp_path)


def test_a_file_that_is_not_edited_is_left_alone(edited: EditedFile) -> None:
    assert edited.saved("") == ""
    edited.file.touch()
    assert edited.saved("") == ""
    assert (edited.edits.unloaded, edited.accepted.read_text()) == (False, "")


def test_an_edit_is_accepted_and_then_to_be_loaded(edited: EditedFile) -> None:
    assert edited.saved("views: []\n") == ""
    assert (edited.edits.unloaded, edited.accepted.read_text()) == (True, "views: []\n")
    edited.edits.loaded(Loaded({}))
    assert edited.said == [f"{edited.file} was edited: Dagster has loaded it anew"]
    assert not edited.edits.unloaded
    # Back to what it was is an edit as well.
    assert edited.saved("") == ""
    assert (edited.edits.unloaded, edited.accepted.read_text()) == (True, "")


def test_a_file_that_is_still_being_written_is_waited_for(edited: EditedFile) -> None:
    for text in ("views: [", "views: []\ntables", "views: []\ntables: []\n"):
        edited.file.write_text(text)
        edited.edits.look()
        assert (edited.said, edited.accepted.read_text()) == ([], "")
    edited.edits.look()
    assert (edited.said, edited.accepted.read_text()) == ([], "views: []\ntables: []\n")


def test_mistakes_are_said_once_and_the_version_before_stays(edited: EditedFile) -> None:
    said = edited.saved("tabels: []\nviws: []\n")
    assert f"{edited.file}: 2 mistakes" in said
    assert "did you mean tables?" in said
    assert said.endswith(KEPT)
    assert (edited.edits.unloaded, edited.accepted.read_text()) == (False, "")
    for _ in range(3):
        edited.edits.look()
    assert len(edited.said) == 1
    assert edited.saved("") == f"{edited.file} is again the version that Dagster has"
    assert not edited.edits.unloaded


def test_brackets_in_a_mistake_are_no_markup(edited: EditedFile) -> None:
    assert r"\[bold]" in edited.saved("'[bold]': 1\n")


def test_a_file_that_is_gone_is_said_and_may_come_back(edited: EditedFile) -> None:
    assert edited.saved(None) == f"[bold red]{edited.file} can't be read[/]; {KEPT}"
    assert edited.saved("") == f"{edited.file} is again the version that Dagster has"
    # As many editors save it.
    other = edited.file.with_name("saved")
    other.write_text("views: []\n")
    other.replace(edited.file)
    for _ in range(2):
        edited.edits.look()
    assert edited.edits.unloaded


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "spark: {conf: {spark.driver.memory: 2g}}\n"),
        ("", REMOTE),
        (REMOTE, ""),
        ("", "spark: {master: 'local[1]'}\n"),
    ],
)
def test_another_spark_is_for_the_next_start(tmp_path: Path, before: str, after: str) -> None:
    """The one that runs is needed by runs under way, and has the settings it was started with."""
    edited = EditedFile(tmp_path, before)
    assert "its `spark` is another[/]: stop this with Ctrl-C and start it again" in edited.saved(after)
    assert (edited.edits.unloaded, edited.accepted.read_text()) == (False, before)
    assert edited.saved(f"{before}views: []\n") == ""
    assert edited.edits.unloaded


def test_a_spark_elsewhere_may_be_another(tmp_path: Path) -> None:
    edited = EditedFile(tmp_path, REMOTE)
    assert edited.saved(REMOTE.replace(":9", ":10")) == ""
    assert edited.edits.unloaded


def test_what_dagster_can_not_load_is_said(edited: EditedFile) -> None:
    edited.saved("views: []\n")
    edited.edits.loaded(Loaded({"code": "the moon is [full]\n"}))
    assert edited.said == [r"[bold red]code can't be loaded:[/] the moon is \[full]"]


def test_a_project_with_mistakes_is_not_begun_with(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="did you mean tables"):
        EditedFile(tmp_path, "tabels: []")
    with pytest.raises(ProjectError, match="can't be read"):
        EditedFile(tmp_path, None)


def test_the_accepted_version_is_its_owners_alone_and_its_paths_are_the_files(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    edited = EditedFile(tmp_path)
    edited.edits.accepted = tmp_path / "elsewhere" / "accepted.yaml"
    edited.saved("tables: [{name: t, path: data}]\n")
    assert edited.edits.accepted.stat().st_mode & 0o077 == 0
    catalog = load(edited.file, schemas=False, version=edited.edits.accepted)
    assert catalog.tables["t"].path == str(tmp_path / "data")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["accepted.yaml"]


def test_dagster_is_asked_until_it_answers(edited: EditedFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_S", 0.001)
    answers, done = [None, None, Loaded({})], Event()

    def reload() -> Loaded | None:
        answer = answers.pop(0)
        if answer is not None:
            done.set()
        return answer

    with watching(edited.edits, reload):
        edited.file.write_text("views: []\n")
        assert done.wait(PATIENCE_S)
    assert edited.said == [f"{edited.file} was edited: Dagster has loaded it anew"]
    assert answers == []


RUNS = "{ runsOrError { ... on Runs { results { runId status } } } }"
FAILURES = """{ runsOrError(filter: {statuses: [FAILURE, CANCELED]}) { ... on Runs { results {
    eventConnection { events { ... on ExecutionStepFailureEvent { error { message } } } } } } } }"""
SENSORS = """{ sensorsOrError(repositorySelector: {repositoryName: "__repository__",
    repositoryLocationName: "mv_assets.definitions"}) {
    ... on Sensors { results { name sensorState { id status } } } } }"""
ASSETS = "{ assetNodes { assetKey { path } description } }"


class Ui:
    """What Dagster says."""

    def __init__(self, said: str) -> None:
        (self.address,) = re.findall(r"http://127\.0\.0\.1:\d+", said)

    def runs(self, *statuses: str) -> set[str]:
        found: Any = asked(self.address, RUNS)
        listed = found["runsOrError"]["results"]
        return {run["runId"] for run in listed if run["status"] in statuses}

    def lost(self) -> list[Any]:
        """Runs that ended badly, but for those whose buckets changed under them: files keep coming."""
        found: Any = asked(self.address, FAILURES)
        ended = [run["eventConnection"]["events"] for run in found["runsOrError"]["results"]]
        said = [[each["error"]["message"] for each in events if each.get("error")] for events in ended]
        return [lines for lines in said if not any("are not up to date" in line for line in lines)]

    def sensors(self) -> Any:
        found: Any = asked(self.address, SENSORS)
        return found["sensorsOrError"]["results"]

    def descriptions(self) -> str:
        return str(asked(self.address, ASSETS)["assetNodes"])


@pytest.mark.slow
@pytest.mark.e2e
def test_an_edited_demo_is_loaded_anew_under_way_and_one_with_mistakes_is_not(tmp_path: Path) -> None:
    with dev(tmp_path) as running:
        running.until(lambda: UP in running.said())
        ui, file = Ui(running.said()), running.demo.project
        text = file.read_text()
        sensors = ui.sensors()
        assert [sensor["sensorState"]["status"] for sensor in sensors] == ["RUNNING", "RUNNING"]

        # A run is not lost when what it runs is loaded anew.
        running.until(lambda: ui.runs("STARTED"))
        under_way = ui.runs("STARTED", "QUEUED", "STARTING")
        file.write_text(text.replace("The days of each borough", "The very days of each borough"))
        running.until(lambda: f"{file} was edited: Dagster has loaded it anew" in running.said())
        assert "The very days of each borough" in ui.descriptions()
        assert ui.sensors() == sensors
        running.until(lambda: under_way <= ui.runs("SUCCESS", "FAILURE", "CANCELED"))
        assert not ui.lost()

        # Neither the code location nor a run that starts now sees the mistakes.
        file.write_text(text.replace("bucket: 1h", "bucket: 1 hour"))
        running.until(lambda: KEPT in running.said())
        assert "trips_hourly.bucket" in running.said()
        before = ui.runs("SUCCESS")
        late_file(running.demo, clock() // HOUR * HOUR - 5 * HOUR, np.random.default_rng(1), 3)
        running.until(lambda: ui.runs("SUCCESS") - before)
        assert not ui.lost()
        assert "The very days of each borough" in ui.descriptions()

        file.write_text(text)
        running.until(lambda: running.said().count("Dagster has loaded it anew") > 1)
        assert "The very days of each borough" not in ui.descriptions()
