"""Growth: planning a query against the buckets of the view that answers it."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.clock import clock
from mv_assets.config import DeclaredProject, MaterializedView, ParquetTable, Spark
from mv_assets.config.file import Draft
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.run.opened import OpenProject, open_project
from mv_assets.run.refresher import Refresher
from mv_assets.spark.session import Engine
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.own_process import peak_mb

_ROUNDS = 5
_FIRST = datetime(2010, 1, 1, tzinfo=UTC)
_LATER = 3_600_000
_VIEW = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
_ALL = "SELECT count(*) AS n FROM events"


def plans(sizes: Sequence[int]) -> list[Figure]:
    """One Spark for all sizes, which is warm from the second on."""
    engine = Engine(Spark(conf={"spark.ui.enabled": "false"}))
    try:
        return [figure for size in (sizes[0], *sizes) for figure in _plans(engine, size)][2:]
    finally:
        engine.stop()


def _plans(engine: Engine, buckets: int) -> Iterator[Figure]:
    """From the text of a query over all buckets to a frame of Spark's, which no job has run for."""
    with tempfile.TemporaryDirectory() as folder:
        times = [_FIRST + timedelta(hours=hour) for hour in range(buckets)]
        (Path(folder) / "events").mkdir()
        rows = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC"))})
        pq.write_table(rows, Path(folder) / "events" / "all.parquet")
        store = Store(f"sqlite:///{folder}/state.db")
        project = _open(Path(folder), store, engine, buckets)
        reports = Refresher(project).run()
        assert not [report.error for report in reports if report.error], reports
        with engine.session() as spark:
            taken, question = [], Question(_ALL)
            answers = Answers(project)
            for _ in range(1 + _ROUNDS):
                begin = time.perf_counter()
                served = answers.explain(question, spark)
                taken.append(1_000 * (time.perf_counter() - begin))
                assert served.buckets_from_base < 2, served
        store.close()
    warm = statistics.median(taken[1:])
    detail = f"median of {_ROUNDS}; the first, which reads the map, {taken[0]:.0f} ms"
    yield Figure("growth", f"planning a query, strict, {buckets:,} buckets", warm, " ms", None, detail)
    yield Figure(
        "growth", f"memory of planning, {buckets:,} buckets", peak_mb(), " MB", None, "without the JVM"
    )


def _open(folder: Path, store: Store, engine: Engine, buckets: int) -> OpenProject:
    table = ParquetTable(name="events", path=str(folder / "events"), time_column="at")
    declared = {"name": "v", "base": "events", "bucket": "1h", "start": "2010-01-01", "time_column": "hour"}
    view = MaterializedView.model_validate({**declared, "sql": _VIEW, "max_buckets_per_run": buckets})
    project = DeclaredProject(tables=(table,), views=(view,), warehouse=str(folder / "warehouse"))
    catalog = prepare(Draft("growth", project), schemas=False)
    manager = PartitionManager(store, clock=lambda: clock() + _LATER)
    return open_project(catalog, store, manager, engine, lambda: clock() + _LATER)
