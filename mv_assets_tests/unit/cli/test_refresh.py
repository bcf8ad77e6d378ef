"""`mv-assets refresh` as a person runs it, on a Spark Connect server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets.state.store import Store
from mv_assets_tests.unit.cli.commands import Commands
from mv_assets_tests.unit.tables.lake import spoiled

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SQL = "SELECT date_trunc('hour', at) AS hour, count(*) AS trips, sum(fare) AS fare FROM trips GROUP BY ALL"


class Person:
    """Somebody with a project, files in a folder, and a shell."""

    def __init__(self, root: Path, server: str, commands: Commands) -> None:
        self.root = root
        self._commands = commands
        self.project: dict[str, Any] = {
            "state": f"sqlite:///{root}/state.db",
            "warehouse": str(root / "warehouse"),
            "spark": {"remote": server},
            "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
            "views": [
                {
                    "name": "hourly",
                    "base": "trips",
                    "sql": SQL,
                    "time_column": "hour",
                    "bucket": "1d",
                    "start": "2024-01-02",
                }
            ],
        }
        (root / "trips").mkdir()
        for number in range(1, 5):
            self.put(number)

    def put(self, number: int, name: str | None = None, fare: int = 1) -> Path:
        """Trips through a whole day of January."""
        start = FIRST + timedelta(days=number - 1)
        times = [
            *(start + timedelta(hours=hour) for hour in range(24)),
            start + timedelta(hours=24, milliseconds=-1),
        ]
        path = self.root / "trips" / (name or f"{number:02}.parquet")
        pq.write_table(pa.table({"at": times, "fare": [fare] * 25}), path)
        return path

    @property
    def file(self) -> Path:
        """The project as it is meant to be now."""
        (self.root / "project.yaml").write_text(yaml.safe_dump(self.project))
        return self.root / "project.yaml"

    def command(self, *arguments: str) -> list[str]:
        """For a process of its own."""
        self.file.touch()
        return [str(Path(sys.executable).parent / "mv-assets"), *arguments]

    def run(self, *arguments: str, code: int = 0) -> str:
        """What a command prints."""
        out, err = self._commands.run(self.file, *arguments, code=code)
        return out if code != 2 else err

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "MV_ASSETS_PROJECT": str(self.root / "project.yaml")}

    def outcomes(self, *arguments: str, code: int = 0) -> dict[str, str]:
        found = json.loads(self.run("refresh", *arguments, "--json", code=code))
        return {each["bucket"]: each["outcome"] for each in found["views"][0]["outcomes"]}

    def generations(self) -> dict[str, str | None]:
        found = json.loads(self.run("status", "--json"))
        return {each["bucket"]: each["generation"] for each in found["views"][0]["buckets"]}


@pytest.fixture
def person(tmp_path: Path, connect_server: str, commands: Commands) -> Person:
    return Person(tmp_path, connect_server, commands)


def test_a_refresh_fills_a_view_says_what_it_did_and_then_that_it_is_up_to_date(person: Person) -> None:
    assert person.run("refresh").splitlines() == [
        "hourly  complete through 2024-01-05T00:00:00Z",
        "  APPEND    2024-01-02 to 2024-01-04  3 buckets, 72 rows  committed",
        "",
    ]
    assert "up to date" in person.run("refresh", "hourly")


def test_json_has_every_bucket_with_its_outcome(person: Person) -> None:
    [view] = json.loads(person.run("refresh", "--json"))["views"]
    assert view == {
        "name": "hourly",
        "outcomes": [
            {
                "bucket": f"2024-01-0{n}",
                "operation": "APPEND",
                "outcome": "committed",
                "rows": 24,
                "reason": None,
            }
            for n in (2, 3, 4)
        ],
        "waiting": [],
        "error": None,
        "fenced": None,
        "failed": [],
        "broken_files": [],
        "troubles": [],
        "stalled": None,
    }


def test_a_table_that_can_not_be_listed_is_said_of_its_own_view_and_stops_no_other(person: Person) -> None:
    clicks = {**person.project["tables"][0], "name": "clicks", "path": "clicks"}
    person.project["tables"].append(clicks)
    sql = SQL.replace("FROM trips", "FROM clicks")
    person.project["views"].append({**person.project["views"][0], "name": "v", "base": "clicks", "sql": sql})
    said = person.run("refresh", code=1)
    assert "3 buckets, 72 rows  committed" in said
    assert "table 'clicks' at" in person.run("status", "v", code=1)


def test_a_forced_refresh_of_a_bucket_or_a_range_computes_what_is_valid_again(person: Person) -> None:
    person.run("refresh")
    before = person.generations()
    assert person.outcomes("hourly", "--bucket", "2024-01-03") == {}
    assert person.outcomes("hourly", "--bucket", "2024-01-03", "--force") == {"2024-01-03": "committed"}
    after = person.generations()
    assert {bucket for bucket in after if after[bucket] != before[bucket]} == {"2024-01-03"}
    forced = person.outcomes("hourly", "--from", "2024-01-02", "--to", "2024-01-03", "--force")
    assert forced == {"2024-01-02": "committed", "2024-01-03": "committed"}


def test_a_bucket_that_is_named_is_computed_though_it_is_not_due_or_says_why_not(person: Person) -> None:
    person.run("refresh")
    pq.write_table(
        pa.table({"at": [FIRST + timedelta(days=4, hours=7)], "fare": [1]}),
        person.root / "trips" / "05.parquet",
    )
    assert "up to date" in person.run("refresh")
    said = person.run("refresh", "hourly", "--from", "2024-01-04", "--to", "2024-01-06", code=1)
    not_due = "it ends at 2024-01-07T00:00:00Z, and trips is known to have data up to 2024-01-05T07:00:00Z"
    assert said.splitlines() == [
        "hourly  complete through 2024-01-05T00:00:00Z",
        "  APPEND    2024-01-05  1 bucket, 1 row  committed",
        f"  wait      2024-01-06  1 bucket  trips has no rows of it yet: {not_due}",
        "",
    ]
    assert "up to date" in person.run("refresh", "hourly", "--bucket", "2024-01-05")
    [view] = json.loads(person.run("refresh", "hourly", "--bucket", "2024-01-06", "--json", code=1))["views"]
    assert [each["bucket"] for each in view["waiting"]] == ["2024-01-06"]
    # What comes later is a change like any other.
    person.put(5)
    assert person.outcomes() == {"2024-01-05": "committed"}
    assert "complete through 2024-01-06" in person.run("refresh")


def test_buckets_before_the_coverage_need_extend(person: Person) -> None:
    person.run("refresh")
    refused = person.run("refresh", "hourly", "--bucket", "2024-01-01", code=2)
    assert "extend the coverage" in refused
    assert person.outcomes("hourly", "--bucket", "2024-01-01", "--extend") == {"2024-01-01": "committed"}


def test_a_budget_in_bytes_leaves_the_rest_for_later_and_says_so(person: Person) -> None:
    size = (person.root / "trips" / "02.parquet").stat().st_size
    said = person.run("refresh", "--max-bytes", str(size + 10))
    assert "APPEND    2024-01-02  1 bucket, 24 rows  committed" in said
    assert "wait      2024-01-03 to 2024-01-04  2 buckets  left for later" in said


def test_a_file_that_can_t_be_read_is_named_and_the_others_are_done(person: Person) -> None:
    path = person.put(3)
    group = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    start = group.dictionary_page_offset
    content[start : start + group.total_compressed_size] = b"\xff" * group.total_compressed_size
    path.write_bytes(content)
    said = person.run("refresh", code=1)
    assert "complete through 2024-01-03" in said
    [failed] = [line for line in said.splitlines() if "failed" in line]
    assert "2024-01-03" in failed
    assert "03.parquet" in failed
    assert "03.parquet" in person.run("status", code=1)
    assert "backing off" in person.run("refresh", code=1)


def test_130_a_new_file_with_damaged_pages_fails_its_bucket_and_the_others_are_done(person: Person) -> None:
    person.run("refresh")
    person.put(5)
    late = person.put(3, "late.parquet")
    late.write_bytes(spoiled(late.read_bytes(), "at"))
    said = person.run("refresh", code=1)
    assert "complete through 2024-01-06" in said
    assert "APPEND    2024-01-05  1 bucket, 24 rows  committed" in said
    [failed] = [line for line in said.splitlines() if "failed" in line]
    assert "OVERWRITE 2024-01-03  1 bucket  failed  file late.parquet" in failed
    [view] = json.loads(person.run("refresh", "--json", code=1))["views"]
    assert ["late.parquet" in each["error"] for each in view["failed"]] == [True]
    assert ["late.parquet" in each for each in view["broken_files"]] == [True]
    person.put(3, "late.parquet")
    assert person.outcomes() == {"2024-01-03": "committed"}


def test_130_a_new_file_without_a_footer_holds_the_watermark_and_is_named(person: Person) -> None:
    person.run("refresh")
    person.put(5)
    late = person.put(3, "late.parquet")
    late.write_bytes(late.read_bytes()[:-20])
    for _ in range(2):
        said = person.run("refresh", code=1)
        assert "complete through 2024-01-05" in said
        assert "trips: file late.parquet: it can't be read as Parquet" in said
        assert "up to date" not in said
    late.unlink()
    assert "complete through 2024-01-06" in person.run("refresh")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bucket", "2024-01-02"], "are for one view"),
        (["hourly", "--from", "2024-01-02"], "both --from and --to"),
        (["hourly", "--bucket", "2024-01-02T03:00"], "not the start of a 1d bucket"),
        (["nobody"], "has no view 'nobody'"),
        (["hourly", "--extend"], "--extend goes with"),
    ],
)
def test_what_can_t_be_meant_is_a_usage_error(person: Person, arguments: list[str], said: str) -> None:
    assert said in person.run("refresh", *arguments, code=2)


@pytest.mark.slow
def test_an_interrupted_refresh_leaves_nothing_behind_that_another_would_wait_for(person: Person) -> None:
    person.project["views"][0]["sql"] = SQL.replace(
        "sum(fare)", "sum(aes_decrypt(aes_encrypt(fare, 'x'), 'x'))"
    )
    person.project["views"][0]["sql"] = SQL.replace(
        "count(*)", "count(sha2(repeat(string(fare), 20000000), 512))"
    )
    command = person.command("refresh")
    running = subprocess.Popen(  # noqa: S603 - our own command
        command, env=person.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not list((person.root / "warehouse").glob("hourly/*/_temporary")):
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert (running.returncode, "interrupted" in said) == (1, True)
    store = Store(str(person.project["state"]))
    assert (store.snapshot("hourly").rows, store.snapshot("hourly").attempts) == ({}, {})
    store.close()
    person.project["views"][0]["sql"] = SQL
    assert set(person.outcomes().values()) == {"committed"}


def test_a_server_that_is_not_there_is_one_sentence(person: Person) -> None:
    person.project["spark"] = {"remote": "sc://127.0.0.1:1"}
    done = subprocess.run(  # noqa: S603 - our own command
        person.command("refresh"), env=person.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Spark is not available" in done.stdout
    assert "Traceback" not in done.stderr


def test_two_refreshes_at_once_share_the_work_and_both_succeed(person: Person) -> None:
    command = person.command("refresh", "--json")
    both = [
        subprocess.Popen(command, env=person.environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    printed = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    views = [json.loads(text)["views"][0] for text in printed]
    outcomes = [(each["bucket"], each["outcome"]) for view in views for each in view["outcomes"]]
    committed = [bucket for bucket, outcome in outcomes if outcome == "committed"]
    assert sorted(committed) == ["2024-01-02", "2024-01-03", "2024-01-04"]
    assert {outcome for _, outcome in outcomes} <= {"committed", "replay", "superseded"}
    assert "complete through 2024-01-05" in person.run("refresh")
