"""The facade, as a notebook uses it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets import Project
from mv_assets.cli.main import _COMMANDS
from mv_assets.config.errors import ProjectError
from mv_assets.errors import BucketError, ProjectClosed, Refused
from mv_assets.progress import Progress
from mv_assets.spark.session import Engine
from mv_assets.state.errors import UnknownView
from mv_assets.state.model import Outcome, Segment
from mv_assets.tables.listing import Listing, OnRead, Rewrite, unnoticed
from mv_assets.tables.parquet.table import ParquetTableVersion
from mv_assets.views.errors import HasDependants, NotDeclared

HOURLY = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM trips GROUP BY ALL"
DAILY = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM hourly GROUP BY ALL"
# What the command line has besides the facade: it starts things, or is about the file.
WITHOUT_METHOD = {"project", "demo", "dev"}


class Heard(Progress):
    """What a project tells of its progress."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.planned = self.done = 0

    def plans(self, buckets: int, size: int) -> None:
        assert size >= 0
        self.planned += buckets

    def begins(self, what: str) -> None:
        self.begun.append(what)

    def ends(self, buckets: int, size: int) -> None:
        assert size >= 0
        self.done += buckets


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two days of trips, and a view on a view on them."""
    (tmp_path / "trips").mkdir()
    for day in range(2):
        write(tmp_path, f"{day}.parquet", day)
    common = {"bucket": "1d", "start": "2024-01-01"}
    declared = {
        "state": "sqlite:///state.db",
        "warehouse": "warehouse",
        "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
        "views": [
            {"name": "hourly", "base": "trips", "sql": HOURLY, "time_column": "hour", **common},
            {"name": "daily", "base": "hourly", "sql": DAILY, "time_column": "day", **common},
        ],
    }
    made = tmp_path / "project.yaml"
    made.write_text(yaml.safe_dump(declared))
    return made


def write(folder: Path, name: str, day: int) -> None:
    start = datetime(2024, 1, 1 + day, tzinfo=UTC)
    times = [start, start + timedelta(days=1) - timedelta(milliseconds=1)]
    pq.write_table(pa.table({"at": times}), folder / "trips" / name)


@pytest.fixture
def project(file: Path) -> Iterator[Project]:
    with Project.open(file) as opened:
        yield opened


def test_every_command_is_a_method() -> None:
    methods = {name for name, _ in inspect.getmembers(Project, inspect.isfunction)}
    assert _COMMANDS.keys() - methods == WITHOUT_METHOD


def test_what_was_never_refreshed_says_what_to_do(project: Project) -> None:
    assert project.views == ["hourly", "daily"]
    status = project.status()
    assert not status.is_wrong
    assert "never refreshed" in str(status)
    plans = project.plan()
    assert [work.operation.value for work in plans["hourly"].plan.work] == ["APPEND"]
    assert "2 buckets" in repr(plans)
    assert re.search(r"<pre.*APPEND.*</pre>", plans._repr_html_(), re.DOTALL)
    assert project.gc().as_json() == {"dry_run": False, "views": [], "published": []}
    with pytest.raises(UnknownView):
        project.adopt("hourly")


def test_what_nobody_declared_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for ask in (project.status, project.plan, project.refresh, project.mark, project.audit, project.gc):
        with pytest.raises(NotDeclared):
            ask("nobody")
    with pytest.raises(NotDeclared):
        project.drop("nobody")
    with pytest.raises(Refused, match="of one view"):
        project.refresh(buckets="2024-01-01")
    with pytest.raises(Refused, match="name it"):
        project.refresh("hourly", extend=True)
    with pytest.raises(BucketError):
        project.mark("hourly", buckets=("2024-01-02", "2024-01-01"))
    with pytest.raises(Refused, match="freshness 'fresh' is not known"):
        project.query("SELECT 1 FROM trips", freshness="fresh")
    monkeypatch.delenv("MV_ASSETS_PROJECT", raising=False)
    with pytest.raises(Refused, match="no project was named"):
        Project.open()


def test_arguments_that_mean_nothing_are_refused(project: Project) -> None:
    views: Any = ["hourly"]
    with pytest.raises(Refused, match="one by one"):
        project.refresh(views)
    for keys in (["2024-01-01"], ("2024-01-01", 2)):
        wrong: Any = keys
        with pytest.raises(Refused, match="named by a key"):
            project.mark("hourly", buckets=wrong)
    for sample in (0, -1):
        with pytest.raises(Refused, match="1 or more"):
            project.audit("hourly", sample=sample)
    with pytest.raises(Refused, match="0 or more"):
        project.refresh(max_bytes=-1)


def test_parts_of_a_result_are_found_by_their_view(project: Project) -> None:
    status = project.status()
    assert [each.view.name for each in status] == ["hourly", "daily"]
    assert (len(status), "daily" in status, "nobody" in status) == (2, True, False)
    with pytest.raises(KeyError):
        status["nobody"]


def test_what_is_declared_does_not_change_under_an_open_project(project: Project, file: Path) -> None:
    file.write_text(file.read_text().replace("name: daily", "name: weekly"))
    assert project.views == ["hourly", "daily"]
    assert [each.view.name for each in project.plan()] == ["hourly", "daily"]
    with Project.open(file) as anew:
        assert anew.views == ["hourly", "weekly"]


def test_a_closed_project_says_so(file: Path) -> None:
    project = Project.open(file)
    project.mark("hourly")
    project.close()
    project.close()
    for ask in (project.status, project.plan, project.refresh, project.gc):
        with pytest.raises(ProjectClosed):
            ask()
    with pytest.raises(ProjectClosed):
        project.query("SELECT count(*) AS n FROM trips")
    # Nor is a connection opened for that, which nobody would close.
    pool: Any = project.store.database._engine.pool
    assert pool.checkedin() == 0


def test_the_state_is_closed_whatever_becomes_of_spark(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project.open(file)
    closed: list[bool] = []
    close = project.store.close

    def closes() -> None:
        closed.append(True)
        close()

    monkeypatch.setattr(project.store, "close", closes)

    def interrupted(_engine: Engine) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "stop", interrupted)
    assert project.opened.engine is not None
    with pytest.raises(KeyboardInterrupt):
        project.close()
    assert closed == [True]


def test_a_file_with_mistakes_is_not_opened(file: Path) -> None:
    file.write_text(file.read_text().replace("bucket: 1d", "bucket: 1x", 1))
    with pytest.raises(ProjectError, match="1 mistake"):
        Project.open(file)


def test_a_late_file_from_a_notebook(file: Path, engine: Engine) -> None:
    heard = Heard()
    with Project.open(file, spark=engine.shared(), progress=heard) as project:
        first = project.refresh()
        assert [len(report.results) for report in first.reports] == [2, 2]
        assert heard.planned == heard.done == 4
        assert heard.begun[0] == "APPEND hourly 2024-01-01 to 2024-01-02"
        write(file.parent, "late.parquet", 0)
        assert [work.operation.value for work in project.plan()["hourly"].plan.work] == ["OVERWRITE"]
        assert "late.parquet" in str(project.explain("hourly", "2024-01-01"))
        again = project.refresh("daily")
        results = [result for report in again.reports for result in report.results.values()]
        assert [result.outcome for result in results] == [Outcome.COMMITTED] * 2
        assert "complete through 2024-01-03T00:00:00Z" in str(again)
        answer = project.query("SELECT count(*) AS n FROM trips")
        assert [row["n"] for row in answer.frame.collect()] == [6]
        assert answer.served.view == "daily"
        assert project.explain_query("SELECT count(*) AS n FROM trips").files_from_base == 0
        assert [finding.verdict for finding in project.audit("hourly").findings] == ["equal"] * 2
        status = project.status()
        assert "2 VALID, 0 STALE" in str(status)
        assert "█" in status._repr_html_()
        assert project.mark("hourly", buckets="2024-01-01").as_json()["marked"] == ["2024-01-01"]
        assert project.refresh("hourly").is_wrong is False
        with pytest.raises(HasDependants):
            project.drop("hourly")
        dropped = project.drop("hourly", with_dependants=True)
        assert [each.view for each in dropped.views] == ["hourly", "daily"]
    # Spark was the caller's, and lives.
    assert engine.shared().sql("SELECT 1 AS one").collect()[0]["one"] == 1


def test_explain_says_which_files_were_only_rewritten(
    file: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = ParquetTableVersion.listing
    told = list[Rewrite]()

    def telling(self: ParquetTableVersion, on_read: OnRead = unnoticed) -> Listing:
        return replace(listing(self, on_read), rewrites=tuple(told))

    with Project.open(file, spark=engine.shared()) as project:
        project.refresh()
        before = {
            each["name"]: each for each in project.explain("hourly", "2024-01-01").as_json()["segments"]
        }
        (file.parent / "trips" / "0.parquet").rename(file.parent / "trips" / "z.parquet")
        added = {each["name"]: each for each in project.explain("hourly", "2024-01-01").as_json()["added"]}
        sides = ((before["0.parquet"],), (added["z.parquet"],))
        told.append(Rewrite(*(tuple(map(_segment, side)) for side in sides)))
        monkeypatch.setattr(ParquetTableVersion, "listing", telling)
        found = project.explain("hourly", "2024-01-01")
        same = "rewritten files, same rows by the table's word: "
        assert f"{same}1 segment added (z.parquet), 1 segment removed (0.parquet)" in str(found)
        shown = found.as_json()
        assert (shown["state"], shown["added"], shown["removed"]) == ("VALID", [], [])
        assert project.refresh().reports[0].results == {}
        last = project.explain("hourly", "2024-01-01").as_json()
        assert (last["events"][0]["operation"], last["rewritten"]) == ("FOLLOW", None)


def _segment(shown: dict[str, Any]) -> Segment:
    start, end = (int(datetime.fromisoformat(shown[key]).timestamp() * 1000) for key in ("start", "end"))
    return Segment(shown["name"], int(shown["crc"]), start, end)
