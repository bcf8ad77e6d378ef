"""Pairs of view and query after the test suites of other systems: none is answered wrongly.

How many are answered from the view is written down with each of them, so it can't change unseen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mv_assets_tests.proof.pairs.pairs import Pairs, all_pairs
from mv_assets_tests.proof.pairs.tables import PRODUCTS, SHOPS, TYPES, joined, some
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import QueriedLake, QueriedLakes

ALL = all_pairs()
DOCS = Path(__file__).parents[3] / "docs" / "queries.md"


@pytest.fixture
def star(queried_lake: QueriedLakes) -> Callable[[str], QueriedLake]:
    """Four days of events, the third with a late file that its view does not know yet."""

    def make(sql: str) -> QueriedLake:
        declared = view(sql=sql, time_column="t", dimensions=joined(sql))
        made = queried_lake(declared, dimensions=["shops", "products"])
        made.put_all("shops.parquet", SHOPS, "shops", TYPES)
        made.put_all("products.parquet", PRODUCTS, "products", TYPES)
        for number in range(4):
            made.put_all(f"day-{number}.parquet", some(number), types=TYPES)
        # Some views DuckDB can't compute; what is asked here is that queries agree with the base.
        made.lake.run()
        made.put_all("late.parquet", {name: each[:9] for name, each in some(2).items()}, types=TYPES)
        return made

    return make


@pytest.mark.slow
@pytest.mark.parametrize("pairs", ALL, ids=lambda pairs: f"{pairs.file}: {pairs.about}")
def test_answers_are_those_of_the_base_table(pairs: Pairs, star: Callable[[str], QueriedLake]) -> None:
    lake, other = star(pairs.view), list[str]()
    for query in pairs.queries:
        answer = lake.like_base(query.text)
        if bool(answer.served.views) is not query.served:
            why = answer.served.considered.get("v") or answer.served.reason
            other.append(f"{pairs.file}.sql:{query.line} served: {not query.served} ({why})\n{query.text}")
    if "sketch" in pairs.view:
        # DuckDB has none to compare with.
        lake.lake.manager.drop("v")
    assert not other, "\n\n".join(other)


def test_the_documents_say_how_many_are_served() -> None:
    told, said = Counter(query.served for pairs in ALL for query in pairs.queries), DOCS.read_text()
    assert f"{told[True]} are answered from the view, {told[False]} by the base table" in said
    for file in {pairs.file for pairs in ALL}:
        own = Counter(query.served for pairs in ALL if pairs.file == file for query in pairs.queries)
        assert re.search(rf"^\| {file} \| .* \| {own[True]} of {own.total()} \|$", said, re.MULTILINE), file
