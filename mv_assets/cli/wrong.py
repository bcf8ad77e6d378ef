"""What is wrong with a view, as every command says it: in lines for people, and in the same keys of JSON."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from mv_assets.buckets import Buckets
from mv_assets.cli import show
from mv_assets.state import health
from mv_assets.state.health import Wrong

_MOST = 20


def as_json(wrong: Wrong, buckets: Buckets) -> dict[str, Any]:
    return {
        "fenced": wrong.fenced,
        "failed": [{"bucket": buckets.key(b), "error": why} for b, why in sorted(wrong.failed.items())],
        "broken_files": list(wrong.broken),
        "troubles": [health.told(trouble) for trouble in wrong.troubles],
        "stalled": wrong.stalled,
    }


def tell(wrong: Wrong, buckets: Buckets, but: Container[int] = ()) -> None:
    """All of it, but of some buckets that were told of already."""
    tell_lines([*wrong.of_buckets(buckets, but), *wrong.of_view()])


def tell_lines(said: Iterable[str], most: int = _MOST, more: str = "") -> None:
    """As many as a person would read, and where the rest is to be found."""
    found, out = list(said), show.console()
    for line in found[:most]:
        out.print(f"  [bold red]{show.failed()}[/] {show.plain(line)}")
    if len(found) > most:
        out.print(f"  and {len(found) - most} more{more}")
