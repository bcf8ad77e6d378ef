"""Views whose tables and data are on a real S3 server: Spark computes them, and DuckDB says what is right."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from mv_assets.config.storage import Storage
from mv_assets.maintain.garbage import Garbage
from mv_assets.project import Project
from mv_assets.reports.refresh import Refreshed
from mv_assets.spark.session import Engine
from mv_assets.state.model import State
from mv_assets.state.registry import Registry
from mv_assets.tables.files.stores import for_deltalake, for_pyiceberg
from mv_assets_tests.support import engines
from mv_assets_tests.support.object_store import LISTING, ObjectStore, object_store

_numbers = itertools.count()
OF_SPARK = "Hadoop"
SQL = "SELECT date_trunc('hour', ts) AS hour, count(*) AS n, sum(x) AS x FROM {table} GROUP BY ALL"


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def spark(engine: Engine) -> Iterator[Any]:
    if not engines.with_s3():
        pytest.fail(f"Spark has no jars for S3 in {engines.JARS}; fetch them: make .jars/.ready")
    with engine.session() as session:
        yield session


class Lake:
    """A project with a base table in one bucket and its warehouse in another, each with a key of its own."""

    def __init__(self, server: ObjectStore, folder: Path, spark: Any, **table: Any) -> None:
        number = next(_numbers)
        self.server, self.spark, self.folder = server, spark, folder
        self.bucket, self.house = f"base-{number}", f"house-{number}"
        for bucket in (self.bucket, self.house):
            server.create(bucket, key=f"key-of-{bucket}")
        self.storage = Storage.model_validate(server.storage(f"key-of-{self.bucket}", "s3cr3t-of-base"))
        path = {} if "identifier" in table else {"path": f"s3a://{self.bucket}/t"}
        self.file = folder / "project.yaml"
        self.declared: dict[str, Any] = {
            "state": f"sqlite:///{folder}/state.db",
            "storage": server.storage(f"key-of-{self.bucket}", "s3cr3t-of-base"),
            "warehouse": {
                "path": f"s3://{self.house}/wh",
                "storage": server.storage(f"key-of-{self.house}", "s3cr3t-of-house"),
            },
            "tables": [{"name": "events", "time_column": "ts", "settle": "0s", **path, **table}],
            "views": [
                {
                    "name": "v",
                    "base": "events",
                    "sql": SQL.format(table="events"),
                    "time_column": "hour",
                    "bucket": "1d",
                    "start": "2024-01-01",
                }
            ],
        }
        self.open()

    def open(self) -> Project:
        self.file.write_text(yaml.safe_dump(self.declared))
        self.project = Project.open(self.file, spark=self.spark)
        return self.project

    def put(self, name: str, *days: int, x: int = 1) -> None:
        out = BytesIO()
        pq.write_table(rows(*days, x=x), out)
        self.server.put(f"{self.bucket}/t/{name}", out.getvalue())

    def objects(self) -> pa.Table:
        """What the objects hold, by their bytes alone."""
        names = self.server.names(self.bucket, "t/")
        parts = [pq.read_table(BytesIO(self.server.get(f"{self.bucket}/{name}"))) for name in names]
        return pa.concat_tables(parts) if parts else rows()

    def refresh(self, base: Callable[[], pa.Table]) -> Refreshed:
        """A refresh after which every bucket is VALID, and DuckDB has the same rows."""
        refreshed = self.project.refresh()
        assert not refreshed.is_wrong, refreshed
        self.check(base())
        return refreshed

    def check(self, base: pa.Table) -> None:
        states = {row.state for row in self.project.store.snapshot("v").rows.values()}
        assert states == {State.VALID}
        stored = self.project.query("SELECT * FROM v", freshness="stored").frame.toArrow()
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("base", base)
            expected = connection.sql(SQL.format(table="base")).to_arrow_table()
        assert plain(stored) == plain(expected)

    def committed(self, refreshed: Refreshed) -> list[int]:
        """The days that were computed."""
        [report] = refreshed.reports
        return sorted(datetime.fromtimestamp(each / 1_000, UTC).day for each in report.results)


def rows(*days: int, x: int = 1) -> pa.Table:
    """Rows from the first to the last moment of some days of January."""
    firsts = [datetime(2024, 1, day, tzinfo=UTC) for day in days]
    after = (timedelta(), timedelta(hours=5), timedelta(days=1, microseconds=-1))
    times = [first + each for first in firsts for each in after]
    return pa.table(
        {"ts": pa.array(times, pa.timestamp("us", "UTC")), "x": pa.array([x] * len(times), pa.int64())}
    )


def plain(table: pa.Table) -> list[tuple[Any, ...]]:
    utc = table.set_column(0, "hour", table["hour"].cast(pa.timestamp("us", "UTC")))
    return sorted((row["hour"], row["n"], int(row["x"])) for row in utc.to_pylist())


def test_a_folder_on_s3_is_followed_and_its_view_is_kept_on_s3(
    server: ObjectStore, tmp_path: Path, spark: Any
) -> None:
    lake = Lake(server, tmp_path, spark)
    for day in (1, 2, 3):
        lake.put(f"day={day}/a b%20.parquet", day)
    assert lake.committed(lake.refresh(lake.objects)) == [1, 2, 3]
    lake.put("late.parquet", 2, x=7)
    assert lake.committed(lake.refresh(lake.objects)) == [2]
    lake.put("late.parquet", 2, x=8)
    assert lake.committed(lake.refresh(lake.objects)) == [2]
    server.delete(f"{lake.bucket}/t/day=1/a b%20.parquet")
    lake.refresh(lake.objects)
    strict = lake.project.query("SELECT count(*) AS n FROM events").frame.collect()
    assert strict[0].n == lake.objects().num_rows


def test_the_data_of_a_view_on_s3_is_audited_rewritten_and_collected(
    server: ObjectStore, tmp_path: Path, spark: Any
) -> None:
    lake = Lake(server, tmp_path, spark)
    for day in (1, 2, 3, 4):
        lake.put(f"{day}.parquet", day)
    # Who asks a query keeps its files for a while: nobody does yet.
    assert not lake.project.refresh().is_wrong
    before = server.names(lake.house, "wh/v/")
    for day in (1, 2, 3):
        lake.put(f"{day}.parquet", day, x=5)
    assert not lake.project.refresh().is_wrong
    # The first generation is dead by three quarters: it is copied, and then deleted.
    store = lake.project.store
    warehouse, registry = lake.project.opened.warehouse, Registry(store, lifetime_ms=0)
    assert Garbage(store, lake.project.opened.manager, warehouse, registry=registry).gc("v").errors == []
    generations = {row.generation for row in store.snapshot("v").rows.values() if row.generation}
    named = {f"wh/{file.path}" for files in store.files("v", generations).values() for file in files}
    there = {name for name in server.names(lake.house, "wh/v/") if name.endswith(".parquet")}
    assert there == named
    assert there.isdisjoint(before)
    lake.check(lake.objects())
    assert not lake.project.audit("v", sample=None).is_wrong
    lost = min(there)
    server.delete(f"{lake.house}/{lost}")
    assert lost.removeprefix("wh/") in str(lake.project.audit("v", sample=None))
    lake.refresh(lake.objects)


def test_a_delta_table_on_s3_is_followed(server: ObjectStore, tmp_path: Path, spark: Any) -> None:
    lake = Lake(server, tmp_path, spark, format="delta")
    place, options = f"s3://{lake.bucket}/t", for_deltalake(lake.storage)

    def base() -> pa.Table:
        return pa.table(DeltaTable(place, storage_options=options).to_pyarrow_table())

    write_deltalake(place, rows(1, 2, 3), storage_options=options)
    assert lake.committed(lake.refresh(base)) == [1, 2, 3]
    write_deltalake(place, rows(2, x=7), mode="append", storage_options=options)
    assert lake.committed(lake.refresh(base)) == [2]
    DeltaTable(place, storage_options=options).delete("x = 7")
    lake.refresh(base)


def test_an_iceberg_table_on_s3_is_followed_by_its_catalog(
    server: ObjectStore, tmp_path: Path, spark: Any
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = {"type": "sql", "name": "c", "uri": uri}
    lake = Lake(server, tmp_path, spark, format="iceberg", identifier="ns.t", catalog=catalog)
    opened = SqlCatalog("c", uri=uri, warehouse=f"s3://{lake.bucket}/wh", **for_pyiceberg(lake.storage))
    opened.create_namespace("ns")
    table = opened.create_table("ns.t", rows().schema)
    table.append(rows(1, 2, 3))

    def base() -> pa.Table:
        return opened.load_table("ns.t").scan().to_arrow()

    assert lake.committed(lake.refresh(base)) == [1, 2, 3]
    table.append(rows(2, x=7))
    assert lake.committed(lake.refresh(base)) == [2]
    table.overwrite(rows(3, x=9), overwrite_filter="ts >= '2024-01-03T00:00:00+00:00'")
    lake.refresh(base)
    # By its path, without a catalog: the newest metadata file is the current one here.
    lake.declared["tables"][0] |= {"path": f"s3a://{lake.bucket}/wh/ns/t", "unsafe": True}
    for key in ("catalog", "identifier"):
        del lake.declared["tables"][0][key]
    lake.open()
    table.append(rows(1, x=3))
    lake.refresh(base)


def test_a_store_that_fails_for_a_while_marks_nothing_and_loses_nothing(
    server: ObjectStore, tmp_path: Path, spark: Any
) -> None:
    lake = Lake(server, tmp_path, spark)
    for day in (1, 2):
        lake.put(f"{day}.parquet", day)
    lake.refresh(lake.objects)
    version = lake.project.store.snapshot("v").header.version

    with server.refusing(503, "SlowDown", rf"/{lake.bucket}\?.*{LISTING}"):
        refreshed = lake.project.refresh()
    assert refreshed.is_wrong
    assert "can't be listed" in str(refreshed)
    assert lake.project.store.snapshot("v").header.version == version
    lake.put("late.parquet", 1, x=3)
    # Of what Spark reads and writes, the first requests are refused.
    with server.refusing(503, "SlowDown", agent=OF_SPARK, times=2):
        lake.refresh(lake.objects)


def test_a_store_that_spark_may_not_read_is_the_views_trouble_and_no_buckets(
    server: ObjectStore, tmp_path: Path, spark: Any
) -> None:
    lake = Lake(server, tmp_path, spark)
    for day in (1, 2):
        lake.put(f"{day}.parquet", day)

    with server.refusing(403, "AccessDenied", f"/{lake.bucket}/", agent=OF_SPARK):
        refreshed = lake.project.refresh()
    said = str(refreshed)
    assert refreshed.is_wrong
    assert "table events can't be reached: Spark can't reach its store" in said
    assert not lake.project.store.snapshot("v").rows
    assert not any(secret in said for secret in ("s3cr3t-of-base", "s3cr3t-of-house"))
    assert "table events can't be reached" in str(lake.project.plan())
    assert "table events can't be reached" in str(lake.project.status())
    lake.refresh(lake.objects)
    assert "can't be reached" not in str(lake.project.status())


@pytest.mark.parametrize("warehouse", ["here", "s3"])
def test_without_jars_the_table_or_the_warehouse_says_once_what_to_add(
    server: ObjectStore, tmp_path: Path, connect_server: str, warehouse: str
) -> None:
    """In a process of its own: the Spark of this one has the jars."""
    lake = Lake(server, tmp_path, None)
    for day in (1, 2):
        lake.put(f"{day}.parquet", day)
    lake.declared["spark"] = {"remote": connect_server}
    if warehouse == "here":
        lake.declared["warehouse"] = str(tmp_path / "warehouse")
    else:
        (tmp_path / "events").mkdir()
        pq.write_table(rows(1, 2), tmp_path / "events" / "a.parquet")
        lake.declared["tables"][0]["path"] = str(tmp_path / "events")
    lake.file.write_text(yaml.safe_dump(lake.declared))
    what = "table events" if warehouse == "here" else "the warehouse"
    once = f"{what} can't be reached: Spark has no jars for s3a://; add it to the project: spark.conf, "
    for command in ("project check", "refresh", "plan", "status"):
        said = " ".join(run(lake.file, *command.split()).split())
        assert said.count(once) == 1, said
        assert re.search(r"spark.jars.packages: org.apache.hadoop:hadoop-aws:3[.]\d+[.]\d+`", said)
        assert "s3cr3t" not in said


def run(file: Path, *command: str) -> str:
    """What a command says, which finds something wrong."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", "from mv_assets.cli import main; main()", "--project", str(file), *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "400"},
    )
    assert done.returncode == 1, done
    return done.stdout + done.stderr
