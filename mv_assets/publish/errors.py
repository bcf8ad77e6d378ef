"""What keeps a view from being published."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from mv_assets.errors import MvError
from mv_assets.text import silent

_COLOURS, _CAUSE = re.compile("\x1b\\[[0-9;]*m"), "↳ "


class NotPublished(MvError):
    """A target can't be written, or can't show the view."""

    code = "not-published"

    def __init__(self, view: str, where: str, why: str) -> None:
        super().__init__(f"view {view!r} is not published to {where}: {why}")
        self.about = where


class Unaccounted(MvError):
    """The files of a view do not hold the rows that its map says they do."""

    code = "unaccounted"

    def __init__(self, view: str, held: int, recorded: int) -> None:
        super().__init__(
            f"view {view!r} is not published: its files hold {held} rows, recorded are {recorded}; "
            f"find what is damaged with `mv-assets audit {view} --all`"
        )
        self.about = view


class StillCopying(MvError):
    """There is more to copy before a view can be published than the time for it; what is done is done."""

    code = "still-copying"

    def __init__(self, view: str) -> None:
        super().__init__(f"copying rows of view {view!r} to files of their own; it goes on from there")


class Lost(Exception):
    """Somebody else committed to the target meanwhile: derive anew."""


def trouble(error: Exception, options: Mapping[str, str]) -> str:
    """What a library, a driver or a store says, without the secrets that it was given."""
    first, *others = _COLOURS.sub("", silent(str(error), options)).strip().splitlines() or [""]
    # So deltalake says by what an error was caused.
    causes = itertools.takewhile(lambda line: line.startswith(_CAUSE), map(str.strip, others))
    said = ": ".join([first, *(line.removeprefix(_CAUSE) for line in causes)]) or type(error).__name__
    return f"{said}; see that it can be reached and written, it is tried again with the next publication"
