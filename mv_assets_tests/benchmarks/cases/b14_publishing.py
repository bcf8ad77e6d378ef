"""B14: publishing one bucket's commit, against the refresh of that bucket, and with the number of buckets."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path

from mv_assets.buckets import DAY
from mv_assets.config import IcebergTarget
from mv_assets.publish.publisher import Publisher
from mv_assets.state.store import Store
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.tpch import Shop, folder, months, shop, warm
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import day, through, view
from mv_assets_tests.support.published_lake import PublishedLake

_WARM_UP, _ROUNDS = 2, 7
# So many days before the last one that is complete.
_BUCKETS, _START = 1_000, "1996-03-06"
_FEW, _MANY, _A_RUN = 100, 10_000, 100


def run() -> Sequence[Figure]:
    return [_against_a_refresh(), _growth()]


def _against_a_refresh() -> Figure:
    with ExitStack() as held:
        lake, engine = held.enter_context(months()), held.enter_context(warm())
        place = held.enter_context(folder())
        target = IcebergTarget(
            catalog={"type": "sql", "uri": f"sqlite:///{place}/catalog.db"}, namespace="marts"
        )
        made = held.enter_context(shop(lake, engine, "1d", start=_START, publish=target))
        made.refresh(_BUCKETS)
        _publish(made)
        chance = random.Random(1)
        buckets = sorted(made.project.store.snapshot("pricing").rows)

        def refresh() -> Callable[[], object]:
            made.force(chance.choice(buckets))
            return partial(made.refresh, 1)

        def publish() -> Callable[[], object]:
            refresh()()
            return partial(_publish, made)

        steps = {"refresh": refresh, "publish": publish}
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
    what = f"publishing 1 of {_BUCKETS} daily buckets, SF {SF} / the refresh of it"
    return ratio("B14", what, samples, "publish", "refresh", 0.3)


def _publish(made: Shop) -> None:
    project = made.project
    publisher = Publisher(project.catalog, project.store, project.manager, project.warehouse)
    [found] = publisher.publish(["pricing"])
    assert found.error is None, found.error
    assert found.is_new


def _growth() -> Figure:
    with ExitStack() as held:
        lakes = {size: _lake(held.enter_context(folder()), size) for size in (_FEW, _MANY)}
        numbers, chance = count(), random.Random(1)

        def publish(size: int) -> Callable[[], object]:
            lake, number = lakes[size], chance.randrange(size)
            lake.write(f"late-{next(numbers)}.parquet", [day(number)])
            lake.run()
            return lake.published

        steps = {str(size): partial(publish, size) for size in lakes}
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
    what = f"publishing one bucket of {_MANY:,} / of {_FEW}"
    return ratio("B14", what, samples, str(_MANY), str(_FEW), 2.0)


def _lake(place: Path, size: int) -> PublishedLake:
    """So many days, computed and published, a hundred of them a run."""
    clock = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    declared = view(max_buckets_per_run=_A_RUN)
    made = PublishedLake(
        place / "lake", Store(f"sqlite:///{place}/state.db", now=clock), [declared], clock=clock
    )
    for first in range(0, size, _A_RUN):
        times = [moment for number in range(first, first + _A_RUN) for moment in through(number)]
        made.write(f"{first:06}.parquet", times)
    assert clock.now > size * DAY
    made.run()
    made.published()
    return made
