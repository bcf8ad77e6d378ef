"""`mv-assets status`: what of each view can be trusted, from the state alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from mv_assets.buckets import duration, iso
from mv_assets.cli import show, wrong
from mv_assets.cli.session import Session, print_json
from mv_assets.clock import clock
from mv_assets.errors import UnknownView
from mv_assets.state import health, rules
from mv_assets.state.health import Wrong
from mv_assets.state.model import PartitionRow, Snapshot, State
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.views.view import View

_MOST_FAILURES = 5


@click.command(epilog="Example: mv-assets status trips_hourly")
@click.argument("views", nargs=-1, metavar="[VIEW]...")
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def status(ctx: click.Context, views: tuple[str, ...], *, as_json: bool) -> None:
    """Show each view's buckets, watermark, lag and failures."""
    session: Session = ctx.obj
    catalog = session.catalog()
    asked = [catalog.view(name) for name in views or catalog.views]
    with session.existing_state(catalog) as store:
        now = clock() if store is None else store.now()
        found = [_found(store, view, now) for view in asked]
    if as_json:
        print_json({"views": [_json(each, now) for each in found]})
    else:
        _print(found, now)
    if any(each.wrong for each in found):
        ctx.exit(1)


@dataclass(frozen=True, slots=True)
class _Found:
    """What the state says of a view."""

    view: View
    snapshot: Snapshot | None = None
    wrong: Wrong = field(default_factory=Wrong)
    # Buckets that are being computed, and since when.
    computing: Mapping[int, int] = field(default_factory=dict)


def _found(store: Store | None, view: View, now: int) -> _Found:
    if store is None:
        return _Found(view)
    try:
        # Before the map: an attempt that ends in between is then seen by what it committed.
        alive = Registry(store).alive(view.name)
        snapshot, found = view.kept_in(store, now)
    except UnknownView:
        return _Found(view)
    return _Found(view, snapshot, found, health.computing(snapshot, alive))


def _print(found: list[_Found], now: int) -> None:
    out = show.console()
    for each in found:
        about = f"{each.view.declared.bucket} buckets of {each.view.declared.base}"
        out.print(f"[bold]{each.view.name}[/]  [bright_black]{about}[/]")
        if each.snapshot is None:
            out.print("  never refreshed; `mv-assets plan` shows what a refresh would do\n")
            continue
        _print_one(each, each.snapshot, now)
    out.print(show.legend())


def _print_one(each: _Found, snapshot: Snapshot, now: int) -> None:
    out, header, view, found = show.console(), snapshot.header, each.view, each.wrong
    out.print("  ", show.strip(snapshot, out.width - 24), sep="")
    counts, behind, most = (
        health.counts(snapshot),
        health.lag(snapshot.header, now),
        view.declared.max_staleness,
    )
    late = most is not None and behind > most
    allowed = "" if most is None else f" of {duration(most)} allowed"
    out.print(
        f"  complete through {iso(header.watermark)}, "
        f"[{'bold red' if late else 'default'}]lag {duration(behind)}{allowed}[/]; "
        f"{counts[State.VALID]} VALID, {counts[State.STALE]} STALE, version {header.version}"
    )
    if each.computing:
        count, since = show.count(len(each.computing), "bucket"), min(each.computing.values())
        span = header.buckets.span([min(each.computing), max(each.computing)])
        out.print(f"  [cyan]computing {count}[/] ({span}) for {duration(now - since)}")
    if found.fenced is None and header.definition != view.definition:
        mine, theirs = view.definition, header.definition
        out.print(f"  [yellow]the project declares definition {mine}, the state has {theirs}: see `plan`[/]")
    more = " such lines; `status --json` has all"
    wrong.tell_lines(_failures(snapshot, found), _MOST_FAILURES, more)
    wrong.tell_lines(found.of_view(), _MOST_FAILURES, more)
    out.print()


def _failures(snapshot: Snapshot, found: Wrong) -> Iterator[str]:
    """One line for neighbours that failed alike."""
    buckets, attempts, failures = snapshot.header.buckets, snapshot.attempts, found.failed
    alike = show.neighbours(
        buckets, sorted(failures), lambda each: each, lambda each: (failures[each], attempts[each].count)
    )
    for run in alike:
        times = show.count(attempts[run[0]].count, "time")
        yield f"{buckets.span(run)} failed {times}: {failures[run[0]]}"


def _json(found: _Found, now: int) -> dict[str, Any]:
    view, snapshot, most = found.view, found.snapshot, found.view.declared.max_staleness
    result: dict[str, Any] = {
        "name": view.name,
        "version": 0,
        "watermark": None,
        "lag_seconds": None,
        "max_staleness_seconds": None if most is None else most / 1000,
        "counts": {"VALID": 0, "STALE": 0},
        **wrong.as_json(found.wrong, view.buckets),
        "computing": [
            {"bucket": view.buckets.key(bucket), "since": iso(since)}
            for bucket, since in found.computing.items()
        ],
        "buckets": [],
    }
    if snapshot is None:
        return result
    counts = health.counts(snapshot)
    return result | {
        "version": snapshot.header.version,
        "watermark": iso(snapshot.header.watermark),
        "lag_seconds": health.lag(snapshot.header, now) / 1000,
        "counts": {state: counts[State(state)] for state in ("VALID", "STALE")},
        "buckets": [_bucket(snapshot, bucket) for bucket in sorted(snapshot.rows)],
    }


def _bucket(snapshot: Snapshot, bucket: int) -> dict[str, Any]:
    row: PartitionRow = snapshot.rows[bucket]
    record, header = snapshot.attempts.get(bucket), snapshot.header
    state = rules.effective_state(row, header)
    return {
        "bucket": header.buckets.key(bucket),
        "state": state.value,
        "segments": None if row.inputs is None else row.inputs.base.segment_count,
        "crc": None if row.inputs is None else str(row.inputs.base.crc),
        "rows": row.rows,
        "generation": row.generation,
        "operation": None if row.operation is None else row.operation.value,
        "refreshed_at": None if row.refreshed_at is None else iso(row.refreshed_at),
        "stale_reason": health.stale_reason(row) if state is State.STALE else None,
        "attempts": 0 if record is None else record.count,
        "last_error": None if record is None else record.last_error,
    }
