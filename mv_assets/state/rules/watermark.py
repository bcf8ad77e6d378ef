"""The watermark: complete through W, and never further than the data is known to reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mv_assets.buckets import Buckets
from mv_assets.state.model import _SEAL, Header, PartitionRow
from mv_assets.state.rules.definitions import has_current_data


def climb(header: Header, rows: Iterable[PartitionRow]) -> Header:
    """Move W over `rows`, which are ordered and start at or after W.

    This is the only place that moves W up, and it moves over rows only: a bucket that is VACANT or
    failed holds it, whatever is committed above.
    """
    latest = cap(header)
    if latest is None:
        return header
    watermark, buckets = header.watermark, header.buckets
    for row in rows:
        after = buckets.next(watermark)
        if row.bucket != watermark or not has_current_data(row, header) or after > latest:
            break
        watermark = after
    return header if watermark == header.watermark else replace(header, watermark=watermark, seal=_SEAL)


def cap(header: Header) -> int | None:
    """Where W ends at the latest: after the data, or with the bucket of its end, if that is closed.

    That bucket and never a later one, whatever the header says was closed: a writer that knows of no closing
    may have moved the source's end since.
    """
    end, closed = header.source_end, header.closed
    still = end is not None and closed == _end_of_bucket(header.buckets, end)
    return complete(end, closed if still else None)


def complete(source_end: int | None, closed: int | None) -> int | None:
    """Where the buckets end that are complete, if the source ends there and that bucket is closed."""
    if source_end is None or closed is not None:
        return closed
    return source_end + 1


def closes_at(buckets: Buckets, source_end: int | None, closes: int | None) -> int | None:
    """When the bucket in which the source's end lies counts as complete; None where the clock has no say."""
    if source_end is None or closes is None:
        return None
    end = _end_of_bucket(buckets, source_end)
    return None if end == source_end + 1 else end + closes


def closed(buckets: Buckets, source_end: int | None, closes: int | None, now: int) -> int | None:
    """The end of the bucket in which the source's end lies, if it counts as complete by now."""
    when = closes_at(buckets, source_end, closes)
    if when is None or source_end is None or now < when:
        return None
    return _end_of_bucket(buckets, source_end)


def _end_of_bucket(buckets: Buckets, time: int) -> int:
    return buckets.next(buckets.floor(time))
