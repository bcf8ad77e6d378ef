"""Which definition of a view is in force, what its rows count as, and which buckets it covers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mv_assets.buckets import Buckets
from mv_assets.state.errors import Fenced, OutOfCoverage, UnknownDefinition
from mv_assets.state.model import _SEAL, Declaration, Header, PartitionRow, State


def start_view(declaration: Declaration, now: int) -> Header:
    """The header of a view declared for the first time.

    One that starts with its data begins now, as far as is known before the first look.
    """
    start = declaration.buckets.floor(now if declaration.start is None else declaration.start)
    return Header(
        view=declaration.view,
        version=1,
        watermark=start,
        width=declaration.width,
        start=start,
        definition=declaration.definition,
        source_end=None,
        reset_at=0,
        seal=_SEAL,
    )


def in_force(header: Header, declaration: Declaration) -> bool:
    """Whether there is nothing to declare: this is the definition, and its coverage is included."""
    return declaration.definition == header.definition and extend(header, declaration.start) is None


def own(header: Header, declaration: Declaration) -> Header:
    """The view's header, if the caller's definition is the one in force.

    Raises:
        Fenced: another definition is.

    """
    if header.definition != declaration.definition:
        raise Fenced(declaration.view, declaration.definition, header.definition)
    return header


def declare(header: Header, history: Mapping[str, str], declaration: Declaration) -> Header | None:
    """A definition never seen takes over; None if it is in force already; an earlier one is fenced.

    Without the history two deployments that restart in turn would take over from each other for ever.
    """
    if declaration.definition == header.definition:
        return None
    if declaration.definition in history:
        raise Fenced(header.view, declaration.definition, header.definition)
    start = header.start if declaration.start is None else min(header.start, declaration.start)
    return _taking_over(header, declaration.definition, declaration.width, start)


def adopt(header: Header, history: Mapping[str, str], definition: str) -> Header | None:
    """Go back to an earlier definition on purpose; None if it is in force already."""
    if definition == header.definition:
        return None
    if definition not in history:
        raise UnknownDefinition(header.view, definition)
    return _taking_over(header, definition, history[definition], header.start)


def _taking_over(header: Header, definition: str, width: str, start: int) -> Header:
    start = Buckets.of(width).floor(start)
    return replace(
        # Rows of another width are dropped, and with them the forced marks that kept earlier work out.
        header if width == header.width else reset(header),
        definition=definition,
        width=width,
        start=start,
        watermark=start,
        # What was known of the source may be of another base table.
        source_end=None,
        closed=None,
        seal=_SEAL,
    )


def next_version(header: Header) -> Header:
    """The header as the write that is being made leaves it: one version on."""
    return replace(header, version=header.version + 1, seal=_SEAL)


def extend(header: Header, start: int | None) -> Header | None:
    """Coverage from an earlier start. W stays, as it never goes back, unless nothing was ever below it."""
    if start is None or (start := header.buckets.floor(start)) >= header.start:
        return None
    watermark = start if header.watermark == header.start else header.watermark
    return replace(header, start=start, watermark=watermark, seal=_SEAL)


def see_source(header: Header, source_end: int | None, closed: int | None = None) -> Header:
    """The source's end as a look found it, and whether its bucket is closed; it may go back, W does not.

    A bucket that was closed stays so while the source ends where it did: else two deployments that close
    theirs at different times would take that back from each other for ever.
    """
    if closed is None and source_end == header.source_end:
        closed = header.closed
    return replace(header, source_end=source_end, closed=closed, seal=_SEAL)


def reset(header: Header) -> Header:
    """Work planned before this write is planned again."""
    return replace(header, reset_at=header.version + 1, seal=_SEAL)


def drop(header: Header) -> Header:
    """The whole view to VACANT. The header stays, so that versions and content ids never repeat."""
    return replace(reset(header), watermark=header.start, seal=_SEAL)


def check_covered(header: Header, bucket: int) -> None:
    """Refuse what no row may exist for.

    Raises:
        BucketError: not the start of a bucket.
        OutOfCoverage: before the view's start.

    """
    name = header.buckets.key(bucket)
    if bucket < header.start:
        raise OutOfCoverage(header.view, name, header.buckets.key(header.start))


def effective_state(row: PartitionRow | None, header: Header) -> State:
    """The state that counts: data of another definition is STALE without being marked."""
    if row is None:
        return State.VACANT
    if row.inputs is not None and row.inputs.definition != header.definition:
        return State.STALE
    return row.state


def has_current_data(row: PartitionRow, header: Header) -> bool:
    """Whether the row has data of the current definition; STALE data counts, it was committed."""
    return row.inputs is not None and row.inputs.definition == header.definition
