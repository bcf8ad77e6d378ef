"""Grains of time, and what an expression makes of the base table's time column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from sqlglot import exp

from mv_assets.buckets import DAY, Buckets
from mv_assets.local_days import LocalDays
from mv_assets.refusal import Refusal

# Finest first. A second lies in one bucket whatever the width, so it needs no boundaries.
BOUNDARIES: Mapping[str, Buckets | None] = {
    "second": None,
    "minute": Buckets.of("1m"),
    "hour": Buckets.of("1h"),
    "day": Buckets.of("1d"),
    "week": Buckets.of("1w"),
    "month": Buckets.of("1mo"),
}
GRAINS = tuple(BOUNDARIES)
_YEARS = 70 * 366 * DAY
_ORDER = {grain: place for place, grain in enumerate((*GRAINS, "quarter", "year"))}
UNITS = {name: name for name in _ORDER} | {
    "dd": "day", "mm": "month", "mon": "month", "yy": "year", "yyyy": "year",
}  # fmt: skip
# trunc() answers NULL for anything finer.
DATE_GRAINS = ("week", "month", "quarter", "year")
TO_TIMESTAMP = {
    "s": "timestamp_seconds",
    "ms": "timestamp_millis",
    "us": "timestamp_micros",
    "ns": "timestamp_nanos",
}
_TIMESTAMPS = (
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
)


def fits(grain: str, buckets: Buckets) -> bool:
    """Whether every such grain lies wholly inside one bucket: then each bucket starts with a grain.

    A view truncates by the clock that its buckets go by, so that the zone does not matter.
    """
    if grain not in BOUNDARIES:
        return False
    boundaries, plain = BOUNDARIES[grain], Buckets.of(buckets.width)
    # Every width that does not fit shows it within a handful of buckets from 1970.
    return boundaries is None or all(map(boundaries.is_start, islice(plain.between(0, 2**42), 1, 40)))


@lru_cache(maxsize=256)
def holds_whole(buckets: Buckets, grain: str, zone: str | None) -> bool:
    """Whether every grain of a table, by the clocks of a zone, lies wholly inside one bucket."""
    if zone == buckets.zone:
        return fits(grain, buckets)
    # After these years clocks change as in the last of them.
    return all(begins(grain, zone, start) for start in buckets.between(0, _YEARS))


def begins(grain: str, zone: str | None, time: int) -> bool:
    """Whether such a grain begins at a time, by the clocks of a zone."""
    boundaries = BOUNDARIES.get(grain)
    if boundaries is None:
        # No clock is off by a part of a second.
        return grain == "second" and time % 1_000 == 0
    if zone is None:
        return boundaries.is_start(time)
    if grain in ("minute", "hour"):
        return boundaries.is_start(time + LocalDays(zone).offset(time))
    return boundaries.in_zone(zone).is_start(time)


def fitting(buckets: Buckets) -> str:
    return ", ".join(grain for grain in GRAINS if fits(grain, buckets))


@dataclass(frozen=True, slots=True)
class Time:
    """The base time column after some steps.

    `epoch` while it is an integer, None for one of unknown unit; `nanos` while it has the type that
    timestamp_nanos gives, which PySpark can't read.
    """

    epoch: bool | None
    nanos: bool = False
    steps: tuple[str, ...] = ()
    grain: str | None = None

    def truncated(self, grain: str) -> Time:
        return replace(self, steps=(*self.steps, grain), grain=coarser(self.grain, grain))


def nested(fine: str, coarse: str) -> bool:
    """Whether every one of the coarse grain consists of whole ones of the fine grain."""
    by_month = _ORDER[coarse] >= _ORDER["month"]
    return _ORDER[fine] <= _ORDER[coarse] and not (fine == "week" and by_month)


def coarser(one: str | None, other: str | None) -> str | None:
    """The grain of values truncated to both."""
    return max((grain for grain in (one, other) if grain is not None), key=_ORDER.__getitem__, default=None)


def common(times: Sequence[Time | Refusal]) -> Time | Refusal:
    """What values are of which each is one of those."""
    first, *others = times
    for each in others:
        if isinstance(first, Refusal) or isinstance(each, Refusal):
            break
        if (each.epoch, each.nanos) != (first.epoch, first.nanos):
            return Refusal("its parts count time in different ways")
        grains = (first.grain, each.grain)
        both = [grain for grain in grains if grain and all(one and nested(grain, one) for one in grains)]
        steps = tuple(dict.fromkeys((*first.steps, *each.steps)))
        first = replace(first, steps=steps, grain=next(iter(both), None))
    return next((each for each in times if isinstance(each, Refusal)), first)


# Where a column leads: the base time column itself, the expression of an alias, or somewhere else.
Lookup = Callable[[exp.Column], Time | exp.Expr | Refusal | None]


def follow(expression: exp.Expr, lookup: Lookup, unit: str | None) -> Time | Refusal:
    """What `expression` makes of the base time column, or the complaint that says why that is not known."""
    if isinstance(expression, (exp.Paren, exp.Alias)):
        return follow(expression.this, lookup, unit)
    if isinstance(expression, exp.Column):
        target = lookup(expression)
        if isinstance(target, exp.Expr):
            return follow(target, lookup, unit)
        return target or Refusal(f"`{expression.sql('spark')}` is another column")
    step = _STEPS.get(type(expression))
    if isinstance(expression, exp.Anonymous) and str(expression.name).lower() in TO_TIMESTAMP.values():
        step = _from_epoch
    inner = expression.expressions[0] if expression.expressions else expression.args.get("this")
    if step is None or not isinstance(inner, exp.Expr):
        return Refusal("it is computed in a way that can't be followed")
    time = follow(inner, lookup, unit)
    return time if isinstance(time, Refusal) else step(expression, time, unit)


def _cast(cast: exp.Expr, time: Time, unit: str | None) -> Time | Refusal:
    to = cast.args["to"].this
    if to in _TIMESTAMPS and (not time.epoch or unit == "s"):
        return replace(time, epoch=False, nanos=False)
    if (to in _TIMESTAMPS or to is exp.DType.DATE) and time.epoch:
        return _epoch_complaint(unit)
    if to is exp.DType.DATE:
        return replace(time, nanos=False).truncated("day")
    return Refusal(f"a cast to {cast.args['to'].sql('spark')} is no time")


def _to_date(call: exp.Expr, time: Time, unit: str | None) -> Time | Refusal:
    if time.epoch:
        return _epoch_complaint(unit)
    if call.args.get("format"):
        return Refusal("to_date with a format reads text")
    return replace(time, nanos=False).truncated("day")


def _truncation(call: exp.Expr, time: Time, unit: str | None) -> Time | Refusal:
    if time.epoch:
        return _epoch_complaint(unit)
    asked = call.args["unit"].name.lower() if isinstance(call.args.get("unit"), exp.Expr) else ""
    grain = UNITS.get(asked)
    if grain is None or (isinstance(call, exp.DateTrunc) and grain not in DATE_GRAINS):
        return Refusal(
            f"it truncates to {asked or 'an unknown unit'!r}, which is none of {', '.join(GRAINS)}"
        )
    # Unlike date_trunc, trunc gives a date.
    return replace(time, nanos=time.nanos and not isinstance(call, exp.DateTrunc)).truncated(grain)


def _from_epoch(call: exp.Expr, time: Time, unit: str | None) -> Time | Refusal:
    name = str(call.name).lower()
    if time.epoch is False:
        asked = next(key for key, function in TO_TIMESTAMP.items() if function == name)
        return Refusal(
            f"{name} reads an integer; set `time_unit: {asked}` on the table if its time column is one"
        )
    if unit is not None and TO_TIMESTAMP.get(unit) != name:
        return _epoch_complaint(unit)
    return replace(time, epoch=False, nanos=name == TO_TIMESTAMP["ns"])


def _epoch_complaint(unit: str | None) -> Refusal:
    function = TO_TIMESTAMP.get(unit or "", "timestamp_seconds")
    return Refusal(f"the base time column counts {unit or 'time'} since 1970 and wants {function}")


_STEPS: Mapping[type[exp.Expr], Callable[[exp.Expr, Time, str | None], Time | Refusal]] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.TsOrDsToDate: _to_date,
    exp.TimestampTrunc: _truncation,
    exp.DateTrunc: _truncation,
}
