"""Whatever happens to the files, a query gives what the base table would give. DuckDB says what that is.

MV_ASSETS_FUZZ_WORLDS and MV_ASSETS_FUZZ_QUERIES (for each world) ask for more, and MV_ASSETS_SEED for others,
as `make prove` does; MV_ASSETS_FUZZ_SEED for one world only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from mv_assets.errors import MvError
from mv_assets.query.execute.answer import Question
from mv_assets.spark.session import Engine
from mv_assets_tests.proof.fuzz.batch import Batch
from mv_assets_tests.proof.fuzz.check import Check, Tally, Wrong
from mv_assets_tests.proof.fuzz.views import BY_NAME_ONLY, VIEWS
from mv_assets_tests.proof.fuzz.world import World

SEED = os.environ.get("MV_ASSETS_FUZZ_SEED")
FIRST = int(os.environ.get("MV_ASSETS_SEED", "0"))
WORLDS = int(os.environ.get("MV_ASSETS_FUZZ_WORLDS", "1"))
QUERIES = int(os.environ.get("MV_ASSETS_FUZZ_QUERIES", "90"))
MOMENTS = 3
_MOST_TOLD = 5
Record = Callable[[str, object], None]


def told(wrong: list[Wrong]) -> str:
    return "\n\n".join(map(str, wrong[:_MOST_TOLD]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + WORLDS) if SEED is None else [int(SEED)])
def test_views_change_no_answer(seed: int, tmp_path: Path, quick: Engine, record_property: Record) -> None:
    world, tally, wrong = World(seed, tmp_path, quick), Tally(), list[Wrong]()
    with quick.session() as spark:
        for moment in range(MOMENTS):
            if moment:
                world.step()
            batch = Batch(world, spark)
            if not moment:
                batch.declare()
            check = Check(world, batch, moment)
            wrong += check.wrong(check.queries(QUERIES // MOMENTS))
            tally.plus(check.tally)
            check.close()
    world.close()
    assert not wrong, told(wrong)
    assert tally.served >= 0.5 * tally.queries, tally
    assert tally.several > 0.03 * tally.queries, tally
    assert tally.mixed > 0.1 * tally.queries, tally
    if tally.queries >= 200:
        # One that is always there but never of use would prove nothing.
        missing = {view.name for view in VIEWS} - set(tally.views) - {"monthly", *BY_NAME_ONLY}
        assert len(missing) <= 2, (missing, tally.views)
    record_property("proved", f"query routing: {tally}, seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST + 100, FIRST + 100 + WORLDS))
def test_answers_as_users_ask_for_them(
    seed: int, tmp_path: Path, quick: Engine, record_property: Record
) -> None:
    """One by one, and with a broken file in the end: what needs it raises, what does not is right."""
    world, asked, raised = World(seed, tmp_path, quick), 0, 0
    with quick.session() as spark:
        world.step()
        for moment in range(2):
            if moment:
                broken = world.spoil()
            batch = Batch(world, spark)
            if not moment:
                batch.declare()
            spark.conf.set("spark.sql.adaptive.enabled", "true")
            check = Check(world, batch, moment)
            for at, each in enumerate(islice(check.queries(100), 30)):
                found = batch.alone(Question(each.spark))
                asked += 1
                if moment and isinstance(found.error, MvError):
                    assert broken in str(found.error), (each.spark, found.error)
                    raised += 1
                    continue
                wrong = check.judged(each, found, batch.alone(check.off(each)) if each.by_spark else None)
                assert wrong is None, Wrong(seed, moment, at, each, wrong, str(found.served), world.story)
            check.close()
    world.close()
    assert 0 < raised < asked / 2
    record_property(
        "proved",
        f"query routing: {asked} queries one by one, {raised} refused for a broken file, seed {seed}",
    )
