"""B3: one small late file for a big bucket, against computing that bucket from all its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import duckdb

from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF, line_items
from mv_assets_tests.benchmarks.tpch import Shop, folder, shop, warm

_WARM_UP, _ROUNDS = 2, 7
_MONTH, _DAYS = "1998-10-01", 31
_FILES = 8


def run() -> Sequence[Figure]:
    with _one_month() as lake, warm() as engine, shop(lake, engine, start=_MONTH) as made:
        made.refresh(1)
        [bucket] = made.project.store.snapshot(made.view.name).rows
        numbers = count()

        def late() -> Callable[[], object]:
            _arrives(lake, next(numbers))
            return partial(made.refresh, 1)

        def again() -> Callable[[], object]:
            made.force(bucket)
            return partial(made.refresh, 1)

        steps = {"late": late, "recomputed": again}
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
        late()()
        merged = _rows(made)
        again()()
        assert merged == _rows(made)
    what = f"a late file, 1% of a month that has all line items, SF {SF}"
    return [ratio("B3", f"{what} / recomputing that month", samples, "late", "recomputed", 0.1)]


@contextmanager
def _one_month() -> Iterator[Path]:
    """The line items of all years as if all had been shipped in one month."""
    with folder() as lake, duckdb.connect() as connection:
        shipped = f"DATE '{_MONTH}' + CAST(datediff('day', DATE '1992-01-01', l_shipdate) % {_DAYS} AS INT)"
        rows = f"SELECT * REPLACE ({shipped} AS l_shipdate) FROM read_parquet('{line_items()}')"
        for number in range(_FILES):
            some = f"{rows} WHERE l_orderkey % {_FILES} = {number}"
            connection.execute(f"COPY ({some}) TO '{lake}/{number}.parquet' (FORMAT parquet)")
        yield lake


def _arrives(lake: Path, number: int) -> None:
    with duckdb.connect() as connection:
        some = f"SELECT * FROM read_parquet('{lake}/[0-7].parquet') WHERE l_orderkey % 100 = {number}"
        connection.execute(f"COPY ({some}) TO '{lake}/late-{number}.parquet' (FORMAT parquet)")


def _rows(made: Shop) -> Counter[tuple[object, ...]]:
    with made.project.engine.session() as spark:
        return Counter(tuple(row) for row in spark.read.parquet(*made.files()).collect())
