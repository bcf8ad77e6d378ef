from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets_tests.unit.cli.commands import Commands

DAYS = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2)]
SQL = """
    SELECT date_trunc('hour', at) AS hour, count(*) AS n, approx_percentile(x, 0.5) AS middle
    FROM events GROUP BY ALL
"""


@pytest.fixture
def project(tmp_path: Path, connect_server: str) -> Path:
    """A view of two days, declared but not refreshed."""
    (tmp_path / "events").mkdir()
    for at in DAYS:
        times = [at, at + timedelta(days=1) - timedelta(milliseconds=1)]
        rows = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "x": [1, 2]})
        pq.write_table(rows, tmp_path / "events" / f"{at:%d}.parquet")
    view = {"name": "hourly", "base": "events", "sql": SQL, "time_column": "hour", "bucket": "1d"}
    declared = {
        "state": "sqlite:///state.db",
        "warehouse": "warehouse",
        "spark": {"remote": connect_server},
        "tables": [{"name": "events", "path": "events", "time_column": "at", "settle": "0s"}],
        "views": [{**view, "start": "2024-01-01"}],
    }
    file = tmp_path / "project.yaml"
    file.write_text(yaml.safe_dump(declared))
    return file


def test_an_audit_says_what_is_wrong_marks_it_and_ends_with_1(project: Path, commands: Commands) -> None:
    commands.run(project, "refresh")
    out, _ = commands.run(project, "audit", "hourly", "--all")
    assert "equal  2024-01-01 to 2024-01-02  2 buckets, 4 rows" in out
    assert "differ from run to run: middle" in out
    assert "2 equal; 2 read by Arrow too" in out
    (path,) = (project.parent / "warehouse").rglob("*.parquet")
    path.unlink()
    found = json.loads(commands.run(project, "audit", "hourly", "--sample", "1", "--json", code=1)[0])
    name = path.relative_to(project.parent / "warehouse")
    reason = f"generation file {name} is missing"
    wrong = {"verdict": "missing", "rows": 2, "reason": reason}
    wrong |= {"read_by_arrow": False, "not_read_by_arrow": None}
    assert found == {
        "view": "hourly",
        "not_compared": ["middle"],
        "read_by_arrow": 0,
        "buckets": [{"bucket": "2024-01-01", **wrong}, {"bucket": "2024-01-02", **wrong}],
        "fenced": None,
        "failed": [],
        "broken_files": [],
        "troubles": [],
        "stalled": None,
        "published": [],
    }
    (view,) = json.loads(commands.run(project, "status", "--json")[0])["views"]
    stale = {(bucket["state"], bucket["stale_reason"]) for bucket in view["buckets"]}
    assert stale == {("STALE", f"audit: {reason}")}


def test_an_audit_names_a_file_that_can_t_be_used_and_ends_with_1(project: Path, commands: Commands) -> None:
    commands.run(project, "refresh")
    (project.parent / "events" / "noise.parquet").write_bytes(b"not Parquet")
    out, _ = commands.run(project, "audit", "hourly", "--all", code=1)
    assert "2 equal" in out
    assert "events: file noise.parquet: it can't be read as Parquet" in out


def test_an_audit_without_a_refresh_or_with_wrong_words_starts_no_spark(
    project: Path, commands: Commands
) -> None:
    assert "refresh the view first" in commands.run(project, "audit", "hourly")[0]
    assert (
        "either --sample or --all"
        in commands.run(project, "audit", "hourly", "--all", "--sample", "3", code=2)[1]
    )
    assert "has no view 'daily'" in commands.run(project, "audit", "daily", code=2)[1]
    assert "--sample" in commands.run(project, "audit", "hourly", "--sample", "0", code=2)[1]
