"""How many buckets a view may have. Every look goes through all of them, and coverage is never given up."""

from __future__ import annotations

from mv_assets.buckets import iso
from mv_assets.config.values import EARLIEST
from mv_assets.errors import BucketError
from mv_assets.views.errors import ExtendedTooFar, TooManyBuckets
from mv_assets.views.view import View

# Forty years of minutes: more is a start that nobody meant, and no look would get through it.
_MOST_BUCKETS = 20_000_000
# Ten years of hours: more at once is a year that was mistyped.
_MOST_AT_ONCE = 100_000


def check_start(view: View, start: int, now: int) -> None:
    """See, before anything is kept of it, that a view could be looked at from a start on.

    Raises:
        TooManyBuckets: it could not.

    """
    count = view.buckets.count(start, now)
    if count > _MOST_BUCKETS:
        raise TooManyBuckets(view.name, view.buckets.width, iso(start), count, _MOST_BUCKETS)


def check_range(view: View, first: int, end: int) -> None:
    """See that a range could be one of buckets that are covered.

    Raises:
        BucketError: it is too long, or too early.

    """
    key, count = view.buckets.key, view.buckets.count(first, end)
    if first < view.buckets.floor(EARLIEST):
        raise BucketError(f"bucket {key(first)} lies before {iso(EARLIEST)}, where no view can start")
    if count > _MOST_BUCKETS:
        raise BucketError(f"from bucket {key(first)} on these are {count:,} buckets; is the year right?")


def check_extension(view: View, first: int, start: int, now: int) -> None:
    """See that coverage from `start` on may be extended to begin at `first`.

    Raises:
        ExtendedTooFar: these are more buckets than anybody would mean.
        TooManyBuckets: with them the view could not be looked at.

    """
    count, key = view.buckets.count(first, start), view.buckets.key
    if count > _MOST_AT_ONCE:
        raise ExtendedTooFar(view.name, view.buckets.width, key(first), key(start), count, _MOST_AT_ONCE)
    check_start(view, first, now)
