"""What an earlier look means for the next one: whether it may end early, and what has waited since."""

from __future__ import annotations

from mv_assets.state.model import Header, Look, LookRecord, OldestWaiting
from mv_assets.state.rules import watermark


def idle(record: LookRecord | None, table_version: str, map_version: int, now: int) -> bool:
    """Whether a look may end early.

    The table's version alone is not enough: a commit may have landed after that look with inputs that
    were already out of date, and only the map's version tells. A look that was made after now is one of a
    clock that has been set back: it says nothing of when to look again.
    """
    return (
        record is not None
        and record.table_version == table_version
        and record.map_version == map_version
        and record.at <= now
        and (record.recheck_at is None or now < record.recheck_at)
    )


def recorded(before: LookRecord | None, look: Look, covers: int) -> LookRecord:
    """What is kept of a look that covers the map up to that version."""
    return LookRecord(
        look.table_version,
        covers,
        look.at,
        look.recheck_at,
        look.broken,
        look.first_vacant,
        oldest_waiting(before, look),
        look.ends_first,
        look.whole_at,
    )


def closes_now(header: Header, closes: int | None, now: int) -> bool:
    """Whether the clock alone has closed a bucket since: an unchanged table then means something else.

    Not a time that the last look noted: that may have been another deployment's, which closes nothing.
    """
    closed = watermark.closed(header.buckets, header.source_end, closes, now)
    return closed is not None and closed != header.closed


def oldest_waiting(before: LookRecord | None, look: Look) -> OldestWaiting | None:
    """What waits to be computed, with the time of the first of the looks in a row that saw it wait."""
    if look.oldest_waiting is None:
        return None
    known = None if before is None else before.oldest_waiting
    return (
        known
        if known is not None and known.bucket == look.oldest_waiting
        else OldestWaiting(look.oldest_waiting, look.at)
    )
