"""What a process keeps of its looks in memory: one that has just started has none of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mv_assets.observe.maps import LISTED
from mv_assets.observe.remembered import REMEMBERED
from mv_assets.publish.publisher import STORED
from mv_assets.tables.delta import remembered as delta
from mv_assets.tables.iceberg import blocks, positions, rewrites
from mv_assets.tables.iceberg import kept as iceberg
from mv_assets.tables.parquet import kept as parquet
from mv_assets.tables.recent import Recent

OF_TABLES: tuple[Recent[Any], ...] = (
    parquet.KEPT,
    delta.KEPT,
    iceberg.KEPT,
    blocks._recent,
    positions._recent,
    rewrites._recent,
)
ALL: tuple[Recent[Any], ...] = (REMEMBERED, LISTED, STORED, *OF_TABLES)


def forget() -> None:
    for each in ALL:
        each.clear()


@contextmanager
def process_of_its_own() -> Iterator[None]:
    """What a process remembers of earlier looks is not another's, nor that of one after it."""
    kept = [(each, each._kept, each._weight) for each in ALL]
    for each in ALL:
        each._kept, each._weight = OrderedDict(), 0
    try:
        yield
    finally:
        for each, values, weight in kept:
            each._kept, each._weight = values, weight
