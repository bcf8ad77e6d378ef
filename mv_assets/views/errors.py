"""What the views of a project refuse."""

from __future__ import annotations

from collections.abc import Sequence

from mv_assets.errors import MvError, Refused


class TooManyBuckets(MvError):
    """A view that nobody could look at: every look goes through all of its buckets."""

    code = "too-many-buckets"

    def __init__(self, view: str, width: str, start: str, count: int, most: int) -> None:
        super().__init__(
            f"view {view!r} has {count:,} buckets of {width} from its start at {start} until now, more than "
            f"the {most:,} that can be kept track of; give it wider buckets or a later start"
        )


class ExtendedTooFar(Refused):
    """An earlier start for a view than anybody would mean: its buckets would be STALE for ever."""

    code = "extended-too-far"

    def __init__(self, view: str, width: str, first: str, start: str, count: int, most: int) -> None:
        super().__init__(
            f"to start at {first} instead of {start}, view {view!r} would get {count:,} more buckets of "
            f"{width}, and at most {most:,} are added at once; is the year right? if so, declare "
            f"`start: {first}`"
        )


class NotDeclared(Refused):
    """The project has no view of that name."""

    code = "not-declared"

    def __init__(self, name: str, names: Sequence[str]) -> None:
        there = f"it has {', '.join(names)}" if names else "it has none"
        super().__init__(f"the project has no view {name!r}; {there}")


class HasDependants(Refused):
    """A view was to be dropped that others are based on."""

    code = "has-dependants"

    def __init__(self, view: str, dependants: Sequence[str]) -> None:
        are, them = ("is", "it") if len(dependants) == 1 else ("are", "them")
        super().__init__(
            f"view {view!r} was not dropped: {', '.join(dependants)} {are} based on it and would wait for "
            f"it; drop {them} too, with `--with-dependants` (in Dagster `with_dependants: true`)"
        )
