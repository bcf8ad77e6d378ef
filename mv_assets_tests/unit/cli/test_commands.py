from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner, Result
from sqlalchemy import create_engine, inspect

from mv_assets.buckets import DAY
from mv_assets.cli import main
from mv_assets.clock import clock
from mv_assets.observe.maps import StoredMaps
from mv_assets.observe.observation import Observed
from mv_assets.observe.watch import Watch
from mv_assets.plan import planner
from mv_assets.plan.planner import Work
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Attempt, CurrentInputs, DataFile, Doing, SecondLook, Staged
from mv_assets.state.rules import Due
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.open import open_table
from mv_assets.tables.parquet.table import ParquetTableVersion
from mv_assets.views.catalog import load
from mv_assets_tests.support.lake import observation_of

DAILY = "SELECT date_trunc('hour', pickup_at) AS hour, count(*) AS trips FROM trips GROUP BY ALL"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_ids = count(1)


class Lake:
    """A project with one view over a folder of trips, and hand-made refreshes of it, without Spark."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file = root / "project.yaml"
        self.project: dict[str, Any] = {
            "state": "sqlite:///state/state.db",
            "warehouse": "warehouse",
            "tables": [{"name": "trips", "path": "trips", "time_column": "pickup_at", "settle": "0s"}],
            "views": [],
        }
        self.view()

    def view(self, name: str = "daily", **fields: Any) -> None:
        """Declare a view, or declare it otherwise."""
        declared = {
            "base": "trips",
            "sql": DAILY,
            "time_column": "hour",
            "bucket": "1d",
            "start": "2024-01-01",
        }
        others = [view for view in self.project["views"] if view["name"] != name]
        self.project["views"] = [*others, {"name": name, **declared, **fields}]
        self.save()

    def save(self) -> None:
        self.file.write_text(yaml.safe_dump(self.project))

    @property
    def state(self) -> Path:
        return self.root / "state" / "state.db"

    def day(self, day: int, name: str | None = None, rows: int = 24) -> Path:
        """A file with rows through a whole day of January."""
        return self.write(name or f"{day:02}.parquet", FIRST + timedelta(days=day - 1), rows)

    def write(self, name: str, first: datetime, rows: int, last: datetime | None = None) -> Path:
        final = last or first + timedelta(days=1) - timedelta(milliseconds=1)
        times = [first + (final - first) * n / max(rows - 1, 1) for n in range(rows)]
        path = self.root / "trips" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"pickup_at": pa.array(times, pa.timestamp("ms", "UTC"))}), path)
        return path

    def refresh(self, *names: str) -> None:
        """Look, and do what the plan of each view says."""
        for name in names or ("daily",):
            with self.driver() as driver:
                driver.refresh(name)

    @contextmanager
    def driver(self) -> Iterator[Driver]:
        catalog = load(self.file, schemas=False)
        store = Store(catalog.project.state.url)
        try:
            yield Driver(self, store)
        finally:
            store.close()

    def run(self, *arguments: str) -> Result:
        """One command, in this process."""
        return CliRunner().invoke(main, ["--project", str(self.file), *arguments])

    def said(self, *arguments: str, code: int = 0) -> str:
        """What a command says on stdout."""
        result = self.run(*arguments)
        assert result.exit_code == code, result.output
        return result.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.said(*arguments, "--json", code=code))

    def refused(self, *arguments: str, code: int = 2) -> str:
        """The message of a command that stops; it prints nothing else."""
        result = self.run(*arguments)
        assert isinstance(result.exception, SystemExit), result.exception
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        return result.stderr

    def rows(self) -> dict[str, list[Any]]:
        """Everything in the state database."""
        with closing(sqlite3.connect(self.state)) as connection:
            names = [
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            ]
            return {name: sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr) for name in names}

    def bytes(self) -> dict[str, str]:
        """Every file in the project's folder but the commands' own."""
        files = [path for path in self.root.rglob("*") if path.is_file()]
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in files}


class Driver:
    """The steps of a refresh on an open state."""

    def __init__(self, lake: Lake, store: Store) -> None:
        self.catalog = load(lake.file, schemas=False)
        self.store = store
        self.manager = PartitionManager(store, clock=clock, who="test")

    def observed(self, name: str) -> Observed:
        tables = {
            n: open_table(table, self.store.database, clock) for n, table in self.catalog.tables.items()
        }
        maps = StoredMaps(self.store, self.manager)
        found = Watch(self.catalog, tables, maps, clock).round([name], whole=True)[name]
        assert isinstance(found, Observed), found
        return found

    def refresh(self, name: str) -> None:
        observed = self.observed(name)
        for work in planner.plan(observed).work:
            if work.operation is Due.REVERT:
                view_inputs = {planned.bucket: CurrentInputs(planned.inputs) for planned in work.buckets}
                self.manager.revert(observed.view.declaration, view_inputs)
            else:
                self.commit(observed, work)

    def begin(self, observed: Observed, work: Work) -> Attempt:
        attempt = Attempt(f"g{next(_ids)}", observed.header.version, work.buckets)
        self.manager.register(observed.view.declaration, attempt)
        return attempt

    def commit(self, observed: Observed, work: Work) -> None:
        attempt = self.begin(observed, work)
        observation = observation_of(observed)
        seen = {bucket: observation.buckets[bucket] for bucket in attempt.buckets}
        staged = {
            b: Staged(24, 100, 5, tuple(observation.view_inputs.segments(each))) for b, each in seen.items()
        }
        look = SecondLook({bucket: each.current for bucket, each in seen.items()})
        files = [DataFile(f"{attempt.generation}/part-0.parquet", 100, 24)]
        self.manager.commit(observed.view.declaration, attempt, staged, lambda: look, files)

    def fail(self, name: str, error: str) -> None:
        """Fail the first piece of work of the plan."""
        observed = self.observed(name)
        attempt = self.begin(observed, planner.plan(observed).work[0])
        self.manager.fail(observed.view.declaration, attempt, dict.fromkeys(attempt.buckets, error))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def filled(lake: Lake) -> Lake:
    """January 1 to 3, all VALID."""
    for day in (1, 2, 3):
        lake.day(day)
    lake.refresh()
    return lake


def states(lake: Lake) -> dict[str, str]:
    (view,) = lake.json("status")["views"]
    return {bucket["bucket"]: bucket["state"] for bucket in view["buckets"]}


NOTHING_WRONG: dict[str, Any] = {
    "fenced": None,
    "failed": [],
    "broken_files": [],
    "troubles": [],
    "stalled": None,
}


def work(lake: Lake, code: int = 0) -> list[tuple[str, list[str]]]:
    (view,) = lake.json("plan", code=code)["views"]
    return [(each["operation"], each["buckets"]) for each in view["work"]]


# status


def test_status_of_a_view_that_was_never_refreshed(lake: Lake) -> None:
    lake.day(1)
    assert lake.json("status") == {
        "views": [
            {
                "name": "daily",
                "sql": DAILY,
                "python": None,
                "sources": [{"table": "trips", "from_seconds": 0, "to_seconds": 0}],
                "looked_at": None,
                "refreshed_at": None,
                "version": 0,
                "watermark": None,
                "waits_for": None,
                "lag_seconds": None,
                "max_staleness_seconds": None,
                "counts": {"VALID": 0, "STALE": 0},
                **NOTHING_WRONG,
                "computing": [],
                "published": [],
                "no_longer_published": [],
                "buckets": [],
            }
        ]
    }
    assert "never refreshed" in lake.said("status")
    assert not lake.state.parent.exists()


def test_status_has_exactly_the_shape_of_the_design(filled: Lake) -> None:
    filled.view(max_staleness="2h")
    (view,) = filled.json("status")["views"]
    assert list(view) == [
        *("name", "sql", "python", "sources", "looked_at", "refreshed_at"),
        *("version", "watermark", "waits_for", "lag_seconds", "max_staleness_seconds", "counts"),
        *(*NOTHING_WRONG, "computing", "published", "no_longer_published", "buckets"),
    ]
    assert (view["name"], view["watermark"], view["max_staleness_seconds"]) == (
        "daily",
        "2024-01-04T00:00:00Z",
        7_200,
    )
    assert view["counts"] == {"VALID": 3, "STALE": 0}
    assert view["lag_seconds"] > 0
    assert (view["sql"], view["python"]) == (filled.project["views"][0]["sql"], None)
    assert view["sources"] == [{"table": "trips", "from_seconds": 0.0, "to_seconds": 0.0}]
    assert view["refreshed_at"] == max(each["refreshed_at"] for each in view["buckets"])
    assert view["looked_at"] is not None
    first = view["buckets"][0]
    assert (isinstance(first.pop("crc"), str), isinstance(first.pop("generation"), str)) == (True, True)
    refreshed = datetime.fromisoformat(first.pop("refreshed_at"))
    assert refreshed.utcoffset() == timedelta(0)
    assert first == {
        "bucket": "2024-01-01",
        "state": "VALID",
        "segments": 1,
        "further": {},
        "rows": 24,
        "operation": "APPEND",
        "stale_reason": None,
        "attempts": 0,
        "last_error": None,
    }


def test_status_shows_the_strip_the_watermark_and_the_lag(filled: Lake) -> None:
    filled.view(max_staleness="2h")
    said = filled.said("status")
    assert "███" in said
    assert "complete through 2024-01-04T00:00:00Z" in said
    assert "of 2h allowed" in said
    assert "3 VALID, 0 STALE" in said


def test_status_says_why_a_bucket_is_stale(filled: Lake) -> None:
    filled.said("mark", "daily", "--bucket", "2024-01-02", "--reason", "wrong zone")
    (view,) = filled.json("status")["views"]
    assert view["counts"] == {"VALID": 2, "STALE": 1}
    assert [bucket["stale_reason"] for bucket in view["buckets"]] == [None, "wrong zone", None]


def test_status_of_a_changed_definition_is_stale_with_that_reason(filled: Lake) -> None:
    filled.view(sql=DAILY.replace("count(*)", "count(pickup_at)"))
    assert "the project declares definition" in filled.said("status")
    with filled.driver() as driver:
        driver.observed("daily")
    (view,) = filled.json("status")["views"]
    assert view["counts"] == {"VALID": 0, "STALE": 3}
    assert view["buckets"][0]["stale_reason"] == "the view's definition changed"


def test_mark_does_not_put_another_definition_in_force_by_the_way(filled: Lake) -> None:
    rows = filled.rows()
    filled.view(sql=DAILY.replace("count(*)", "count(pickup_at)"))
    assert "nothing was marked" in filled.refused("mark", "daily", "--bucket", "2024-01-02")
    assert filled.rows() == rows


def test_status_reports_a_stall_and_exits_with_1(filled: Lake) -> None:
    filled.view(stall_after="0s")
    filled.day(4)
    with filled.driver() as driver:
        driver.observed("daily")
    said = filled.said("status", code=1)
    assert "stalled: 2024-01-04 has been due for" in said
    assert "or run `mv-assets refresh daily`" in said
    assert "2024-01-04" in filled.json("status", code=1)["views"][0]["stalled"]


def test_status_names_a_file_that_holds_the_watermark_and_exits_with_1(filled: Lake) -> None:
    (filled.root / "trips/noise.parquet").write_bytes(b"no parquet")
    with filled.driver() as driver:
        driver.observed("daily")
    assert "trips: file noise.parquet: it can't be read as Parquet" in filled.said("status", code=1)
    (broken,) = filled.json("status", code=1)["views"][0]["broken_files"]
    assert broken.startswith("trips: file noise.parquet: it can't be read as Parquet")


def test_a_broken_table_of_another_view_does_not_stop_a_plan(filled: Lake) -> None:
    filled.project["tables"].append({"name": "gone", "path": "nowhere", "time_column": "at"})
    filled.save()
    assert "nothing to do" in filled.said("plan", "daily")
    assert "nothing to do" in filled.said("plan")
    assert "tables.gone.path" in filled.refused("project", "check")


def test_buckets_that_wait_for_the_same_share_a_line_only_if_they_are_neighbours(filled: Lake) -> None:
    for number in (1, 3):
        filled.day(number, "late.parquet" if number == 1 else "later.parquet")
        with filled.driver() as driver:
            driver.fail("daily", "the same error")
    waiting = [line for line in filled.said("plan", code=1).splitlines() if "backing off" in line]
    assert not any(" to " in line.split("backing")[0] for line in waiting)


def test_status_with_a_failed_bucket_names_it_and_exits_with_1(filled: Lake) -> None:
    filled.day(2, "late.parquet")
    with filled.driver() as driver:
        driver.fail("daily", "file [late] is damaged")
    (view,) = filled.json("status", code=1)["views"]
    assert (view["buckets"][1]["attempts"], view["buckets"][1]["last_error"]) == (1, "file [late] is damaged")
    said = filled.said("status", code=1)
    assert "✗ 2024-01-02 failed 1 time: file [late] is damaged" in said


def test_status_has_a_line_for_neighbours_that_failed_alike(filled: Lake) -> None:
    for numbers, error in (((1, 2), "one error"), ((3,), "another")):
        for number in numbers:
            filled.day(number, f"late-{number}.parquet")
        with filled.driver() as driver:
            driver.fail("daily", error)
    said = [line.strip() for line in filled.said("status", code=1).splitlines() if "✗ 2024" in line]
    assert said == [
        "✗ 2024-01-01 to 2024-01-02 failed 1 time: one error",
        "✗ 2024-01-03 failed 1 time: another",
    ]


# What is wrong


def noise(lake: Lake) -> str:
    """A file of which nobody knows where its rows belong; that nothing waits to be computed."""
    (lake.root / "trips/noise.parquet").write_bytes(b"no parquet")
    return "trips: file noise.parquet: it can't be read as Parquet"


def failed(lake: Lake) -> str:
    lake.day(2, "late.parquet")
    with lake.driver() as driver:
        driver.fail("daily", "nobody can divide by zero")
    return "nobody can divide by zero"


def troubled(lake: Lake) -> str:
    lake.day(2, "late.parquet")
    with lake.driver() as driver:
        error = TableUnreadable("trips", "somewhere", "the disk is full")
        Troubles(driver.store, clock).note(Doing.WORK, {"daily": error})
    return "the disk is full"


def stalled(lake: Lake) -> str:
    lake.view(stall_after="0s")
    lake.day(2, "late.parquet")
    with lake.driver() as driver:
        driver.observed("daily")
    return "stalled: 2024-01-02 has been due for"


WRONG: dict[str, Callable[[Lake], str]] = {
    "broken_files": noise,
    "failed": failed,
    "troubles": troubled,
    "stalled": stalled,
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize(
    "command",
    [
        ("status",),
        ("plan",),
        # Of a bucket that there is nothing to do about: it needs no Spark, and what is wrong is elsewhere.
        ("refresh", "daily", "--bucket", "2024-01-01"),
        ("explain", "daily", "2024-01-01"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_that_looks_says_what_is_wrong_and_exits_with_1(
    filled: Lake, kind: str, command: tuple[str, ...]
) -> None:
    told = WRONG[kind](filled)
    if command[0] == "status":
        # It tells of the last look, and makes none.
        with filled.driver() as driver:
            driver.observed("daily")
    said = filled.said(*command, code=1)
    assert told in said
    assert "up to date" not in said
    found = filled.json(*command, code=1)
    view = found["views"][0] if "views" in found else found
    assert told in json.dumps(view[kind])


def test_a_refresh_of_all_names_a_file_that_holds_the_watermark_and_what_to_do_about_it(filled: Lake) -> None:
    told = noise(filled)
    said = filled.said("refresh", code=1)
    assert "complete through 2024-01-04" in said
    assert told in said
    assert "so the watermark stays: restore it, or delete it" in said
    (filled.root / "trips/noise.parquet").unlink()
    assert "up to date" in filled.said("refresh")


def test_what_is_wrong_with_a_view_is_said_of_those_that_are_based_on_it(filled: Lake) -> None:
    filled.view("upon", base="daily", sql="SELECT hour, trips FROM daily")
    filled.refresh("upon")
    told = noise(filled)
    for command in ("plan", "refresh"):
        assert told in filled.said(command, "upon", code=1)
        assert told in json.dumps(filled.json(command, "upon", code=1))
    explained = ("explain", "upon", "2024-01-02")
    assert f"daily: {told}" in filled.said(*explained, code=1)
    assert told in filled.json(*explained, code=1)["upstream_wrong"][0]


def test_a_trouble_that_is_over_is_not_said_by_the_look_that_ends_it(filled: Lake) -> None:
    with filled.driver() as driver:
        error = TableUnreadable("trips", "somewhere", "the disk was full")
        Troubles(driver.store, clock).note(Doing.LOOK, {"daily": error})
    assert "the disk was full" in filled.said("status", code=1)
    assert "nothing to do" in filled.said("plan")
    assert "up to date" in filled.said("refresh")
    filled.said("status")


def test_status_says_what_is_being_computed_and_since_when(filled: Lake) -> None:
    filled.day(4)
    filled.day(5)
    with filled.driver() as driver:
        observed = driver.observed("daily")
        attempt = driver.begin(observed, planner.plan(observed).work[0])
        said = filled.said("status")
        (view,) = filled.json("status")["views"]
        assert "computing 2 buckets (2024-01-04 to 2024-01-05) for " in said
        assert [each["bucket"] for each in view["computing"]] == ["2024-01-04", "2024-01-05"]
        since = datetime.fromisoformat(view["computing"][0]["since"])
        assert abs(datetime.now(UTC) - since) < timedelta(minutes=5)
        driver.manager.abandon("daily", attempt)
    assert "computing" not in filled.said("status")
    assert filled.json("status")["views"][0]["computing"] == []


def test_status_of_some_views_only(filled: Lake) -> None:
    filled.view("other")
    assert [view["name"] for view in filled.json("status")["views"]] == ["daily", "other"]
    assert [view["name"] for view in filled.json("status", "other")["views"]] == ["other"]


@pytest.fixture(scope="module")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """One file under 50,000 quarters of an hour, all VALID."""
    lake = Lake(tmp_path_factory.mktemp("huge"))
    lake.view(bucket="15m", max_buckets_per_run=10_000, sql=DAILY.replace("'hour'", "'minute'"))
    lake.write("all.parquet", FIRST, 2, FIRST + timedelta(minutes=15 * 50_000, milliseconds=-1))
    lake.refresh()
    return lake


@pytest.mark.slow
def test_status_of_50_000_buckets_fits_a_screen(huge: Lake) -> None:
    said = huge.said("status")
    assert "50000 VALID" in said
    assert len(said.splitlines()) < 10
    assert max(map(len, said.splitlines())) <= 120
    assert "buckets per cell" in said


@pytest.mark.slow
def test_status_json_of_50_000_buckets_has_them_all(huge: Lake) -> None:
    (view,) = huge.json("status")["views"]
    assert len(view["buckets"]) == view["counts"]["VALID"] == 50_000


@pytest.mark.slow
def test_plan_of_50_000_buckets_fits_two_screens(huge: Lake) -> None:
    huge.view(bucket="15m", max_buckets_per_run=64, sql=DAILY.replace("'hour'", "'second'"))
    said = huge.said("plan")
    assert "50000 buckets" in said
    assert len(said.splitlines()) < 48
    huge.view(bucket="15m", max_buckets_per_run=10_000, sql=DAILY.replace("'hour'", "'minute'"))


# plan


def test_plan_of_a_new_view_appends_and_makes_no_state(lake: Lake) -> None:
    files = [lake.day(1), lake.day(2)]
    before = lake.bytes()
    assert lake.json("plan") == {
        "views": [
            {
                "name": "daily",
                "work": [
                    {
                        "operation": "APPEND",
                        "buckets": ["2024-01-01", "2024-01-02"],
                        "merged": [],
                        "bytes": sum(file.stat().st_size for file in files),
                        "bytes_by_table": {"trips": sum(file.stat().st_size for file in files)},
                        "bytes_spared": 0,
                        "reason": "new",
                    }
                ],
                "waiting": [],
                "follows": [],
                "errors": [],
                **NOTHING_WRONG,
            }
        ]
    }
    assert lake.bytes() == before


def test_plan_for_people_says_what_why_and_how_much(lake: Lake) -> None:
    lake.day(1)
    lake.day(2)
    said = lake.said("plan")
    assert "APPEND    2024-01-01 to 2024-01-02  2 buckets" in said
    assert "to read" in said


def test_plan_says_what_is_merged_and_what_that_spares(filled: Lake) -> None:
    late(filled)
    [planned] = filled.json("plan")["views"][0]["work"]
    whole = sum((filled.root / "trips" / name).stat().st_size for name in ("02.parquet", "late.parquet"))
    assert planned["merged"] == ["2024-01-02"]
    assert planned["bytes_spared"] > 0
    assert planned["bytes"] + planned["bytes_spared"] == whole
    assert "merged with what is stored" in filled.said("plan")


def test_plan_with_nothing_to_do_says_so(filled: Lake) -> None:
    assert work(filled) == []
    assert "nothing to do" in filled.said("plan")


def late(lake: Lake) -> None:
    lake.day(2, "late.parquet")


def changed(lake: Lake) -> None:
    lake.day(2, rows=5)


def removed(lake: Lake) -> None:
    (lake.root / "trips/02.parquet").unlink()


def forced(lake: Lake) -> None:
    lake.said("mark", "daily", "--bucket", "2024-01-02", "--reason", "wrong zone")


def new(lake: Lake) -> None:
    lake.day(4)


def redefined(lake: Lake) -> None:
    lake.view(sql=DAILY.replace("count(*)", "count(pickup_at)"))


def widened(lake: Lake) -> None:
    lake.view(bucket="1w")


def extended(lake: Lake) -> None:
    lake.view(start="2023-12-30")


def frozen(lake: Lake) -> None:
    lake.view(on_base_delete="freeze")
    lake.refresh()
    removed(lake)


HAPPENINGS = [late, changed, removed, forced, new, redefined, widened, extended, frozen]


@pytest.mark.parametrize(
    ("happening", "planned", "reason"),
    [
        (late, [("OVERWRITE", ["2024-01-02"])], "1 segment added (late.parquet)"),
        (changed, [("OVERWRITE", ["2024-01-02"])], "1 segment changed (02.parquet)"),
        (removed, [("DELETE", ["2024-01-02"])], "1 segment removed (02.parquet)"),
        (forced, [("OVERWRITE", ["2024-01-02"])], "wrong zone"),
        (new, [("APPEND", ["2024-01-04"])], "new"),
        (
            redefined,
            [("OVERWRITE", ["2024-01-01", "2024-01-02", "2024-01-03"])],
            "the view's definition changed",
        ),
    ],
)
def test_plan_finds_what_happened_and_why(
    filled: Lake, happening: Callable[[Lake], None], planned: list[tuple[str, list[str]]], reason: str
) -> None:
    happening(filled)
    assert work(filled) == planned
    assert filled.json("plan")["views"][0]["work"][0]["reason"] == reason
    assert reason in filled.said("plan")


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_plan_and_explain_and_status_write_nothing(filled: Lake, happening: Callable[[Lake], None]) -> None:
    happening(filled)
    rows, files = filled.rows(), filled.bytes()
    for command in (["plan"], ["status"], ["explain", "daily", "2024-01-01"]):
        filled.run(*command)
        assert filled.bytes() == files, command
    assert filled.rows() == rows


@pytest.mark.parametrize("happening", HAPPENINGS)
def test_plan_says_what_a_refresh_then_plans(filled: Lake, happening: Callable[[Lake], None]) -> None:
    happening(filled)
    (shown,) = filled.json("plan")["views"]
    with filled.driver() as driver:
        observed = driver.observed("daily")
    made = planner.plan(observed)
    key = observed.view.buckets.key
    assert [(each["operation"], each["buckets"], each["bytes"]) for each in shown["work"]] == [
        (each.operation.value, [key(planned.bucket) for planned in each.buckets], each.bytes)
        for each in made.work
    ]
    assert [(each["bucket"], each["reason"]) for each in shown["waiting"]] == [
        (key(each.bucket), each.reason) for each in made.waiting
    ]


def test_a_frozen_bucket_is_not_planned(filled: Lake) -> None:
    frozen(filled)
    assert work(filled) == []


def test_a_frozen_bucket_that_is_forced_waits_and_says_for_what(filled: Lake) -> None:
    frozen(filled)
    forced(filled)
    (view,) = filled.json("plan")["views"]
    assert view["work"] == []
    assert [each["bucket"] for each in view["waiting"]] == ["2024-01-02"]
    assert "frozen: 1 of its files are gone (02.parquet)" in view["waiting"][0]["reason"]


def test_a_mark_that_turns_out_false_is_reverted(filled: Lake) -> None:
    path = filled.root / "trips/02.parquet"
    content = path.read_bytes()
    changed(filled)
    with filled.driver() as driver:
        driver.observed("daily")
    path.write_bytes(content)
    assert work(filled) == [("REVERT", ["2024-01-02"])]


def test_plan_names_a_broken_file_and_exits_with_1(filled: Lake) -> None:
    (filled.root / "trips/02.parquet").write_bytes(b"no parquet")
    (view,) = filled.json("plan", code=1)["views"]
    assert view["work"] == []
    assert [each["bucket"] for each in view["waiting"]] == ["2024-01-02"]
    ((file, message),) = [each.values() for each in view["errors"]]
    assert file == "02.parquet"
    assert "trips: file 02.parquet: it can't be read as Parquet" in message
    assert "02.parquet" in filled.said("plan", code=1)


def test_a_broken_file_does_not_stop_the_work_on_other_buckets(filled: Lake) -> None:
    (filled.root / "trips/02.parquet").write_bytes(b"no parquet")
    new(filled)
    assert work(filled, code=1) == [("APPEND", ["2024-01-04"])]


def test_plan_counts_the_broken_files_that_it_does_not_show(filled: Lake) -> None:
    for number in range(30):
        (filled.root / f"trips/broken{number:02}.parquet").write_bytes(b"no parquet")
    said = filled.said("plan", code=1)
    assert "and 10 more" in said
    assert len(filled.json("plan", code=1)["views"][0]["errors"]) == 30


def test_plan_names_broken_files_in_order(filled: Lake) -> None:
    for number in (7, 3, 9, 1, 5, 8, 2, 6, 4):
        (filled.root / f"trips/broken{number}.parquet").write_bytes(b"no parquet")
    errors = filled.json("plan", code=1)["views"][0]["errors"]
    assert [each["file"] for each in errors] == [f"broken{number}.parquet" for number in range(1, 10)]


def test_plan_counts_rows_without_a_time(filled: Lake) -> None:
    times = pa.array([FIRST, None, None], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"pickup_at": times}), filled.root / "trips/null.parquet")
    assert "2 rows in 1 file have no time and belong to no bucket" in filled.said("plan")


def test_plan_of_a_bucket_whose_buffer_has_not_passed_waits_for_the_clock(lake: Lake) -> None:
    today = clock() // DAY * DAY
    first = datetime.fromtimestamp(today / 1000 - 86_400, UTC)
    lake.view(start=f"{first:%Y-%m-%d}", buffer="2d")
    lake.write("yesterday.parquet", first, 24)
    assert work(lake) == []
    lake.view(start=f"{first:%Y-%m-%d}")
    assert work(lake) == [("APPEND", [f"{first:%Y-%m-%d}"])]


def test_plan_of_a_view_on_a_view_waits_for_its_base(lake: Lake) -> None:
    lake.day(1)
    lake.view("weekly", base="daily", sql="SELECT hour, trips FROM daily")
    first, second = lake.json("plan")["views"]
    assert [(first["name"], len(first["work"])), (second["name"], len(second["work"]))] == [
        ("daily", 1),
        ("weekly", 0),
    ]
    lake.refresh("daily")
    (only,) = lake.json("plan", "weekly")["views"]
    assert [each["buckets"] for each in only["work"]] == [["2024-01-01"]]
    lake.refresh("weekly")
    lake.said("mark", "daily", "--bucket", "2024-01-01")
    lake.said("mark", "weekly", "--bucket", "2024-01-01")
    (only,) = lake.json("plan", "weekly")["views"]
    assert only["waiting"] == [
        {"bucket": "2024-01-01", "reason": "waits for daily 2024-01-01, which is STALE"}
    ]


def chain(lake: Lake) -> None:
    """Three views, each on the one before, all up to date."""
    lake.view("upon", base="daily", sql="SELECT hour, trips FROM daily")
    lake.view("top", base="upon", sql="SELECT hour, trips FROM upon", bucket="1w", start="2024-01-01")
    lake.refresh("upon", "top")


def follows(lake: Lake, *views: str) -> dict[str, list[tuple[str, str, list[str]]]]:
    found = lake.json("plan", *views)["views"]
    return {
        view["name"]: [
            (" ".join(each["after"]), each["operation"], each["buckets"]) for each in view["follows"]
        ]
        for view in found
    }


def test_plan_says_what_follows_through_any_depth(lake: Lake) -> None:
    for number in range(1, 9):
        lake.day(number)
    lake.refresh()
    chain(lake)
    assert follows(lake) == {"daily": [], "upon": [], "top": []}
    late(lake)
    assert follows(lake) == {
        "daily": [],
        "upon": [("daily", "OVERWRITE", ["2024-01-02"])],
        "top": [("upon", "OVERWRITE", ["2024-01-01"])],
    }
    assert follows(lake, "top") == {"top": [("upon", "OVERWRITE", ["2024-01-01"])]}
    said = lake.said("plan", "top").splitlines()
    assert said[1].strip() == "follows   2024-01-01  1 bucket  once upon is computed"
    assert "nothing to do" not in "".join(said)


def test_plan_says_what_follows_a_view_that_is_read_beside_the_base(lake: Lake) -> None:
    sql = "SELECT :bucket_start AS hour, count(*) AS n FROM trips JOIN daily ON daily.hour = trips.pickup_at"
    lake.view("beside", sql=sql, scope="bucket", **{"with": [{"table": "daily", "to": "1d"}]})
    lake.view("upon", base="daily", sql="SELECT hour, trips FROM daily")
    three = "SELECT u.hour FROM upon u JOIN daily d ON d.hour = u.hour JOIN beside b ON b.hour = u.hour"
    also = {"with": [{"table": "daily"}, {"table": "beside"}]}
    lake.view("over", base="upon", sql=three, scope="bucket", **also)
    for number in range(1, 6):
        lake.day(number)
    lake.refresh("daily", "beside", "upon", "over")
    assert not any(follows(lake).values())
    late(lake)
    # Of the second of January: what reads it a day ahead is the first's.
    assert follows(lake) == {
        "daily": [],
        "beside": [("daily", "OVERWRITE", ["2024-01-01", "2024-01-02"])],
        "upon": [("daily", "OVERWRITE", ["2024-01-02"])],
        "over": [("upon beside daily", "OVERWRITE", ["2024-01-01", "2024-01-02"])],
    }
    said = "".join(lake.said("plan"))
    assert "follows   2024-01-01 to 2024-01-02  2 buckets  once daily is computed" in said
    assert "2 buckets  once upon and beside and daily are computed" in said


def test_what_plan_says_will_follow_is_what_refreshes_then_do(lake: Lake) -> None:
    chain(lake)
    for number in range(1, 9):
        lake.day(number)
    promised = {name: [tuple(each[1:]) for each in found] for name, found in follows(lake).items()}
    assert [len(found) for found in promised.values()] == [0, 1, 1]
    lake.refresh("daily")
    for name in ("upon", "top"):
        (view,) = lake.json("plan", name)["views"]
        assert [(each["operation"], each["buckets"]) for each in view["work"]] == promised[name]
        lake.refresh(name)


def test_what_waits_for_a_bucket_that_can_t_be_computed_does_not_follow(filled: Lake) -> None:
    chain(filled)
    (filled.root / "trips/02.parquet").write_bytes(b"no parquet")
    filled.day(3, "late.parquet")
    found = {view["name"]: view["follows"] for view in filled.json("plan", code=1)["views"]}
    assert [(each["after"], each["buckets"]) for each in found["upon"]] == [(["daily"], ["2024-01-03"])]
    assert found["top"] == []


def test_plan_of_what_follows_writes_nothing_and_lists_no_table_twice(
    filled: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(filled)
    late(filled)
    before, listings = filled.rows(), list[str]()
    really = ParquetTableVersion.listing

    def counted(version: ParquetTableVersion, *given: Any) -> Any:
        listings.append(version.table.name)
        return really(version, *given)

    monkeypatch.setattr(ParquetTableVersion, "listing", counted)
    filled.said("plan")
    assert (filled.rows(), listings) == (before, ["trips"])


def test_work_in_flight_is_not_planned_again(filled: Lake) -> None:
    late(filled)
    with filled.driver() as driver:
        observed = driver.observed("daily")
        attempt = driver.begin(observed, planner.plan(observed).work[0])
    (view,) = filled.json("plan")["views"]
    assert view["work"] == []
    assert view["waiting"] == [{"bucket": "2024-01-02", "reason": f"in flight: {attempt.generation}"}]


# explain


def test_explain_has_exactly_the_shape_of_the_design(filled: Lake) -> None:
    late(filled)
    changed(filled)
    found = filled.json("explain", "daily", "2024-01-02")
    required = ["view", "bucket", "state", "reason", "segments", "added", "changed", "removed", "events"]
    assert {*required, "last_error"} <= found.keys()
    assert (found["view"], found["bucket"], found["state"]) == ("daily", "2024-01-02", "STALE")
    assert found["reason"] == "1 segment added (late.parquet), 1 segment changed (02.parquet)"
    assert [[s["name"] for s in found[key]] for key in ("segments", "added", "changed", "removed")] == [
        ["02.parquet"],
        ["late.parquet"],
        ["02.parquet"],
        [],
    ]
    (segment,) = found["segments"]
    assert list(segment) == ["table", "name", "crc", "start", "end"]
    assert (segment["start"], segment["end"]) == ("2024-01-02T00:00:00Z", "2024-01-02T23:59:59.999Z")
    assert isinstance(segment["crc"], str)
    assert [event["operation"] for event in found["events"]] == ["APPEND"]
    assert found["last_error"] is None


def test_explain_for_people_names_the_files(filled: Lake) -> None:
    removed(filled)
    late(filled)
    said = filled.said("explain", "daily", "2024-01-02")
    assert "daily 2024-01-02  STALE" in said
    assert "because 1 segment added (late.parquet), 1 segment removed (02.parquet)" in said
    assert "next: OVERWRITE is due" in said
    assert "APPEND VACANT -> VALID by test" in said


def test_explain_says_when_a_bucket_that_the_data_ends_in_is_due(filled: Lake) -> None:
    filled.write("04.parquet", FIRST + timedelta(days=3), 9, FIRST + timedelta(days=4, seconds=-29))
    found = filled.json("explain", "daily", "2024-01-04")
    known = "trips is known to have data up to 2024-01-04T23:59:31Z"
    closes = "the view's `closes` would have it due by the clock"
    assert found["reason"] == f"it ends at 2024-01-05T00:00:00Z, and {known}; {closes}"
    filled.view(closes="3650d")
    due = f"it ends at 2024-01-05T00:00:00Z, {known}, and it is due at 2034-01-02T00:00:00Z"
    assert filled.json("explain", "daily", "2024-01-04")["reason"] == due
    filled.view(closes="1h")
    assert filled.json("explain", "daily", "2024-01-04")["reason"] == "APPEND is due: new"
    assert work(filled) == [("APPEND", ["2024-01-04"])]


def test_explain_of_a_valid_bucket_gives_no_reason(filled: Lake) -> None:
    found = filled.json("explain", "daily", "2024-01-02")
    assert (found["state"], found["reason"], found["added"], found["changed"]) == ("VALID", None, [], [])
    assert "computed" in filled.said("explain", "daily", "2024-01-02")


def test_explain_of_a_new_bucket_says_that_it_is_due_and_makes_no_state(lake: Lake) -> None:
    lake.day(1)
    found = lake.json("explain", "daily", "2024-01-01")
    assert (found["state"], found["reason"]) == ("VACANT", "APPEND is due: new")
    assert not lake.state.parent.exists()


@pytest.mark.parametrize("bucket", ["2023-12-25", "2024-01-04", "2031-01-01"])
def test_explain_of_a_bucket_that_is_not_due_says_why_not(filled: Lake, bucket: str) -> None:
    filled.write("half.parquet", FIRST + timedelta(days=3), 2, FIRST + timedelta(days=3, hours=1))
    found = filled.json("explain", "daily", bucket)
    assert found["state"] == "VACANT"
    assert found["reason"], "nothing is said"


def test_explain_of_a_frozen_bucket_says_so(filled: Lake) -> None:
    frozen(filled)
    found = filled.json("explain", "daily", "2024-01-02")
    assert [segment["name"] for segment in found["removed"]] == ["02.parquet"]
    assert "frozen" in filled.said("explain", "daily", "2024-01-02")


def test_explain_of_a_bucket_with_a_broken_file_names_it_and_why(filled: Lake) -> None:
    (filled.root / "trips/02.parquet").write_bytes(b"no parquet")
    said = filled.said("explain", "daily", "2024-01-02", code=1)
    assert "file 02.parquet: it can't be read as Parquet" in said


def test_explain_of_a_view_on_a_view_counts_segments_where_others_have_files(filled: Lake) -> None:
    filled.view("upon", base="daily", sql="SELECT hour, trips FROM daily")
    filled.refresh("upon")
    assert "from 1 file:" in filled.said("explain", "daily", "2024-01-02")
    assert "from 1 segment:" in filled.said("explain", "upon", "2024-01-02")


def test_explain_of_a_bucket_that_waits_says_for_what(lake: Lake) -> None:
    lake.day(1)
    lake.view("weekly", base="daily", sql="SELECT hour, trips FROM daily")
    lake.refresh("daily", "weekly")
    lake.said("mark", "daily")
    lake.said("mark", "weekly")
    said = lake.said("explain", "weekly", "2024-01-01")
    assert "waits for daily 2024-01-01, which is STALE" in said


def test_explain_says_who_marked_a_bucket_and_why(filled: Lake) -> None:
    forced(filled)
    found = filled.json("explain", "daily", "2024-01-02")
    assert found["reason"] == "wrong zone"
    newest = found["events"][0]
    assert (newest["operation"], newest["before"], newest["after"]) == ("FORCE", "VALID", "STALE")
    assert newest["who"].endswith("with mv-assets mark")


def test_explain_shows_the_last_error_and_since_when_after_many_failures(filled: Lake) -> None:
    with filled.driver() as driver:
        for number in range(12):
            filled.day(2, "late.parquet", rows=number + 2)
            driver.fail("daily", f"error {number}")
    found = filled.json("explain", "daily", "2024-01-02", code=1)
    assert (found["state"], found["last_error"]) == ("STALE", "error 11")
    assert found["since"] is not None
    assert "last error error 11" in filled.said("explain", "daily", "2024-01-02", code=1)


def test_explain_of_a_bucket_with_very_many_files_fits_a_screen(filled: Lake) -> None:
    for number in range(200):
        filled.day(2, f"more{number:03}.parquet", rows=2)
    said = filled.said("explain", "daily", "2024-01-02")
    assert len(said.splitlines()) < 40
    assert "and 185 more added" in said


@pytest.mark.parametrize(
    ("bucket", "said"),
    [
        ("2024-01-02T05:00", "is not the start of a 1d bucket; it lies in 2024-01-02"),
        ("yesterday", "'yesterday' is not a bucket; write it like"),
        ("", "'' is not a bucket"),
        ("2024-02-30", "is not a bucket"),
        ("0001-01-01T00:00+23:00", "is not a bucket"),
    ],
)
@pytest.mark.parametrize("command", [["explain", "daily"], ["mark", "daily", "--bucket"]])
def test_a_bucket_that_is_none_is_refused(filled: Lake, command: list[str], bucket: str, said: str) -> None:
    assert said in filled.refused(*command, bucket)


# mark


def test_mark_of_one_bucket(filled: Lake) -> None:
    assert filled.json("mark", "daily", "--bucket", "2024-01-02") == {
        "view": "daily",
        "marked": ["2024-01-02"],
        "published": [],
    }
    assert states(filled) == {"2024-01-01": "VALID", "2024-01-02": "STALE", "2024-01-03": "VALID"}


def test_mark_of_a_range_includes_its_last_bucket(filled: Lake) -> None:
    said = filled.said("mark", "daily", "--from", "2024-01-02", "--to", "2024-01-03")
    assert said == "marked 2 buckets of daily: 2024-01-02 to 2024-01-03\n"
    assert list(states(filled).values()) == ["VALID", "STALE", "STALE"]


def test_mark_of_the_whole_view(filled: Lake) -> None:
    assert filled.json("mark", "daily")["marked"] == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert set(states(filled).values()) == {"STALE"}
    assert work(filled) == [("OVERWRITE", ["2024-01-01", "2024-01-02", "2024-01-03"])]


def test_a_forced_mark_is_served_by_a_refresh_and_never_reverted(filled: Lake) -> None:
    forced(filled)
    assert work(filled) == [("OVERWRITE", ["2024-01-02"])]
    filled.refresh()
    assert set(states(filled).values()) == {"VALID"}


def test_mark_before_the_coverage_is_refused_and_changes_nothing(filled: Lake) -> None:
    rows = filled.rows()
    said = filled.refused("mark", "daily", "--bucket", "2023-12-30")
    assert "lies before its coverage, which starts at 2024-01-01" in said
    assert filled.rows() == rows


def test_mark_before_the_coverage_says_which_option_extends_it(filled: Lake) -> None:
    assert "--extend" in filled.refused("mark", "daily", "--bucket", "2023-12-30")


def test_mark_with_a_year_that_was_mistyped_extends_nothing(filled: Lake) -> None:
    rows = filled.rows()
    said = filled.refused("mark", "daily", "--bucket", "1024-01-01", "--extend")
    assert "to start at 1024-01-01 instead of 2024-01-01, view 'daily' would get 365,243 more buckets" in said
    assert "at most 100,000 are added at once; is the year right? if so, declare `start: 1024-01-01`" in said
    assert filled.rows() == rows


def test_mark_declares_no_start_that_nobody_could_look_at(lake: Lake) -> None:
    lake.view(start="1900-01-01", bucket="1m", sql="SELECT pickup_at AS hour FROM trips")
    assert "buckets of 1m from its start at 1900" in lake.run("mark", "daily").output
    with lake.driver() as driver:
        assert driver.store.views() == []


def test_mark_with_extend_covers_what_lies_between(filled: Lake) -> None:
    filled.said("mark", "daily", "--bucket", "2023-12-30", "--extend")
    assert list(states(filled))[:2] == ["2023-12-30", "2023-12-31"]
    assert list(states(filled).values()) == ["STALE", "STALE", "VALID", "VALID", "VALID"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--bucket", "2024-01-01", "--from", "2024-01-01"], "either --bucket or --from and --to"),
        (["--from", "2024-01-01"], "a range has both --from and --to"),
        (["--to", "2024-01-01"], "a range has both --from and --to"),
        (
            ["--from", "2024-01-03", "--to", "2024-01-01"],
            "the last bucket 2024-01-01 lies before the first, 2024-01-03",
        ),
        (["--bucket", "2999-01-01"], "lies in the future"),
        (["--extend"], "--extend goes with --bucket or --from and --to"),
        (["--bucket"], "requires an argument"),
    ],
)
def test_mark_with_options_that_make_no_sense_is_refused_and_makes_no_state(
    lake: Lake, options: list[str], said: str
) -> None:
    assert said in lake.refused("mark", "daily", *options)
    assert not lake.state.parent.exists()


def test_mark_of_a_view_without_buckets_says_so(lake: Lake) -> None:
    assert lake.said("mark", "daily") == "daily has no bucket to mark yet\n"
    assert lake.json("mark", "daily") == {"view": "daily", "marked": [], "published": []}


def test_mark_of_a_range_of_many_years(filled: Lake) -> None:
    filled.view(start="2010-01-01")
    said = filled.said("mark", "daily", "--from", "2010-01-01", "--to", "2023-12-31")
    assert said == f"marked {14 * 365 + 3} buckets of daily: 2010-01-01 to 2023-12-31\n"


# Definitions


def fenced(lake: Lake) -> None:
    """A newer definition took over; the project file still declares the earlier one."""
    redefined(lake)
    with lake.driver() as driver:
        driver.observed("daily")
    lake.view()


def test_plan_of_a_fenced_deployment_says_so_and_exits_with_1(filled: Lake) -> None:
    fenced(filled)
    (view,) = filled.json("plan", code=1)["views"]
    assert (view["work"], view["waiting"]) == ([], [])
    ((file, message),) = [each.values() for each in view["errors"]]
    assert file is None
    assert "it is fenced" in message
    assert "mv-assets adopt" in filled.said("plan", code=1)


@pytest.mark.parametrize(
    "command",
    [
        ["mark", "daily"],
        ["explain", "daily", "2024-01-01"],
        ["refresh", "daily", "--bucket", "2024-01-01"],
    ],
)
def test_a_fenced_deployment_is_refused(filled: Lake, command: list[str]) -> None:
    fenced(filled)
    rows = filled.rows()
    assert "it is fenced" in filled.refused(*command, code=1)
    assert filled.rows() == rows


def test_a_refresh_of_a_fenced_deployment_says_so_and_exits_with_1(filled: Lake) -> None:
    fenced(filled)
    assert "it is fenced" in filled.said("refresh", code=1)
    assert "it is fenced" in filled.json("refresh", code=1)["views"][0]["fenced"]


def test_status_of_a_fenced_deployment_says_what_to_do_and_exits_with_1(filled: Lake) -> None:
    mine = load(filled.file, schemas=False).view("daily").definition
    fenced(filled)
    said = " ".join(filled.said("status", code=1).split())
    assert f"this deployment declares {mine}: it is fenced; deploy the current definition" in said
    assert "or go back on purpose with `mv-assets adopt`" in said
    told = filled.json("status", code=1)["views"][0]["fenced"]
    assert f"this deployment declares {mine}: it is fenced" in told


def test_adopt_goes_back_to_the_declared_definition_and_the_plan_reverts(filled: Lake) -> None:
    mine = load(filled.file, schemas=False).view("daily").definition
    fenced(filled)
    assert filled.said("adopt", "daily") == f"daily is defined as {mine}\n"
    assert work(filled) == [("REVERT", ["2024-01-01", "2024-01-02", "2024-01-03"])]


def test_adopt_of_the_definition_in_force_changes_nothing(filled: Lake) -> None:
    rows = filled.rows()
    filled.said("adopt", "daily")
    assert filled.rows() == rows


def test_adopt_of_a_definition_that_never_was_is_refused(filled: Lake) -> None:
    assert "never had definition nope; adopt one that it had" in filled.refused("adopt", "daily", "nope")


def test_adopt_before_any_state_is_refused_and_makes_none(lake: Lake) -> None:
    lake.refused("adopt", "daily")
    assert not lake.state.parent.exists()


def test_adopt_speaks_json(filled: Lake) -> None:
    mine = load(filled.file, schemas=False).view("daily").definition
    fenced(filled)
    found = filled.json("adopt", "daily")
    assert (found["view"], found["definition"]) == ("daily", mine)


# project


def test_project_check_speaks_json(lake: Lake) -> None:
    lake.day(1)
    assert isinstance(lake.json("project", "check"), dict)


def test_project_check_counts_what_is_right(lake: Lake) -> None:
    lake.day(1)
    assert lake.said("project", "check") == f"{lake.file}: 1 table and 1 view, no mistakes\n"


def test_project_check_names_every_mistake_and_exits_with_2(lake: Lake) -> None:
    lake.view("other", bucket="7h")
    said = lake.refused("project", "check")
    assert said.startswith(f"{lake.file}: 2 mistakes\n")
    assert "tables.trips.path" in said
    assert "views.other.bucket" in said


def test_project_check_shows_a_path_in_brackets_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "[old]").mkdir()
    lake = Lake(tmp_path / "[old]")
    lake.day(1)
    assert str(lake.file) in lake.said("project", "check")


def test_project_schema_needs_no_project() -> None:
    result = CliRunner().invoke(main, ["project", "schema"], env={"MV_ASSETS_PROJECT": ""})
    assert result.exit_code == 0
    assert json.loads(result.stdout)["title"] == "Project"


# Errors


@pytest.mark.parametrize(
    "command",
    [
        ["status", "nope"],
        ["plan", "nope"],
        ["explain", "nope", "2024-01-01"],
        ["mark", "nope"],
        ["adopt", "nope"],
    ],
)
def test_a_view_that_is_not_declared_is_refused_with_those_that_are(filled: Lake, command: list[str]) -> None:
    assert filled.refused(*command) == "the project has no view 'nope'; it has daily\n"


@pytest.mark.parametrize("command", [["status"], ["plan"], ["mark", "daily"], ["project", "check"]])
def test_a_bad_project_file_is_a_message_and_exit_code_2(lake: Lake, command: list[str]) -> None:
    lake.day(1)
    lake.project["views"][0]["bucket"] = "7h"
    lake.save()
    assert "views.daily.bucket: '7h' does not divide time evenly" in lake.refused(*command)


def test_a_missing_project_file_is_a_message(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--project", str(tmp_path / "no.yaml"), "status"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "can't be read: No such file" in result.stderr


def test_a_folder_as_the_project_file_is_a_message(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["--project", str(tmp_path), "status"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"it is a folder; name the file in it, such as {tmp_path / 'project.yaml'}" in result.stderr


@pytest.mark.parametrize("url", ["nonsense", "mysql://me:hunter2@host/db", "sqlite://"])
@pytest.mark.parametrize("command", [["status"], ["project", "check"]])
def test_a_state_url_that_is_none_is_a_mistake_of_the_project(
    lake: Lake, command: list[str], url: str
) -> None:
    lake.day(1)
    lake.project["state"] = url
    lake.save()
    said = lake.refused(*command)
    assert "hunter2" not in said
    assert f"{lake.file}: 1 mistake" in said


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
@pytest.mark.parametrize("command", [["status"], ["plan"], ["mark", "daily"]])
def test_a_state_that_no_file_can_be_is_a_message(lake: Lake, command: list[str], name: str) -> None:
    lake.day(1)
    lake.project["state"] = f"sqlite:///{name}"
    lake.save()
    result = lake.run(*command)
    assert isinstance(result.exception, SystemExit), result.exception


@pytest.mark.parametrize(
    "command",
    [["status"], ["plan"], ["mark", "daily"], ["explain", "daily", "2024-01-01"], ["adopt", "daily"]],
)
def test_a_state_that_is_no_database_is_a_message_and_stays_as_it_is(lake: Lake, command: list[str]) -> None:
    lake.day(1)
    lake.state.parent.mkdir()
    lake.state.write_bytes(b"hello" * 1_000)
    assert "file is not a database" in lake.refused(*command, code=1)
    assert lake.state.read_bytes() == b"hello" * 1_000


def test_an_empty_state_file_is_no_state_yet(lake: Lake) -> None:
    lake.day(1)
    lake.state.parent.mkdir()
    lake.state.touch()
    assert work(lake) == [("APPEND", ["2024-01-01"])]
    assert lake.json("status")["views"][0]["version"] == 0
    assert lake.state.read_bytes() == b""


def test_a_state_that_is_read_only_can_be_shown(filled: Lake) -> None:
    filled.project["state"] = f"sqlite:///file:{filled.state}?mode=ro&uri=true"
    filled.save()
    assert set(states(filled).values()) == {"VALID"}
    assert work(filled) == []


def test_commands_that_write_nothing_do_not_wait_for_a_writer(filled: Lake) -> None:
    with closing(sqlite3.connect(filled.state, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        filled.said("status")
        filled.said("plan")


def test_a_state_of_a_newer_version_is_a_message(filled: Lake) -> None:
    with closing(sqlite3.connect(filled.state, isolation_level=None)) as connection:
        connection.execute("UPDATE mv_schema SET version = 999")
    for command in ("status", "plan"):
        assert "upgrade mv_assets" in filled.refused(command, code=1)


def test_a_database_that_nobody_answers_for_is_a_message_without_its_password(lake: Lake) -> None:
    lake.day(1)
    lake.project["state"] = "postgresql+psycopg://me:hunter2@127.0.0.1:1/db"
    lake.save()
    for command in ("status", "plan"):
        said = lake.refused(command, code=1)
        assert "127.0.0.1" in said
        assert "hunter2" not in said


def test_plan_and_status_make_no_tables_in_an_empty_postgresql(lake: Lake, postgres: str) -> None:
    lake.day(1)
    lake.project["state"] = postgres
    lake.save()
    assert work(lake) == [("APPEND", ["2024-01-01"])]
    assert lake.json("status")["views"][0]["version"] == 0
    engine = create_engine(postgres)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_an_unwritable_state_is_a_message(lake: Lake) -> None:
    (lake.root / "state").write_text("not a folder")
    assert "can't be written" in lake.refused("mark", "daily", code=1)


@pytest.mark.parametrize("path", ["trips", "trips/day=1"])
def test_a_table_that_is_gone_is_a_mistake_for_project_check_and_its_views_error_for_plan(
    filled: Lake, path: str
) -> None:
    filled.project["tables"][0]["path"] = f"{path}/nowhere"
    filled.save()
    assert "tables.trips.path" in filled.refused("project", "check")
    assert "table 'trips' at" in filled.said("plan", code=1)
    assert "3 VALID" in filled.said("status")


def test_what_a_view_makes_of_a_misspelt_time_column_is_not_a_mistake_of_its_own(lake: Lake) -> None:
    lake.day(1)
    lake.project["tables"][0]["time_column"] = "picked_up"
    lake.save()
    said = lake.refused("project", "check")
    assert "the table has no column picked_up" in said
    assert "date_trunc" not in said


def test_a_project_without_views_and_a_table_without_files_say_so(lake: Lake) -> None:
    (lake.root / "trips").mkdir()
    assert "nothing to do: trips is empty" in lake.said("plan")
    lake.project["views"] = []
    lake.save()
    assert "declares no view yet" in lake.run("plan").stderr


# The real command


def command(lake: Lake, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [str(Path(sys.executable).with_name("mv-assets")), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=lake.root,
        env={**os.environ, "MV_ASSETS_PROJECT": str(lake.file), **environment},
    )


@pytest.mark.processes
def test_the_command_finds_its_project_in_the_environment_and_prints_json_alone(filled: Lake) -> None:
    late(filled)
    done = command(filled, "plan", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["views"][0]["work"][0]["buckets"] == ["2024-01-02"]


@pytest.mark.processes
def test_the_command_reports_a_broken_file_with_1_and_json_alone(filled: Lake) -> None:
    (filled.root / "trips/02.parquet").write_bytes(b"no parquet")
    done = command(filled, "plan", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["views"][0]["errors"][0]["file"] == "02.parquet"
    assert "Traceback" not in done.stderr


@pytest.mark.processes
def test_the_command_reports_a_bad_project_with_2_and_a_message(lake: Lake) -> None:
    done = command(lake, "project", "check", "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "tables.trips.path: table 'trips'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.processes
def test_the_command_prints_its_strip_to_a_pipe_that_knows_no_unicode(filled: Lake) -> None:
    done = command(filled, "status", PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_status_says_what_keeps_a_view_from_being_looked_at_and_exits_with_1(filled: Lake) -> None:
    error = TableUnreadable("trips", "/lake", "permission denied")
    with filled.driver() as driver:
        Troubles(driver.store, clock).note(Doing.LOOK, {"daily": error})
        assert f"{error} (since " in filled.said("status", code=1)
        (said,) = filled.json("status", code=1)["views"][0]["troubles"]
        assert said.startswith(str(error))
        driver.observed("daily")
    assert "permission denied" not in filled.said("status")
