"""What each view can answer, so that queries can be aimed at it; a query may still ask for more."""

from __future__ import annotations

from dataclasses import dataclass

from mv_assets_tests.proof.fuzz.sql.dialects import Both, same

_MEASURES = (
    "n", "n", "fare", "fares", "mean", "cheap", "dear", "xs", "xn", "xmean", "spread", "lo", "hi", "fsum",
    "fn", "fmean", "flo", "fhi", "always", "ever", "last", "since",
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """The grain of a view's times, its keys and aggregates by the names of atoms, and what its rows meet."""

    name: str
    grain: str
    keys: tuple[str, ...]
    aggregates: tuple[str, ...]
    conditions: tuple[Both, ...] = ()
    joined: bool = False
    # Of so many queries the join is an inner one.
    inner: float = 0.15
    # Columns of single rows.
    rows: tuple[str, ...] = ()
    weight: int = 4


PROFILES = (
    Profile("hourly", "hour", ("zone", "kind"), (*_MEASURES, "far", "flagged", "pairs"), weight=7),
    Profile(
        "daily", "day", ("zone",),
        ("n", "fare", "fares", "mean", "lo", "hi", "xs", "ever", "far", "last", "greatest")
    ),
    Profile("monthly", "month", (), ("n", "fare", "fares", "mean", "hi"), (same("$zone IS NOT NULL"),),
            weight=2),
    Profile(
        "far", "day", ("kind",), ("n", "fare", "fares", "mean", "fsum", "fn", "fmean", "hi"),
        (same("$zone > 1"), same("$kind IS NOT NULL")),
    ),
    Profile(
        "single", "none", ("zone", "flag", "x", "fare"),
        ("n", "fare", "mean", "xs", "spread", "hi", "last", "ever", "other"),
        rows=("at", "zone", "fare", "flag", "x"),
    ),
    Profile(
        "dear", "none", ("kind", "f", "fare"),
        ("n", "fare", "fmean", "fhi", "greatest"), (same("$fare > 10"),),
        rows=("at", "kind", "f", "fare"),
    ),
    Profile("weekly", "week", ("kind", "flag"), _MEASURES),
    Profile("days", "day", ("d",), ("n", "xs", "flo")),
    Profile("minutes", "minute", ("flag",), ("n", "cheap", "fare", "fares", "mean", "newest")),
    Profile("loud", "hour", ("loud", "third"), ("n", "fare", "fares", "mean", "zone")),
    Profile(
        "boroughs", "hour", ("borough", "place", "flag"), ("n", "fare", "fares", "mean", "rank"),
        joined=True, inner=0.5, weight=5,
    ),
    Profile(
        "places", "hour", ("rank", "place", "zone"), ("n", "fare", "fares", "mean", "hi", "rank"),
        joined=True, inner=0.6, weight=6,
    ),
    Profile("kept", "day", ("flag", "d"), ("n", "fsum", "fn", "fmean", "always"),
            (same("NOT ($zone > 3)"),)),
    Profile(
        "any", "none", ("zone", "kind", "flag", "d", "x", "f", "fare"),
        (*_MEASURES, "other", "far", "flagged"),
        rows=("at", "zone", "kind", "fare", "x", "f", "flag", "d"), weight=3,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """A view asked by its own name: its time column, other keys, numbers, and what else it has."""

    time: str
    keys: tuple[str, ...]
    numbers: tuple[str, ...]
    others: tuple[str, ...] = ()
    dates: bool = False


NAMED = {
    "hourly": Columns(
        "hour", ("zone", "kind"), ("n", "fare", "xs", "lo", "fsum"), ("always", "last", "cheap")
    ),
    "daily": Columns("day", ("zone",), ("n", "fare", "hi", "far", "hours"), ("ever", "greatest", "last")),
    "monthly": Columns("month", (), ("n", "fare", "hi"), dates=True),
    "busy": Columns("day", ("kind",), ("n", "dear", "fhi")),
    "far": Columns("day", ("kind",), ("n", "fare", "fsum", "hi"), dates=True),
    "single": Columns("at", ("zone", "mark"), ("fare", "x")),
    "dear": Columns("at", ("kind",), ("f", "price")),
    "weekly": Columns("week", ("kind", "flag"), ("n", "fare", "hi"), ("ever", "since")),
    "days": Columns("day", ("d",), ("n", "xs", "flo"), ("week",), dates=True),
    "minutes": Columns("minute", ("flag",), ("n", "fare", "cheap"), ("newest",)),
    "loud": Columns("hour", ("loud", "third"), ("n", "fare", "zone")),
    "boroughs": Columns("hour", ("borough", "place", "flag"), ("n", "fare", "rank")),
    "places": Columns("hour", ("rank", "place", "zone"), ("n", "fare", "hi")),
}
