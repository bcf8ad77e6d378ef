"""B8, real Dagster processes: a backfill against `refresh`."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from mv_assets.clock import clock
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import State
from mv_assets.state.rules import effective_state
from mv_assets.state.store import Store
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.processes import DagsterProcesses
from mv_assets_tests.support.engines import connect_server

_SF = os.environ.get("SF", "1")
VIEW, _MONTHS, _ROUNDS = "pricing", 84, 5
_FIRST, _LAST = "1992-01-01", "1998-12-01"
_SQL = """
SELECT l_shipdate, l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
       sum(l_extendedprice) AS sum_base_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
       sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, count(*) AS count_order
FROM lineitem GROUP BY l_shipdate, l_returnflag, l_linestatus
"""
_WARM = {"spark.driver.memory": "4g", "spark.ui.enabled": "false"}


@dataclass
class _Site:
    """TPC-H's line items with a view of 84 months, in Dagster, with a warm Spark."""

    folder: Path
    store: Store
    dagster: Dagster
    environment: dict[str, str]
    run: str | None = None
    rests: list[float] = field(default_factory=list)

    def states(self) -> list[State]:
        snapshot = self.store.snapshot(VIEW)
        return [effective_state(row, snapshot.header) for row in snapshot.rows.values()]

    def drop(self) -> None:
        PartitionManager(self.store, clock=clock).drop(VIEW)

    def refresh(self) -> None:
        command = [str(Path(sys.executable).parent / "mv-assets"), "refresh"]
        subprocess.run(command, env=self.environment, check=True, capture_output=True)  # noqa: S603 - our own

    def backfill(self) -> None:
        """One ranged run, from its launch until all its buckets are VALID."""
        self.run = self.dagster.materialize(VIEW, _FIRST, _LAST)
        _until(lambda: self.states() == [State.VALID] * _MONTHS)

    def end(self) -> None:
        """The rest of it: an event a bucket."""
        begin = time.perf_counter()
        _until(lambda: self.run is None or self.dagster.run(self.run).finished)
        if self.run is not None:
            self.rests.append(time.perf_counter() - begin)
            assert self.dagster.run(self.run).status == "SUCCESS", self.dagster.errors(self.run)
        self.run = None


def run() -> Sequence[Figure]:
    with _site() as site:
        site.refresh()
        assert len(site.states()) == _MONTHS
        return list(_backfills(site))


def _backfills(site: _Site) -> Iterator[Figure]:
    def cold(work: Callable[[], None]) -> Callable[[], Callable[[], None]]:
        def prepared() -> Callable[[], None]:
            site.end()
            site.drop()
            return work

        return prepared

    steps = {"refresh": cold(site.refresh), "Dagster": cold(site.backfill)}
    samples = interleaved(_ROUNDS, steps)
    assert site.states() == [State.VALID] * _MONTHS
    site.end()
    what = f"cold backfill of {_MONTHS} months through Dagster / mv-assets refresh, SF {_SF}, warm Spark"
    yield ratio("B8", what, samples, "Dagster", "refresh", 1.5)
    rest = statistics.median(site.rests)
    yield Figure("B8", "after that, until the run has told of all its buckets", rest, "s", None)


def _until(condition: Callable[[], bool], seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("it never came to pass")
        time.sleep(0.1)


@contextmanager
def _site() -> Iterator[_Site]:
    folder = Path(tempfile.mkdtemp())
    store = Store(f"sqlite:///{folder}/state.db")
    try:
        write_project(folder)
        with connect_server(_WARM) as spark:
            settings = {
                "MV_ASSETS_PROJECT": str(folder / "project.yaml"),
                "MV_ASSETS_HOME": str(folder / "home"),
                "MV_ASSETS_SPARK_REMOTE": spark,
            }
            processes = DagsterProcesses(folder / "dagster", settings)
            processes.start()
            try:
                dagster = Dagster.at(processes.address)
                dagster.stop_sensor("watch_lineitem")
                _until(lambda: not dagster.unfinished())
                yield _Site(folder, store, dagster, {**os.environ, **settings})
            finally:
                processes.stop()
    finally:
        store.close()
        shutil.rmtree(folder, ignore_errors=True)


def some_rows(folder: Path) -> pa.Table:
    return pq.ParquetFile(folder / "lineitem" / "lineitem.parquet").read_row_group(0)


def write_project(folder: Path) -> None:
    data = folder / "lineitem"
    data.mkdir()
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(tool), "parquet", "-s", _SF, "--tables=lineitem", f"--output-dir={data}"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own environment's tool
    # The data ends on the first of its last month; with this it is complete.
    last = some_rows(folder).slice(0, 1)
    at = last.schema.get_field_index("l_shipdate")
    end = pa.array([date(1998, 12, 31)], last.schema.field(at).type)
    pq.write_table(last.set_column(at, last.schema.field(at), end), data / "end.parquet")
    view = {
        "name": VIEW,
        "base": "lineitem",
        "sql": _SQL,
        "time_column": "l_shipdate",
        "bucket": "1mo",
        "start": _FIRST,
        "max_buckets_per_run": _MONTHS,
    }
    table = {"name": "lineitem", "path": "lineitem", "time_column": "l_shipdate", "settle": "1s"}
    project = {"state": f"sqlite:///{folder}/state.db", "tables": [table], "views": [view]}
    (folder / "project.yaml").write_text(yaml.safe_dump(project))
