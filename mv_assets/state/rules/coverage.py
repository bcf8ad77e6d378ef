"""Which buckets a view has at all."""

from __future__ import annotations

from mv_assets.errors import OutOfCoverage
from mv_assets.state.model import Header


def check(header: Header, bucket: int) -> None:
    """Refuse what no row may exist for.

    Raises:
        BucketError: not the start of a bucket.
        OutOfCoverage: before the view's start.

    """
    name = header.buckets.key(bucket)
    if bucket < header.start:
        raise OutOfCoverage(header.view, name, header.buckets.key(header.start))
