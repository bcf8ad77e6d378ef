"""What is advised for the queries of all pairs is admitted, and answers them, with the same rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import yaml

from mv_assets.query.advise.proposal import Proposal
from mv_assets_tests.proof.pairs.conftest import Opened
from mv_assets_tests.proof.pairs.pairs import Pairs, all_pairs
from mv_assets_tests.proof.pairs.tables import PRODUCTS, SHOPS, TYPES, joined, some
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import QueriedLakes

ALL = all_pairs()
FILES = sorted({each.file for each in ALL})
# Of the queries that a view leaves to the base table, and of all where there is no view: how many it is
# said of which view would answer. As docs/queries.md says.
LEFT, OF_LEFT = 71, 86
ALONE, OF_ALONE = 295, 321
_MOST = int(os.environ.get("MV_ASSETS_ADVICE_VIEWS", "9"))
Views = Sequence[dict[str, Any]]


def declared(pairs: Pairs) -> dict[str, Any]:
    about = {"name": "v", "base": "events", "time_column": "t", "bucket": "1d", "start": "2024-01-01"}
    return {**about, "dimensions": joined(pairs.view), "sql": pairs.view}


def applied(proposals: Sequence[Proposal], views: Views) -> list[dict[str, Any]]:
    """The views of a project with what was proposed written into its file."""
    made = {each["name"]: each for each in views}
    for each in proposals:
        written = yaml.safe_load(each.yaml)
        for one in [{**made[each.view.name], **written}] if each.change is not None else written:
            made[one["name"]] = one
    return list(made.values())


def advised(pairs: Pairs, opened: Opened, views: Views, told: Counter[str]) -> None:
    """Ask for advice on all queries that no view answers, and take it."""
    with opened(views) as project:
        for query in pairs.queries:
            if views and query.served:
                continue
            told["asked"] += 1
            found = project.advise(query.text)
            if not found.proposals:
                assert found.reason, query.text
                continue
            with opened(applied(found.proposals, views)) as after:
                again = str(after.advise(query.text).reason)
            assert "answers it already" in again, f"{pairs.file}.sql:{query.line} {again}\n{found}"
            told["proposed"] += 1


@pytest.mark.slow
def test_what_is_proposed_is_admitted_and_answers(
    opened: Opened, record_property: Callable[[str, object], None]
) -> None:
    left, alone = Counter[str](), Counter[str]()
    for pairs in ALL:
        advised(pairs, opened, [declared(pairs)], left)
        advised(pairs, opened, [], alone)
    assert (left["proposed"], left["asked"]) == (LEFT, OF_LEFT)
    assert (alone["proposed"], alone["asked"]) == (ALONE, OF_ALONE)
    record_property("proved", f"advice: {left['proposed'] + alone['proposed']} proposals, each answers")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_what_is_proposed_gives_the_rows_of_the_base_table(
    file: str, opened: Opened, queried_lake: QueriedLakes
) -> None:
    texts = [query.text for pairs in ALL if pairs.file == file for query in pairs.queries]
    chosen = dict[str, str]()
    with opened([]) as project:
        # Each view once, with the first query that wants it.
        for text in texts:
            found = project.advise(text)
            # Of sketches DuckDB has none, which all views are held against in the end.
            if len(found.proposals) == 1 and "sketch" not in found.proposals[0].yaml:
                chosen.setdefault(found.proposals[0].yaml, text)
    assert len(chosen) > 3
    some_of_them = dict(list(chosen.items())[:: -(-len(chosen) // _MOST)])
    proposed = [yaml.safe_load(each)[0] | {"name": f"v{at}"} for at, each in enumerate(some_of_them)]
    made = queried_lake(*(view(**each) for each in proposed), dimensions=["shops", "products"])
    made.put_all("shops.parquet", SHOPS, "shops", TYPES)
    made.put_all("products.parquet", PRODUCTS, "products", TYPES)
    for number in range(4):
        made.put_all(f"day-{number}.parquet", some(number), types=TYPES)
    made.lake.run()
    made.put_all("late.parquet", {name: each[:9] for name, each in some(2).items()}, types=TYPES)
    for written, text in some_of_them.items():
        assert made.like_base(text).served.views, f"{text}\n{written}"
