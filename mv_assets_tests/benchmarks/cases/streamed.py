"""The memory of a large answer that is written to a file: it does not grow with its rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mv_assets.cli.answers.formats import FORMATS
from mv_assets.cli.answers.rows import Rows
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets_tests.benchmarks.figure import Figure
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.own_process import alone, peak_mb
from mv_assets_tests.benchmarks.tpch import folder, months, shop, warm

# Parts of the rows of line items: both more than are handed out at once.
_SMALL, _LARGE = 50, 2
_MOST = 1.2


def run() -> Iterator[Figure]:
    small, large = (alone(partial(written, part))[0] for part in (_SMALL, _LARGE))
    yield small
    yield large
    what = "peak memory of this process, the larger answer / the smaller"
    yield Figure("streamed", what, large.value / small.value, "x", _MOST, "Spark's own process is another")


def written(part: int) -> list[Figure]:
    """A process of its own: what it had once it would not give back."""
    sql = f"SELECT * FROM lineitem WHERE l_orderkey % {part} = 0"
    with months() as lake, warm() as engine, shop(lake, engine) as made, folder() as place:
        answer = Answers(made.project).answer(Question(sql, Freshness.OFF))
        rows = Rows(answer.frame)
        with (Path(place) / "rows.parquet").open("wb") as out:
            FORMATS["parquet"](rows, out)
    what = f"an answer of {rows.total:,} rows of SF {SF} written as Parquet: peak memory"
    return [Figure("streamed", what, peak_mb(), " MB")]
