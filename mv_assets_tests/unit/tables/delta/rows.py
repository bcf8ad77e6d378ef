"""Rows of Delta tables by their days, and what listings say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.listing import Listing
from mv_assets.tables.times import TimeColumn

DAY = 86_400_000
NOW = 1_800_000_000_000
TS = TimeColumn("ts")

Make = Callable[..., DeltaFiles]


def rows(*days: float | None, **more: Any) -> pa.Table:
    """Rows at those days since 1970."""
    micros = [None if day is None else int(day * DAY * 1_000) for day in days]
    return pa.table({"ts": pa.array(micros, pa.timestamp("us", "UTC")), **more})


def ranges(listing: Listing) -> list[tuple[int, int]]:
    return sorted(zip(listing.starts, listing.ends, strict=True))


def only(listing: Listing) -> str:
    (name,) = listing.names
    return name
