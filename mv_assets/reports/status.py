"""What of each view can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from mv_assets.buckets import duration, iso
from mv_assets.reports import publication, show, wrong
from mv_assets.reports.shown import ByView, Line
from mv_assets.state import health, rules
from mv_assets.state.health import Wrong
from mv_assets.state.model import PartitionRow, Publication, Snapshot, State
from mv_assets.views.view import View

_MOST_FAILURES = 5


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """What the state says of a view."""

    view: View
    snapshot: Snapshot | None = None
    wrong: Wrong = field(default_factory=Wrong)
    # Buckets that are being computed, and since when.
    computing: Mapping[int, int] = field(default_factory=dict)
    # Whether it is to be published; and where it is, with what readers see.
    publishes: bool = False
    publications: tuple[Publication, ...] = ()
    # Tables that the project no longer names, whose files are kept for readers.
    left: tuple[Publication, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Status(ByView[ViewStatus]):
    """Views as the state has them, each with its buckets, watermark, lag and failures."""

    views: tuple[ViewStatus, ...]
    now: int

    def parts(self) -> dict[str, ViewStatus]:
        return {each.view.name: each for each in self.views}

    @property
    def is_wrong(self) -> bool:
        return any(each.wrong for each in self.views)

    def as_json(self) -> dict[str, Any]:
        return {"views": [_json(each, self.now) for each in self.views]}

    def lines(self, out: Console) -> Iterator[Line]:
        for each in self.views:
            about = f"{each.view.buckets.text} buckets of {' and '.join(each.view.declared.timed)}"
            yield f"[bold]{each.view.name}[/]  [bright_black]{about}[/]"
            if each.snapshot is None:
                yield "  never refreshed; `mv-assets plan` shows what a refresh would do\n"
            else:
                yield from _lines(out, each, each.snapshot, self.now)
        yield show.legend(out)


def _lines(out: Console, each: ViewStatus, snapshot: Snapshot, now: int) -> Iterator[Line]:
    header, view, found = snapshot.header, each.view, each.wrong
    yield show.strip(snapshot, out)
    counts, behind, most = (
        health.counts(snapshot),
        health.lag(snapshot.header, now),
        view.declared.max_staleness,
    )
    late = most is not None and behind > most
    allowed = "" if most is None else f" of {duration(most)} allowed"
    yield (
        f"  complete through {iso(header.watermark)}, "
        f"[{'bold red' if late else 'default'}]lag {duration(behind)}{allowed}[/]; "
        f"{counts[State.VALID]} VALID, {counts[State.STALE]} STALE, version {header.version}"
    )
    if snapshot.look is not None and snapshot.look.ends_first is not None:
        yield f"  the watermark waits for data of {snapshot.look.ends_first}, which ends first"
    if each.computing:
        count, since = show.count(len(each.computing), "bucket"), min(each.computing.values())
        span = header.buckets.span([min(each.computing), max(each.computing)])
        yield f"  [cyan]computing {count}[/] ({span}) for {duration(now - since)}"
    for known in each.publications:
        yield f"  {publication.line(known, header.version)}"
    for known in each.left:
        yield f"  [yellow]{show.plain(publication.left_line(known))}[/]"
    if each.publishes and not each.publications:
        yield f"  not published yet; `mv-assets publish {view.name}` does it"
    if found.fenced is None and header.definition != view.definition:
        mine, theirs = view.definition, header.definition
        yield f"  [yellow]the project declares definition {mine}, the state has {theirs}: see `plan`[/]"
    more = " such lines; `status --json` has all"
    yield from wrong.few(out, _failures(snapshot, found), _MOST_FAILURES, more)
    yield from wrong.few(out, found.of_view(), _MOST_FAILURES, more)
    yield ""


def _failures(snapshot: Snapshot, found: Wrong) -> Iterator[str]:
    """One line for neighbours that failed alike."""
    buckets, attempts, failures = snapshot.header.buckets, snapshot.attempts, found.failed
    alike = show.neighbours(
        buckets, sorted(failures), lambda each: each, lambda each: (failures[each], attempts[each].count)
    )
    for run in alike:
        times = show.count(attempts[run[0]].count, "time")
        yield f"{buckets.span(run)} failed {times}: {failures[run[0]]}"


def _json(found: ViewStatus, now: int) -> dict[str, Any]:
    view, snapshot, most = found.view, found.snapshot, found.view.declared.max_staleness
    result: dict[str, Any] = {
        "name": view.name,
        **_declared(view),
        "looked_at": None,
        "refreshed_at": None,
        "version": 0,
        "watermark": None,
        "waits_for": None,
        "lag_seconds": None,
        "max_staleness_seconds": None if most is None else most / 1000,
        "counts": {"VALID": 0, "STALE": 0},
        **wrong.as_json(found.wrong, view.buckets),
        "computing": [
            {"bucket": view.buckets.key(bucket), "since": iso(since)}
            for bucket, since in found.computing.items()
        ],
        "published": [
            publication.of(each)
            | {"behind": publication.behind(each, 0 if snapshot is None else snapshot.header.version)}
            for each in found.publications
        ],
        "no_longer_published": [publication.of(each) for each in found.left],
        "buckets": [],
    }
    if snapshot is None:
        return result
    counts, look = health.counts(snapshot), snapshot.look
    refreshed = max((row.refreshed_at for row in snapshot.rows.values() if row.refreshed_at), default=None)
    return result | {
        "looked_at": None if look is None else iso(look.at),
        "refreshed_at": None if refreshed is None else iso(refreshed),
        "version": snapshot.header.version,
        "watermark": iso(snapshot.header.watermark),
        "waits_for": None if look is None else look.ends_first,
        "lag_seconds": health.lag(snapshot.header, now) / 1000,
        "counts": {state: counts[State(state)] for state in ("VALID", "STALE")},
        "buckets": [_bucket(snapshot, bucket) for bucket in sorted(snapshot.rows)],
    }


def _declared(view: View) -> dict[str, Any]:
    """What it is made of: what computes it, and the tables that it reads."""
    declared = view.declared
    windows = [
        {"table": each.table, "from_seconds": each.before / 1000, "to_seconds": each.after / 1000}
        for each in view.windows
    ]
    return {
        "sql": declared.sql,
        "python": declared.python_name,
        "sources": [*windows, *({"table": name, "whole": True} for name in declared.joined)],
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
        "further": {}
        if row.inputs is None
        else {
            name: {"segments": found.segment_count, "crc": str(found.crc)}
            for name, found in row.inputs.further
        },
        "rows": row.rows,
        "generation": row.generation,
        "operation": None if row.operation is None else row.operation.value,
        "refreshed_at": None if row.refreshed_at is None else iso(row.refreshed_at),
        "stale_reason": health.stale_reason(row) if state is State.STALE else None,
        "attempts": 0 if record is None else record.count,
        "last_error": None if record is None else record.last_error,
    }
