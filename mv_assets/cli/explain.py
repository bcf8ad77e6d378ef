"""`mv-assets explain`: why one bucket is what it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import click

from mv_assets.buckets import iso
from mv_assets.cli import show, wrong
from mv_assets.cli.looking import imagining
from mv_assets.cli.session import Session, print_json
from mv_assets.errors import MvError
from mv_assets.observe.difference import Difference, difference
from mv_assets.observe.inputs import BucketInputs
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.plan import planner
from mv_assets.plan.planner import Plan
from mv_assets.state import rules
from mv_assets.state.health import Wrong
from mv_assets.state.model import Event, Segment, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.views.view import View

_MOST_SEGMENTS = 15
_MOST_EVENTS = 10


@dataclass(frozen=True, slots=True)
class _Explanation:
    view: View
    snapshot: Snapshot
    bucket: int
    recorded: tuple[Segment, ...]
    change: Difference
    events: list[Event]
    # When it last changed its state.
    since: int | None
    plan: Plan
    # Why it is not due, where it has no row.
    not_due: str
    # What it is computed from: files, or the buckets of another view.
    made_of: Literal["file", "segment"]
    # With the view, whatever the bucket is.
    wrong: Wrong

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


@click.command(epilog="Example: mv-assets explain trips_hourly 2024-01-31")
@click.argument("view")
@click.argument("bucket")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def explain(ctx: click.Context, view: str, bucket: str, *, as_json: bool) -> None:
    """Say why a bucket is what it is: its files then and now, its last events and errors."""
    session: Session = ctx.obj
    catalog = session.catalog(schemas=True, only=[view])
    start = catalog.view(view).buckets.parse(bucket)
    with session.existing_state(catalog) as store, imagining(catalog, store) as watch:
        looked_at = watch.round([view], whole=True)
        observed = looked_at.pop(view)
        if isinstance(observed, MvError):
            raise observed
        found = _explain(observed, start, store, "segment" if looked_at else "file")
    below = [
        line for each in looked_at.values() if not isinstance(each, MvError) for line in _wrong_below(each)
    ]
    if as_json:
        print_json(_json(found) | {"upstream_wrong": below})
    else:
        _print(found)
        wrong.tell_lines(below)
    if found.wrong or below:
        ctx.exit(1)


def _wrong_below(observed: Observed) -> list[str]:
    """What is wrong with a view that the bucket's is based on: it may be why the bucket is as it is."""
    return observed.wrong.sentences(observed.view.name, observed.view.buckets)


def _explain(
    observed: Observed, bucket: int, store: Store | None, made_of: Literal["file", "segment"]
) -> _Explanation:
    if isinstance(observed, Unchanged):
        raise AssertionError("a whole look looks at everything")  # noqa: TRY004 - none of the caller's
    observation, name = observed, observed.view.name
    recorded: tuple[Segment, ...] = ()
    events: list[Event] = []
    changes: list[Event] = []
    if store is not None and name in store.views():
        recorded = store.recorded(name, [bucket]).get(bucket, ())
        events = store.events(name, bucket, _MOST_EVENTS)
        changes = store.events(name, bucket, 1, only_changes=True)
    seen = observation.buckets.get(bucket)
    return _Explanation(
        observed.view,
        observation.snapshot,
        bucket,
        recorded,
        _difference(observation, seen, recorded),
        events,
        changes[0].at if changes else None,
        planner.plan(observed),
        planner.not_due(observed, bucket),
        made_of,
        observed.wrong,
    )


def _difference(
    observation: Observation, seen: BucketInputs | None, recorded: tuple[Segment, ...]
) -> Difference:
    if seen is not None and seen.current.inputs is None:
        # What it waits for is not there to be compared.
        return Difference()
    return difference(recorded, [] if seen is None else observation.view_inputs.segments(seen))


def _json(found: _Explanation) -> dict[str, Any]:
    key = found.view.buckets.key
    return {
        "view": found.view.name,
        "bucket": key(found.bucket),
        "state": found.state.value,
        "since": None if found.since is None else iso(found.since),
        "reason": found.reason,
        "segments": [_segment(segment) for segment in found.recorded],
        "added": [_segment(segment) for segment in found.change.added],
        "changed": [_segment(segment) for segment in found.change.changed],
        "removed": [_segment(segment) for segment in found.change.removed],
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


def _segment(segment: Segment) -> dict[str, Any]:
    start, end = iso(segment.start_ms), iso(segment.end_ms)
    return {"name": segment.name, "crc": str(segment.crc), "start": start, "end": end}


def _print(found: _Explanation) -> None:
    out, view = show.console(), found.view
    row = found.snapshot.rows.get(found.bucket)
    since = "" if found.since is None else f" since {iso(found.since)}"
    out.print(f"[bold]{view.name} {view.buckets.key(found.bucket)}[/]  {found.state}{since}")
    if found.reason is not None:
        out.print(f"  because {show.plain(found.reason)}")
    if found.next_step is not None and found.next_step != found.reason:
        out.print(f"  next: {show.plain(found.next_step)}")
    if row is not None and row.frozen:
        out.print(
            f"  frozen: {found.made_of}s it was computed from are gone, and the view keeps what they gave"
        )
    if found.last_error is not None:
        out.print(f"  [bold red]last error[/] {show.plain(found.last_error)}")
    if row is not None and row.refreshed_at is not None:
        made_of, rows = show.count(len(found.recorded), found.made_of), show.count(row.rows, "row")
        out.print(f"  computed {iso(row.refreshed_at)} from {made_of}: {rows}, {show.size(row.bytes)}")
    _print_segments("added", "green", found.change.added)
    _print_segments("changed", "yellow", found.change.changed)
    _print_segments("removed", "red", found.change.removed)
    _print_segments("recorded", "bright_black", found.recorded)
    for event in found.events:
        why = "" if event.why is None else f": {show.plain(event.why)}"
        change = f"{event.before or State.VACANT} -> {event.after or State.VACANT}"
        when, who = f"[bright_black]{iso(event.at)}[/]", f"[bright_black]by {show.plain(event.who)}[/]"
        out.print(f"  {when} {event.operation.value} {change}{why} {who}")
    wrong.tell(found.wrong, view.buckets, {found.bucket})


def _print_segments(what: str, style: str, segments: tuple[Segment, ...]) -> None:
    out = show.console()
    for segment in segments[:_MOST_SEGMENTS]:
        times = f"[bright_black]{iso(segment.start_ms)} to {iso(segment.end_ms)}[/]"
        out.print(f"  [{style}]{what:<8}[/] {show.plain(segment.name)}  {times}")
    if len(segments) > _MOST_SEGMENTS:
        out.print(f"  and {len(segments) - _MOST_SEGMENTS} more {what}")
