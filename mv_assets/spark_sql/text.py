"""How mistakes name what was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 8
_WIDTH = 40


def one_line(text: str) -> str:
    """Quoted SQL may bring newlines and escape sequences along."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def short(text: str) -> str:
    flat = one_line(text)
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 1]}…"


def listed(names: Iterable[str]) -> str:
    """A few names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more if every else "none"


def closest(name: str, names: Iterable[str]) -> str | None:
    spelled = {known.lower(): known for known in names}
    found = get_close_matches(name.lower(), spelled, n=1)
    return spelled[found[0]] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    meant = closest(name, names)
    return f"did you mean {meant}?" if meant else "use one that it has"
