"""A project whose views are published, by the facade and real Spark, read by strangers after every step."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets import Project
from mv_assets.spark.session import Engine
from mv_assets_tests.support.published_lake import DeltaReader, IcebergReader, Reader, rows_of

SQL = """
    SELECT date_trunc('hour', at) AS hour, kind, count(*) AS n, CAST(sum(amount) AS DECIMAL(18, 2)) AS amount,
           max(at) AS last_at, sort_array(collect_set(kind)) AS kinds,
           struct(kind AS name, count(*) AS n) AS nested
    FROM trips GROUP BY ALL
"""
START = datetime(2024, 1, 1, tzinfo=UTC)


def write(folder: Path, name: str, day: int, rows: int = 48) -> None:
    times = [START + timedelta(days=day, minutes=30 * number) for number in range(rows)]
    times[-1] = START + timedelta(days=day + 1) - timedelta(milliseconds=1)
    kinds, amounts = ["taxi", "bus"] * (rows // 2), [1.25] * rows
    pq.write_table(pa.table({"at": times, "kind": kinds, "amount": amounts}), folder / "trips" / name)


def declared(publish: object, sql: str = SQL) -> dict[str, object]:
    return {
        "state": "sqlite:///state.db",
        "warehouse": "warehouse",
        "publish": publish,
        "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
        "views": [
            {
                "name": "hourly",
                "base": "trips",
                "sql": sql,
                "time_column": "hour",
                "bucket": "1h",
                "start": "2024-01-01",
            }
        ],
    }


@pytest.fixture(params=["iceberg", "delta"])
def published(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Reader]:
    (tmp_path / "trips").mkdir()
    for day in range(3):
        write(tmp_path, f"{day}.parquet", day)
    reader: Reader
    if request.param == "iceberg":
        given: object = {"catalog": {"type": "sql", "uri": "sqlite:///catalog.db"}, "namespace": "marts"}
        reader = IcebergReader({"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db"})
    else:
        given, reader = {"format": "delta"}, DeltaReader(tmp_path / "warehouse")
    (tmp_path / "project.yaml").write_text(yaml.safe_dump(declared(given)))
    return tmp_path / "project.yaml", reader


@pytest.fixture
def opened(published: tuple[Path, Reader], engine: Engine) -> Iterator[Project]:
    with engine.session() as spark, Project.open(published[0], spark=spark) as project:
        yield project


def check(project: Project, reader: Reader) -> None:
    """Strangers read what a query on what is stored gives, at the version that the table says."""
    answer = project.query("SELECT * FROM hourly", freshness="stored").frame.toArrow()
    columns = ["hour", "kind", "n", "amount", "last_at", "kinds", "nested"]
    assert set(reader.rows("hourly").column_names) == set(columns)
    assert rows_of(reader.rows("hourly").select(columns)) == rows_of(answer.select(columns))
    [found] = project.status("hourly").as_json()["views"]
    assert int(reader.summary("hourly")["mv-assets.version"]) == found["published"][0]["version"]
    assert found["published"][0]["behind"] == 0
    assert not project.status().is_wrong


def test_every_step_of_a_view_is_what_strangers_read(published: tuple[Path, Reader], opened: Project) -> None:
    folder, reader = published[0].parent, published[1]
    assert not opened.refresh().is_wrong
    check(opened, reader)
    write(folder, "late.parquet", 1, rows=2)
    assert [each.is_new for each in opened.refresh().published] == [True]
    check(opened, reader)
    (folder / "trips" / "0.parquet").unlink()
    opened.refresh()
    check(opened, reader)
    write(folder, "0.parquet", 0)
    opened.refresh()
    check(opened, reader)
    opened.mark("hourly", buckets="2024-01-02T03:00")
    stale = [each for each in reader.rows("hourly__buckets").to_pylist() if each["state"] == "STALE"]
    assert [each["start"] for each in stale] == [START + timedelta(days=1, hours=3)]
    opened.refresh()
    check(opened, reader)
    assert not opened.gc().is_wrong
    check(opened, reader)
    assert not opened.publish().is_wrong
    assert "published as" in str(opened.status())
    assert not opened.drop("hourly").is_wrong
    assert not reader.exists("hourly")
    assert not reader.exists("hourly__buckets")
    opened.refresh()
    check(opened, reader)
