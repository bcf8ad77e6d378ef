"""Growth: planning a query, by the buckets of the view that answers it, and by views that can't answer."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.clock import clock
from mv_assets.config import DeclaredProject, MaterializedView, ParquetTable, Spark
from mv_assets.config.file import Draft
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.match.matches import match
from mv_assets.query.match.request import request_of
from mv_assets.query.match.statement import statement_of
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import SchemaCache
from mv_assets.run.opened import OpenProject, open_project
from mv_assets.run.refresher import Refresher
from mv_assets.spark.session import Engine
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.own_process import peak_mb

_ROUNDS, _MATCHES = 5, 30
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


# Two can answer a query by shop; the others lack its key, its sum or its rows, or join what it does not.
_FITTING = (
    "SELECT date_trunc('{grain}', at) AS t, shop, channel, count(*) AS n, sum(amount) AS amount, "
    "count(amount) AS amounts FROM events GROUP BY ALL"
)
_OTHERS = (
    (
        "SELECT date_trunc('day', at) AS t, customer, count(*) AS n, sum(amount) AS a, count(amount) AS m "
        "FROM events WHERE quantity > {at} GROUP BY ALL"
    ),
    "SELECT date_trunc('hour', at) AS t, product, count(*) AS n, sum(amount) AS a FROM events GROUP BY ALL",
    (
        "SELECT date_trunc('day', at) AS t, shop, channel, count(*) AS n, sum(amount) AS amount, "
        "count(amount) AS m FROM events WHERE shop = {at} GROUP BY ALL"
    ),
    "SELECT date_trunc('day', at) AS t, shop, channel, max(quantity) AS q{at} FROM events GROUP BY ALL",
    (
        "SELECT date_trunc('day', at) AS t, city, shop, channel, count(*) AS n, sum(amount) AS a{at}, "
        "count(amount) AS m FROM events JOIN shops USING (shop) GROUP BY ALL"
    ),
    "SELECT at AS t, shop, quantity FROM events WHERE amount > {at}",
)
_BY_SHOP = (
    "SELECT shop, sum(amount) AS amount, avg(amount) AS mean, count(*) AS n FROM events "
    "WHERE channel = 'c{at}' AND at >= '2010-01-02' GROUP BY shop ORDER BY 2 DESC"
)


def matches_among(counts: Sequence[int]) -> list[Figure]:
    """From a query's text to the views that answer it, two of more and more: each time another constant."""
    engine = Engine(Spark())
    return [_match_among(engine, count) for count in counts]


def _match_among(engine: Engine, count: int) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        _write_events(Path(folder))
        store = Store(f"sqlite:///{folder}/state.db")
        project = _open_among(Path(folder), store, engine, count)
        cache, taken = SchemaCache(project), list[float]()
        for at in range(1 + _MATCHES):
            begin = time.process_time()
            assert 0 < len(_matching(project, cache, _BY_SHOP.format(at=at))) < 3
            taken.append(1_000 * (time.process_time() - begin))
        store.close()
    detail = f"CPU, median of {_MATCHES}; the first, which reads all views' SQL, {taken[0]:.0f} ms"
    what = f"matching a query, without Spark, {count:,} views on the table"
    return Figure("growth", what, statistics.median(taken[1:]), " ms", 150, detail)


def _matching(project: OpenProject, cache: SchemaCache, text: str) -> list[str]:
    catalog, found = project.catalog, []
    with Pinned(project) as pinned:
        statement = statement_of(text, [*catalog.tables, *catalog.views])
        time_of = cache.time("events", statement, pinned)
        assert time_of is not None
        sources = {name: cache.source(name, statement, pinned) for name in statement.names}
        asked = request_of(statement, sources, time_of)
        for view in cache.promising(asked, sources):
            with suppress(NotPlain):
                match(asked, cache.view_columns(view, time_of, sources))
                found.append(view.name)
    return found


def _write_events(folder: Path) -> None:
    times = [_FIRST + timedelta(hours=hour) for hour in range(240)]
    numbers = pa.array(range(len(times)), pa.int32())
    columns = dict.fromkeys(("shop", "product", "customer", "quantity", "amount"), numbers)
    channels = pa.array([f"c{at % 20}" for at in range(len(times))])
    rows = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), **columns, "channel": channels})
    shops = pa.table({"shop": numbers, "city": channels})
    for name, table in {"events": rows, "shops": shops}.items():
        (folder / name).mkdir()
        pq.write_table(table, folder / name / "all.parquet")


def _open_among(folder: Path, store: Store, engine: Engine, count: int) -> OpenProject:
    texts = [_FITTING.format(grain=grain) for grain in ("day", "hour")]
    texts += [_OTHERS[at % len(_OTHERS)].format(at=1_000 + at) for at in range(count)]
    views = tuple(
        MaterializedView.model_validate(
            {
                "name": f"v{at}",
                "base": "events",
                "bucket": "1d",
                "start": "2010-01-01",
                "time_column": "t",
                "dimensions": ["shops"] if "shops" in text else [],
                "sql": text,
            }
        )
        for at, text in enumerate(texts[:count])
    )
    tables = (
        ParquetTable(name="events", path=str(folder / "events"), time_column="at"),
        ParquetTable(name="shops", path=str(folder / "shops")),
    )
    project = DeclaredProject(tables=tables, views=views, warehouse=_warehouse(folder))
    return _project(store, engine, project)


def _open(folder: Path, store: Store, engine: Engine, buckets: int) -> OpenProject:
    table = ParquetTable(name="events", path=str(folder / "events"), time_column="at")
    declared = {"name": "v", "base": "events", "bucket": "1h", "start": "2010-01-01", "time_column": "hour"}
    view = MaterializedView.model_validate({**declared, "sql": _VIEW, "max_buckets_per_run": buckets})
    project = DeclaredProject(tables=(table,), views=(view,), warehouse=_warehouse(folder))
    return _project(store, engine, project)


def _warehouse(folder: Path) -> str:
    return str(folder / "warehouse")


def _project(store: Store, engine: Engine, project: DeclaredProject) -> OpenProject:
    catalog = prepare(Draft("growth", project), schemas=False)
    manager = PartitionManager(store, clock=lambda: clock() + _LATER)
    return open_project(catalog, store, manager, engine, lambda: clock() + _LATER)
