"""The watermark: complete through W, and never further than the data is known to reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mv_assets.state.model import _SEAL, Header, PartitionRow
from mv_assets.state.rules.states import has_current_data


def climb(header: Header, rows: Iterable[PartitionRow]) -> Header:
    """Move W over `rows`, which are ordered and start at or after W.

    This is the only place that moves W up, and it moves over rows only: a bucket that is VACANT or
    failed holds it, whatever is committed above.
    """
    if header.source_end is None:
        return header
    watermark, buckets = header.watermark, header.buckets
    for row in rows:
        after = buckets.next(watermark)
        if row.bucket != watermark or not has_current_data(row, header) or after > header.source_end + 1:
            break
        watermark = after
    return header if watermark == header.watermark else replace(header, watermark=watermark, seal=_SEAL)


def latest_end(ranges: Iterable[tuple[int, int]], now: int) -> int | None:
    """How far data is known to reach whose segments have these starts and ends; None if nothing is known.

    A segment that ends after now counts with its start, if that is past: one row dated 2099 must not
    let W run away.
    """
    ends = (end if end <= now else start for start, end in ranges)
    return max((end for end in ends if end <= now), default=None)
