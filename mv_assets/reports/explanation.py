"""Why one bucket is what it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rich.console import Console

from mv_assets.buckets import iso
from mv_assets.errors import MvError
from mv_assets.observe.difference import Difference, difference, named
from mv_assets.observe.observation import Observation, Observed
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.reports import show, wrong
from mv_assets.reports.shown import Line, Shown
from mv_assets.state import rules
from mv_assets.state.health import Wrong
from mv_assets.state.model import Event, Segment, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.views.view import View

_MOST_SEGMENTS = 15
_MOST_EVENTS = 10


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Shown):
    """A bucket with its files then and now, its last events and errors."""

    view: View
    snapshot: Snapshot
    bucket: int
    recorded: tuple[Segment, ...]
    # What of that the table has put into other files, with the same rows by its word; and what else changed.
    rewritten: Difference
    change: Difference
    events: tuple[Event, ...]
    # When it last changed its state.
    since: int | None
    plan: Plan
    # Why it is not due, where it has no row.
    not_due: str
    # What it is computed from: files, or the buckets of another view.
    made_of: Literal["file", "segment"]
    # With the view, whatever the bucket is.
    wrong: Wrong
    # With the views below: it may be why the bucket is as it is.
    upstream_wrong: tuple[str, ...]

    @property
    def state(self) -> State:
        return rules.effective_state(self.snapshot.rows.get(self.bucket), self.snapshot.header)

    @property
    def reason(self) -> str | None:
        """Why it is not VALID; for one that was never computed, why not yet."""
        row = self.snapshot.rows.get(self.bucket)
        if self.state is State.VALID:
            return None
        return (row.reason if row is not None else None) or self.next_step or self.not_due

    @property
    def next_step(self) -> str | None:
        for work in self.plan.work:
            if any(planned.bucket == self.bucket for planned in work.buckets):
                return f"{work.operation.value} is due: {work.reason}"
        for waits in self.plan.waiting:
            if waits.bucket == self.bucket:
                return waits.reason
        return next((each.error for each in self.plan.failing if each.planned.bucket == self.bucket), None)

    @property
    def last_error(self) -> str | None:
        record = self.snapshot.attempts.get(self.bucket)
        return None if record is None else record.last_error

    @property
    def is_wrong(self) -> bool:
        return bool(self.wrong or self.upstream_wrong)

    def as_json(self) -> dict[str, Any]:
        return _json(self) | {"upstream_wrong": list(self.upstream_wrong)}

    def lines(self, out: Console) -> Iterator[Line]:
        yield from _lines(out, self)
        yield from wrong.few(out, self.upstream_wrong)


def explained(
    store: Store | None, view: str, bucket: int, looked_at: Mapping[str, Observed | MvError]
) -> Explanation:
    """Why a bucket is what it is, by a whole look at its view and at those below."""
    below = {name: each for name, each in looked_at.items() if name != view}
    observed = looked_at[view]
    if isinstance(observed, MvError):
        raise observed
    if not isinstance(observed, Observation):
        raise AssertionError("a whole look looks at everything")  # noqa: TRY004 - none of the caller's
    known = store if store is not None and view in store.views() else None
    recorded = () if known is None else known.recorded(view, [bucket]).get(bucket, ())
    followed = observed.view_inputs.follow(observed.buckets, {bucket: recorded}).get(bucket)
    there = recorded if followed is None else followed.segments
    changes = [] if known is None else known.events(view, bucket, 1, only_changes=True)
    return Explanation(
        observed.view,
        observed.snapshot,
        bucket,
        recorded,
        difference(recorded, there),
        _change(observed, bucket, there),
        () if known is None else tuple(known.events(view, bucket, _MOST_EVENTS)),
        changes[0].at if changes else None,
        planner.plan(observed),
        planner.not_due(observed, bucket),
        "segment" if below else "file",
        observed.wrong,
        tuple(
            line
            for each in below.values()
            if not isinstance(each, MvError)
            for line in each.wrong.sentences(each.view.name, each.view.buckets)
        ),
    )


def _change(observation: Observation, bucket: int, recorded: Sequence[Segment]) -> Difference:
    """What changed of a bucket's files since it was computed."""
    seen = observation.buckets.get(bucket)
    if seen is not None and seen.current.inputs is None:
        # What it waits for is not there to be compared.
        return Difference()
    return difference(recorded, [] if seen is None else observation.view_inputs.segments(seen))


def _json(found: Explanation) -> dict[str, Any]:
    key, base = found.view.buckets.key, found.view.declared.base.table
    return {
        "view": found.view.name,
        "bucket": key(found.bucket),
        "state": found.state.value,
        "since": None if found.since is None else iso(found.since),
        "reason": found.reason,
        "segments": [_segment(segment, base) for segment in found.recorded],
        "rewritten": str(found.rewritten) or None,
        "added": [_segment(segment, base) for segment in found.change.added],
        "changed": [_segment(segment, base) for segment in found.change.changed],
        "removed": [_segment(segment, base) for segment in found.change.removed],
        "events": [
            {
                "at": iso(event.at),
                "operation": event.operation.value,
                "before": event.before,
                "after": event.after,
                "version": event.version,
                "who": event.who,
                "why": event.why,
            }
            for event in found.events
        ],
        "last_error": found.last_error,
        **wrong.as_json(found.wrong, found.view.buckets),
    }


def _segment(segment: Segment, base: str) -> dict[str, Any]:
    start, end = iso(segment.start_ms), iso(segment.end_ms)
    return {
        "table": segment.source or base,
        "name": segment.name,
        "crc": str(segment.crc),
        "start": start,
        "end": end,
    }


def _lines(out: Console, found: Explanation) -> Iterator[str]:
    view = found.view
    row = found.snapshot.rows.get(found.bucket)
    since = "" if found.since is None else f" since {iso(found.since)}"
    yield f"[bold]{view.name} {view.buckets.key(found.bucket)}[/]  {found.state}{since}"
    if found.reason is not None:
        yield f"  because {show.plain(found.reason)}"
    if found.next_step is not None and found.next_step != found.reason:
        yield f"  next: {show.plain(found.next_step)}"
    if row is not None and row.frozen:
        yield (f"  frozen: {found.made_of}s it was computed from are gone, and the view keeps what they gave")
    if found.last_error is not None:
        yield f"  [bold red]last error[/] {show.plain(found.last_error)}"
    if row is not None and row.refreshed_at is not None:
        made_of, rows = show.count(len(found.recorded), found.made_of), show.count(row.rows, "row")
        yield f"  computed {iso(row.refreshed_at)} from {made_of}: {rows}, {show.size(row.bytes)}"
    if found.rewritten != Difference():
        yield f"  rewritten files, same rows by the table's word: {show.plain(str(found.rewritten))}"
    yield from _segment_lines("added", "green", found.change.added)
    yield from _segment_lines("changed", "yellow", found.change.changed)
    yield from _segment_lines("removed", "red", found.change.removed)
    yield from _segment_lines("recorded", "bright_black", found.recorded)
    for event in found.events:
        why = "" if event.why is None else f": {show.plain(event.why)}"
        change = f"{event.before or State.VACANT} -> {event.after or State.VACANT}"
        when, who = f"[bright_black]{iso(event.at)}[/]", f"[bright_black]by {show.plain(event.who)}[/]"
        yield f"  {when} {event.operation.value} {change}{why} {who}"
    yield from wrong.lines(out, found.wrong, view.buckets, {found.bucket})


def _segment_lines(what: str, style: str, segments: tuple[Segment, ...]) -> Iterator[str]:
    for segment in segments[:_MOST_SEGMENTS]:
        times = f"[bright_black]{iso(segment.start_ms)} to {iso(segment.end_ms)}[/]"
        yield f"  [{style}]{what:<8}[/] {show.plain(named(segment))}  {times}"
    if len(segments) > _MOST_SEGMENTS:
        yield f"  and {len(segments) - _MOST_SEGMENTS} more {what}"
