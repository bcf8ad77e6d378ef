"""Buckets as Dagster's partitions: the same windows, by the same keys."""

from __future__ import annotations

import re

import dagster as dg

from mv_assets.buckets import Buckets

_CRON = {"1d": "0 0 * * *", "1w": "0 0 * * 1", "1mo": "0 0 1 * *"}
_BY_DAY = "%Y-%m-%d"
_BY_MINUTE = "%Y-%m-%dT%H:%M"


def partitions_of(buckets: Buckets, start: int) -> dg.TimeWindowPartitionsDefinition:
    """The buckets from `start` on whose time is over."""
    cron = _CRON.get(buckets.width) or _within_a_day(buckets.width)
    first = buckets.floor(start)
    fmt = _BY_DAY if buckets.width in _CRON else _BY_MINUTE
    return dg.TimeWindowPartitionsDefinition(
        start=buckets.key(first), cron_schedule=cron, fmt=fmt, timezone=buckets.zone or "UTC"
    )


def _within_a_day(width: str) -> str:
    count, unit = re.fullmatch(r"(\d+)(m|h)", width).groups()  # type: ignore[union-attr]
    return f"*/{count} * * * *" if unit == "m" else f"0 */{count} * * *"


def milliseconds(window: dg.TimeWindow) -> tuple[int, int]:
    """A window in the project's own time."""
    return int(window.start.timestamp() * 1_000), int(window.end.timestamp() * 1_000)
