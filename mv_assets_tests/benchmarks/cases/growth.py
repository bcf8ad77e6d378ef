"""Growth: what looks, marks, plans, commits and queries cost against files and buckets, and their memory.

No targets: curves, from which one may reckon what a larger lake would cost. Each stops where its next point
would take minutes.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from sqlalchemy import text

from mv_assets.config import ParquetTable
from mv_assets.config.file import Draft
from mv_assets.observe.observation import Unchanged
from mv_assets.plan import planner
from mv_assets.state.store import Store
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.open import open_table
from mv_assets.views.admission.analysis import ANALYSED
from mv_assets.views.catalog import prepare
from mv_assets_tests.benchmarks import databases
from mv_assets_tests.benchmarks.cases import b4_look, growth_queries
from mv_assets_tests.benchmarks.figure import Figure, interleaved
from mv_assets_tests.benchmarks.filled_view import FilledView
from mv_assets_tests.benchmarks.own_process import alone, peak_mb

FEW = 1_000
FILES = (1_000, 10_000, 100_000, 1_000_000)
# A file a bucket; a million would be committed for minutes before anything is measured.
BUCKETS = (1_000, 10_000, 100_000)
# Each file is opened, hashed and read: a million of them for minutes.
UNKNOWN = (1_000, 10_000, 100_000)
VIEWS = (10, 100, 1_000)
# Views on one table that is asked.
QUERIED = (1, 20, 200)
ROWS = (1_000, 10_000, 100_000, 1_000_000)
_ROUNDS, _COMMITS, _WARM_UP = 5, 50, 5
_FEW_FILES = 10
_KINDS = {"SQLite": databases.sqlite, "PostgreSQL": databases.postgresql}
_WEIGHT = {
    "SQLite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "PostgreSQL": "SELECT pg_total_relation_size('mv_inventory')",
}


def run() -> Iterator[Figure]:
    for files in FILES:
        yield from alone(partial(looks, files, FEW))
    for buckets in BUCKETS:
        yield from alone(partial(looks, buckets, buckets))
    for files in UNKNOWN:
        yield from alone(partial(first_look, files))
    for count in VIEWS:
        yield from alone(partial(views, count))
    for kind in _KINDS:
        for files in FILES:
            yield from alone(partial(inventory, kind, files))
        yield from alone(partial(commits, kind))
    yield from alone(partial(growth_queries.plans, BUCKETS))
    yield from alone(partial(growth_queries.matches_among, QUERIED))


def looks(files: int, buckets: int) -> list[Figure]:
    """A look that finds nothing; one that finds a late file and marks its bucket; and the plan for it."""
    size = f"{files:,} files, {buckets:,} buckets"
    with b4_look.lake_of(files, buckets=buckets) as lake:
        idle = [_ms(lake.round) for _ in range(_ROUNDS)]
        assert isinstance(lake.round(), Unchanged)
        marking, planning = [], []
        for hour in range(_ROUNDS):
            b4_look.late(lake.root, hour)
            marking.append(_ms(lake.round))
            observed = lake.round()
            planning.append(_ms(partial(planner.plan, observed)))
            assert [len(work.buckets) for work in planner.plan(observed).work] == [hour + 1]
    return [
        _figure(f"idle look, {size}", idle, files),
        _figure(f"look that finds a late file and marks its bucket, {size}", marking, files),
        _figure(f"plan, {size}", planning, buckets),
        Figure("growth", f"memory of these, {size}", peak_mb(), " MB"),
    ]


def first_look(files: int) -> list[Figure]:
    """Small files, from memory: what is measured is a file, not its bytes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "events"
        b4_look.write(root, files)
        store = Store(f"sqlite:///{folder}/state.db")
        declared = ParquetTable(name="events", path=str(root), time_column="at")
        table = open_table(declared, store.database, b4_look.now)
        took = _ms(lambda: table.current().listing())
        store.close()
    size = f"{files:,} files"
    return [
        _figure(f"first look, {size} of a row", [took], files),
        Figure("growth", f"memory of a first look, {size}", peak_mb(), " MB"),
    ]


def views(count: int) -> list[Figure]:
    """Small views of one table: what one more of them costs a project and each round."""
    names = ["v", *(f"v{number}" for number in range(1, count))]
    with b4_look.lake_of(_FEW_FILES, names) as lake:
        draft = Draft("growth", lake.catalog.project)
        loading = [_ms(partial(_loaded, draft)) for _ in range(_ROUNDS)]
        again = [_ms(lambda: prepare(draft, schemas=False)) for _ in range(_ROUNDS)]
        rounds = [_ms(lake.rounds) for _ in range(_ROUNDS)]
    return [
        _figure(f"analysing a project's SQL, {count:,} views", loading, count),
        _figure(f"loading it again in the same process, {count:,} views", again, count),
        _figure(f"round of idle looks, {count:,} views", rounds, count),
    ]


def _loaded(draft: Draft) -> None:
    ANALYSED.clear()
    prepare(draft, schemas=False)


def inventory(kind: str, files: int) -> list[Figure]:
    """What is remembered of files: its weight, and what it takes to recall."""
    with _KINDS[kind](["inventory"]) as (url,):
        store = Store(url)
        remembered = Inventory(store.database, "events:00000000")
        names = (f"part={at // 1_000}/{at:07}.snappy.parquet" for at in range(files))
        remembered.save({name: Known(at, at, at, at) for at, name in enumerate(names)})
        recalling = [_ms(lambda: sum(1 for _ in remembered.known())) for _ in range(_ROUNDS)]
        with store.database.read() as connection:
            weight = connection.execute(text(_WEIGHT[kind])).scalar_one()
        store.close()
    detail = f"{weight / files:.0f} bytes a file"
    return [
        _figure(f"{kind}: recalling an inventory of {files:,} files", recalling, files),
        Figure(
            "growth", f"{kind}: weight of an inventory of {files:,} files", weight / 1e6, " MB", None, detail
        ),
    ]


def commits(kind: str) -> list[Figure]:
    """One bucket into maps of all sizes, in turn."""
    with _KINDS[kind]([f"rows{rows}" for rows in ROWS]) as urls:
        views = {rows: FilledView(url, rows) for rows, url in zip(ROWS, urls, strict=True)}
        steps = {
            f"{kind}: {operation.__name__.upper()} of a bucket, map of {rows:,} rows": operation
            for rows, view in views.items()
            for operation in (view.overwrite, view.append)
        }
        interleaved(_WARM_UP, steps)
        samples = interleaved(_COMMITS, steps)
        for view in views.values():
            view.close()
    return [_figure(what, [1_000 * each for each in taken]) for what, taken in samples.items()]


def _ms(step: Callable[[], object]) -> float:
    begin = time.perf_counter()
    step()
    return 1_000 * (time.perf_counter() - begin)


def _figure(what: str, taken: Sequence[float], of: int | None = None) -> Figure:
    median = statistics.median(taken)
    share = "" if of is None else f"{1_000 * median / of:.2f} us each, "
    return Figure("growth", what, median, " ms", None, f"{share}median of {len(taken)}")
