"""What an answer was made from: one line, a whole explanation, or JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mv_assets.query.execute.served import FromView, Served
from mv_assets.query.match.statement import statement_of
from mv_assets.reports import show
from mv_assets.views.catalog import Catalog

_NO_BUCKET = "it has no bucket of that time that can be trusted"


def bases_of(text: str, catalog: Catalog) -> list[str]:
    """The base tables that a query reads, some of them perhaps through views."""
    asked = statement_of(text, [*catalog.tables, *catalog.views]).names
    return list(dict.fromkeys(map(catalog.root, asked)))


def in_line(served: Served, bases: Sequence[str]) -> str:
    """12 buckets from trips_daily, 1 from trips (3 files, 1.2 MB): why not all from views."""
    parts = [f"{each.buckets} from {each.view}" for each in served.views]
    if served.files_from_base:
        number = f"{served.buckets_from_base} from " if served.buckets_from_base else ""
        parts.append(f"{number}{', '.join(bases)} ({_files(served)})")
    if not parts:
        return "nothing had to be read" + _why(served)
    if served.views:
        first = served.views[0]
        parts[0] = f"{show.count(first.buckets, 'bucket')} from {first.view}"
    else:
        parts[0] = f"from {parts[0]}" if not served.buckets_from_base else parts[0]
    return ", ".join(parts) + _why(served)


def explained(served: Served, bases: Sequence[str]) -> list[str]:
    """A line for each view, why it fits or why not, and one for the base table."""
    used = {each.view: each for each in served.views}
    names = dict.fromkeys([*used, *served.considered])
    width = max(map(len, [*names, *bases]), default=0)
    lines = []
    for name in names:
        reason = served.considered.get(name)
        if name in used:
            said = f"[green]used[/]      {_stored(used[name])}"
        else:
            said = f"[yellow]not used[/]  {show.plain(reason or _NO_BUCKET)}"
        lines.append(f"{name:<{width}}  {said}")
    if served.files_from_base:
        number = f"{show.count(served.buckets_from_base, 'bucket')}, " if served.buckets_from_base else ""
        for base in bases:
            why = show.plain(_why(served)) if base == bases[0] else ""
            amount = f"{number}{_files(served)}" if base == bases[0] else "with it"
            lines.append(f"{base:<{width}}  [green]read[/]      {amount}{why}")
    elif not used:
        lines.append("nothing has to be read" + show.plain(_why(served)))
    return lines


def in_json(served: Served, *, considered: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "view": served.view,
        "buckets_from_view": served.buckets_from_view,
        "buckets_from_base": served.buckets_from_base,
        "reason": served.reason,
        "parts": [
            {"view": each.view, "buckets": each.buckets, "rows": each.rows, "bytes": each.bytes}
            for each in served.views
        ],
        "files_from_base": served.files_from_base,
        "bytes_from_base": served.bytes_from_base,
    }
    return {**found, "considered": dict(served.considered)} if considered else found


def _why(served: Served) -> str:
    return f": {served.reason}" if served.reason else ""


def _files(served: Served) -> str:
    return f"{show.count(served.files_from_base, 'file')}, {show.size(served.bytes_from_base)}"


def _stored(part: FromView) -> str:
    return f"{show.count(part.buckets, 'bucket')}, {show.count(part.rows, 'row')}, {show.size(part.bytes)}"
