"""The fuzzer can fail: it finds each of these mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from mv_assets.spark.session import Engine
from mv_assets_tests.proof.fuzz.batch import Batch
from mv_assets_tests.proof.fuzz.check import Check
from mv_assets_tests.proof.fuzz.mutants import MUTANTS
from mv_assets_tests.proof.fuzz.world import World

SEED = 0
_ASKED, _MOST = 3_000, 300
Record = Callable[[str, object], None]
_Place = tuple[World, SparkSession]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, quick: Engine) -> Iterator[_Place]:
    """A world with buckets of every kind: stale without a look, marked, failed, frozen, half refreshed."""
    world = World(SEED, tmp_path_factory.mktemp("mutants"), quick)
    world.clear_day()
    world.look()
    world.force()
    world.late()
    world.lake.run("daily", "weekly")
    world.correct()
    world.delete()
    with quick.session() as spark:
        Batch(world, spark).declare()
        yield world, spark
    world.close()


@pytest.mark.deep
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_query_finds_the_mutant(mutant: str, place: _Place, record_property: Record) -> None:
    world, spark = place
    check = Check(world, Batch(world, spark), 0)
    put_in_place, matters = MUTANTS[mutant]
    queries = [each for each in check.queries(_ASKED) if re.search(matters, each.spark)][:_MOST]
    with pytest.MonkeyPatch.context() as patch:
        put_in_place(patch)
        found = next(check.wrong(queries), None)
    check.close()
    assert found is not None, f"{mutant}: not found by {_MOST} queries"
    # What is wrong without the mutant as well says nothing of it. What a mutant had remembered is forgotten.
    check = Check(world, Batch(world, spark), 0)
    again = next(check.wrong(queries, chosen=found.number), None)
    check.close()
    assert again is None, again
    record_property("proved", f"query routing without: {mutant}: query {found.number + 1} finds it")
