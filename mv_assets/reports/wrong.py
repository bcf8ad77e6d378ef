"""What is wrong with a view, as every command says it: in lines for people, and in the same keys of JSON."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

from rich.console import Console

from mv_assets.buckets import Buckets
from mv_assets.reports import show
from mv_assets.state import health
from mv_assets.state.health import Wrong

_MOST = 20


def as_json(wrong: Wrong, buckets: Buckets) -> dict[str, Any]:
    return {
        "fenced": wrong.fenced,
        "failed": [{"bucket": buckets.key(b), "error": why} for b, why in sorted(wrong.failed.items())],
        "broken_files": list(wrong.broken),
        "troubles": [health.trouble_line(trouble) for trouble in wrong.troubles],
        "stalled": wrong.stalled,
    }


def lines(out: Console, wrong: Wrong, buckets: Buckets, but: Container[int] = ()) -> Iterator[str]:
    """All of it, but of some buckets that were told of already."""
    return few(out, [*wrong.of_buckets(buckets, but), *wrong.of_view()])


def few(out: Console, said: Iterable[str], most: int = _MOST, more: str = "") -> Iterator[str]:
    """As many as a person would read, and where the rest is to be found."""
    found = list(said)
    for line in found[:most]:
        yield f"  [bold red]{show.failed(out)}[/] {show.plain(line)}"
    if len(found) > most:
        yield f"  and {len(found) - most} more{more}"
