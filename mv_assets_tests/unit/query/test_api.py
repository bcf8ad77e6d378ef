"""`mv_assets.sql` in a session of the caller's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

import mv_assets
from mv_assets.clock import clock
from mv_assets.errors import Refused
from mv_assets.query.errors import QueryRefused
from mv_assets.run.opened import open_project
from mv_assets.run.refresher import Refresher
from mv_assets.spark.session import Engine
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import load
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.spark.read import nested

SQL = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, sum(fare) AS fare FROM trips GROUP BY ALL"
DAYS = """
    SELECT date_trunc('day', at) AS day, count(*) AS n, sum(fare) AS fare, min(local) AS first FROM trips
    WHERE at >= '2024-01-02' AND at < '2024-01-03 12:00:00' GROUP BY ALL ORDER BY day; -- in its zone
"""


@pytest.fixture
def project(tmp_path: Path, engine: Engine) -> Path:
    """Three days of trips, all of them in a view."""
    (tmp_path / "trips").mkdir()
    for day in range(3):
        start = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=day)
        times = [*(start + timedelta(hours=hour) for hour in range(24)), start + timedelta(days=1) - _MS]
        local = pa.array([time.replace(tzinfo=None) for time in times], pa.timestamp("us"))
        rows = pa.table({"at": times, "fare": list(range(25)), "local": local})
        pq.write_table(rows, tmp_path / "trips" / f"{day}.parquet")
    view = {"name": "hourly", "base": "trips", "sql": SQL, "time_column": "hour", "bucket": "1d"}
    declared = {
        "state": "sqlite:///state.db",
        "warehouse": "warehouse",
        "tables": [{"name": "trips", "path": "trips", "time_column": "at", "settle": "0s"}],
        "views": [{**view, "start": "2024-01-01"}],
    }
    file = tmp_path / "project.yaml"
    file.write_text(yaml.safe_dump(declared))
    catalog, store = load(file, schemas=True), Store(f"sqlite:///{tmp_path}/state.db")
    manager = PartitionManager(store, clock=clock, who="test")
    [report] = Refresher(open_project(catalog, store, manager, engine, clock)).run(None)
    assert report.error is None
    store.close()
    return file


_MS = timedelta(milliseconds=1)


@pytest.fixture
def spark(engine: Engine) -> SparkSession:
    """The caller's session."""
    own = engine.shared().newSession()
    own.conf.set("spark.sql.session.timeZone", "Etc/UTC")
    own.conf.set("spark.sql.ansi.enabled", "true")
    return own


def plain(spark: SparkSession, folder: Path, text: str) -> list[object]:
    """What Spark says of the files by itself."""
    spark.read.parquet(str(folder / "trips")).createOrReplaceTempView("trips")
    return list(spark.sql(text.strip().split(";")[0]).collect())


def test_a_session_in_utc_is_answered_by_views(project: Path, spark: SparkSession) -> None:
    text = "SELECT date_trunc('day', at) AS day, sum(fare) AS fare, count(*) AS n FROM trips GROUP BY ALL"
    ordered = f"{text} ORDER BY day"
    expected = plain(spark, project.parent, ordered)
    assert len(expected) == 3
    assert mv_assets.sql(spark, ordered, project).collect() == expected
    # Of one day the files are gone, and nobody has looked since.
    (project.parent / "trips" / "1.parquet").unlink()
    bounded = mv_assets.sql(spark, ordered, project, freshness="bounded", max_staleness="3660d")
    assert bounded.collect() == expected
    assert mv_assets.sql(spark, ordered, str(project)).collect() == plain(spark, project.parent, ordered)
    stored = mv_assets.sql(spark, "SELECT sum(n) AS n FROM hourly", project, freshness="stored")
    assert [row.n for row in stored.collect()] == [75]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_a_session_in_another_zone_is_answered_as_it_means_it(
    project: Path, spark: SparkSession, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    expected = plain(spark, project.parent, DAYS)
    found = mv_assets.sql(spark, DAYS, project)
    assert found.collect() == expected
    # It keeps its zone, whatever is asked next.
    mv_assets.sql(spark, "SELECT count(*) FROM trips", project)
    assert found.selectExpr("current_timezone()").distinct().collect()[0][0] == zone
    with pytest.raises(QueryRefused, match=r"view hourly is not computed with spark.sql.session.timeZone"):
        mv_assets.sql(spark, "SELECT * FROM hourly", project)
    stored = mv_assets.sql(spark, "SELECT sum(n) AS n FROM hourly", project, freshness="stored")
    assert [row.n for row in stored.collect()] == [75]


def test_a_session_without_ansi_divides_as_it_does(project: Path, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    text = "SELECT sum(fare) / 0 AS x FROM trips"
    assert [row.x for row in mv_assets.sql(spark, text, project).collect()] == [None]


def test_a_session_that_reads_sql_otherwise_is_refused(project: Path, spark: SparkSession) -> None:
    key = "spark.sql.ansi.doubleQuotedIdentifiers"
    spark.conf.set(key, "true")
    with pytest.raises(QueryRefused, match=f"the session has {key} = true, .* set it to false"):
        mv_assets.sql(spark, 'SELECT count(*) FROM trips WHERE "fare" > 1', project)


def test_a_session_that_takes_texts_as_they_are_written_is_refused(
    project: Path, spark: SparkSession
) -> None:
    """With it Spark reads a backslash and a t, and not a tab: a view's filter by a tab would seem to hold."""
    spark.conf.set("spark.sql.parser.escapedStringLiterals", "true")
    with pytest.raises(QueryRefused, match=r"escapedStringLiterals = true"):
        mv_assets.sql(spark, "SELECT count(*) FROM trips WHERE zone = 'a\\tb'", project)


def test_arguments_that_mean_nothing_are_refused(
    project: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MV_ASSETS_PROJECT", raising=False)
    text = "SELECT count(*) AS n FROM trips"
    with pytest.raises(Refused, match="no project was named; give its file"):
        mv_assets.sql(spark, text)
    with pytest.raises(Refused, match="one of strict, bounded, off, stored"):
        mv_assets.sql(spark, text, project, freshness="fresh")
    with pytest.raises(Refused, match="is for freshness='bounded'"):
        mv_assets.sql(spark, text, project, max_staleness="2h")
    with pytest.raises(Refused, match="'soon' is not a duration"):
        mv_assets.sql(spark, text, project, freshness="bounded", max_staleness="soon")
    with pytest.raises(QueryRefused, match="not a SELECT"):
        mv_assets.sql(spark, "DELETE FROM trips", project)
    monkeypatch.setenv("MV_ASSETS_PROJECT", str(project))
    assert mv_assets.sql(spark, text).collect()[0].n == 75


@pytest.fixture
def by_id(tmp_path: Path) -> Iterator[Path]:
    """Two days in an Iceberg table, and a dimension in a Delta table whose columns are found by id too."""
    with nested.catalog(tmp_path) as catalog:
        events = nested.iceberg(catalog, tmp_path / "events", 2)
        put = nested.delta(tmp_path / "d", "id")
        for number in range(2):
            events.append(nested.rows(number))
            put(nested.rows(number))
        tables: list[dict[str, Any]] = [
            {"name": "events", "path": "events", "format": "iceberg", "unsafe": True, "time_column": "at"},
            {"name": "d", "path": "d", "format": "delta"},
        ]
        view = {"name": "v", "base": "events", "dimensions": ["d"], "sql": JOINED, "time_column": "at"}
        declared = {
            "state": "sqlite:///state.db",
            "warehouse": "warehouse",
            "tables": [{**table, "settle": "0s"} for table in tables],
            "views": [{**view, "bucket": "1d", "start": "1970-01-01"}],
        }
        file = tmp_path / "project.yaml"
        file.write_text(yaml.safe_dump(declared))
        yield file


JOINED = "SELECT e.at, e.s.x, get(d.l, 1).x AS y FROM events e JOIN d ON e.s.x = d.s.x AND d.k IS NOT NULL"


@pytest.mark.parametrize("zone", ["Etc/UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("freshness", ["strict", "off"])
def test_fields_of_columns_that_are_found_by_id(
    by_id: Path, engine: Engine, spark: SparkSession, freshness: str, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)

    def asked(text: str) -> list[tuple[object, ...]]:
        return sorted(map(tuple, mv_assets.sql(spark, text, by_id, freshness).collect()))

    assert asked("SELECT sum(s.x) AS n FROM events") == [(8 + 28,)]
    assert asked("SELECT count(*) AS n FROM events WHERE s.x >= 10") == [(2,)]
    assert asked("SELECT s.x, count(*) AS n FROM events WHERE s.x < 10 GROUP BY 1") == [
        (0, 1),
        (1, 1),
        (7, 2),
    ]
    assert asked(f"SELECT x, y FROM ({JOINED}) WHERE x <> 7") == [(0, 100), (1, 101), (10, 110), (11, 111)]
    if zone == "Etc/UTC":
        assert refreshed(by_id, engine) == {0, 1}
        assert asked("SELECT x, y FROM v WHERE x <> 7") == [(0, 100), (1, 101), (10, 110), (11, 111)]


def refreshed(file: Path, engine: Engine) -> set[int]:
    """The days of a project's view that a refresh made VALID."""
    catalog, store = load(file, schemas=True), Store(f"sqlite:///{file.parent}/state.db")
    manager = PartitionManager(store, clock=clock, who="test")
    [report] = Refresher(open_project(catalog, store, manager, engine, clock)).run(None)
    assert report.error is None
    store.close()
    return {bucket // DAY for bucket, result in report.results.items() if result.outcome == "committed"}


def test_118_a_view_that_is_meant_by_bucket_is_computed_in_the_callers_spark(
    project: Path, spark: SparkSession
) -> None:
    declared = yaml.safe_load(project.read_text())
    rolling = {"name": "rolling", "base": {"table": "trips", "from": "1d"}, "scope": "bucket"}
    sql = {"sql": "SELECT :bucket_start AS day, count(*) AS n FROM trips", "time_column": "day"}
    declared["views"].append({**rolling, **sql, "bucket": "1d", "start": "2024-01-01"})
    project.write_text(yaml.safe_dump(declared))
    found = mv_assets.sql(spark, "SELECT day, n FROM rolling ORDER BY day", project=project).collect()
    # The fourth day has nothing of its own yet.
    assert [(row.day.day, row.n) for row in found] == [(1, 25), (2, 50), (3, 50)]
    assert not [table.name for table in spark.catalog.listTables() if table.isTemporary]
