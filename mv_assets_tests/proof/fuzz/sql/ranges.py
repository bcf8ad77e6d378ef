"""Conditions on the time: aligned and ragged, in every way of writing them."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

from mv_assets_tests.proof.fuzz.sql.dialects import Both, both, put
from mv_assets_tests.proof.fuzz.world import DAYS


def ranges(pick: random.Random, first: date, column: str = "at") -> list[Both]:
    """The conditions of one query."""
    made = _Ranges(pick, first, column)
    kind = pick.random()
    if kind < 0.3:
        return []
    if kind < 0.55:
        return (
            [made.side(pick.choice((">=", ">", ">")))]
            if pick.random() < 0.5
            else [made.side(pick.choice(("<", "<=")))]
        )
    if kind < 0.8:
        return made.two()
    return [made.special()]


class _Ranges:
    def __init__(self, pick: random.Random, first: date, column: str) -> None:
        self._pick = pick
        self._first = datetime(first.year, first.month, first.day)  # noqa: DTZ001
        self._column = column

    def moment(self) -> datetime:
        pick = self._pick
        day = self._first + timedelta(days=pick.randint(-1, DAYS + 1))
        match pick.choice(
            ("day", "day", "day", "hour", "hour", "minute", "ragged", "micro", "month", "week", "far")
        ):
            case "day":
                return day
            case "hour":
                return day + timedelta(hours=pick.choice((1, 5, 6, 12, 18, 23)))
            case "minute":
                return day + timedelta(minutes=pick.choice((1, 30, 90, 361, 1439)))
            case "ragged":
                return day + timedelta(microseconds=pick.randrange(86_400_000_000))
            case "micro":
                return day + timedelta(
                    hours=pick.randrange(24), microseconds=pick.choice((-1, 1, 999, 1000, -1000))
                )
            case "month":
                return day.replace(day=1)
            case "week":
                return day - timedelta(days=day.weekday())
        return self._first + timedelta(days=pick.choice((-4000, 4000)))

    def literal(self, at: datetime) -> Both:
        duck = f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S.%f}'"
        midnight = at.time() == datetime.min.time()
        whole = f"{at:%Y-%m-%d %H:%M:%S}" + (f".{at:%f}".rstrip("0") if at.microsecond else "")
        ways = [
            f"'{whole}'",
            f"timestamp'{whole}'",
            f"cast('{whole}' AS timestamp)",
            f"'{whole.replace(' ', 'T')}Z'",
        ]
        ways.append(f"timestamp '{whole}+00:00'")
        shifted = at + timedelta(hours=2)
        ways.append(f"'{shifted:%Y-%m-%d %H:%M:%S.%f}+02:00'")
        ways.append(f"to_timestamp('{whole}')")
        if midnight:
            ways += [
                f"'{at:%Y-%m-%d}'",
                f"date'{at:%Y-%m-%d}'",
                f"DATE '{at:%Y-%m-%d}'",
                f"to_date('{at:%Y-%m-%d}')",
            ]
        return Both(self._pick.choice((*ways[:3], *ways)), duck)

    def side(self, operator: str, at: datetime | None = None) -> Both:
        """One bound."""
        pick, at = self._pick, at or self.moment()
        column = both(f"${self._column}")
        if pick.random() < 0.25:
            return self._truncated(operator, at)
        if pick.random() < 0.15:
            flipped = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}[operator]
            return put(f"{{0}} {flipped} {{1}}", self.literal(at), column)
        return put(f"{{0}} {operator} {{1}}", column, self.literal(at))

    def _truncated(self, operator: str, at: datetime) -> Both:
        pick, name = self._pick, f"${self._column}"
        day = f"{at:%Y-%m-%d}"
        made = pick.choice(("date", "date", "hour", "month", "day", "week"))
        if made == "date":
            left = pick.choice((f"cast({name} AS date)", f"to_date({name})", f"date({name})"))
            right = pick.choice((f"'{day}'", f"date'{day}'"))
            return Both(f"{left} {operator} {right}", f"cast({name} AS date) {operator} DATE '{day}'")
        cut = {"month": at.replace(day=1), "week": at - timedelta(days=at.weekday())}.get(made, at)
        if pick.random() < 0.7:
            cut = cut.replace(minute=0, second=0, microsecond=0)
            cut = cut if made == "hour" else cut.replace(hour=0)
        left = f"date_trunc('{made}', {name})"
        return Both(
            f"{left} {operator} {self.literal(cut).spark}", f"{left} {operator} {self.literal(cut).duck}"
        )

    def two(self) -> list[Both]:
        """Two bounds, seldom in the wrong order."""
        pick = self._pick
        low, high = self.moment(), self.moment()
        if low > high and pick.random() < 0.9:
            low, high = high, low
        if pick.random() < 0.3:
            low_text, high_text = self.literal(low), self.literal(high)
            return [put("{0} BETWEEN {1} AND {2}", both(f"${self._column}"), low_text, high_text)]
        return [
            self.side(pick.choice((">=", ">=", ">")), low),
            self.side(pick.choice(("<", "<", "<=")), high),
        ]

    def special(self) -> Both:
        """What is no plain bound."""
        pick, name, at = self._pick, f"${self._column}", self.moment()
        day = f"{at:%Y-%m-%d}"
        one, other = self.literal(at), self.literal(self.moment())
        column = both(name)
        return pick.choice(
            (
                put("{0} = {1}", column, one),
                both(f"to_date({name}) = '{day}'", f"cast({name} AS date) = DATE '{day}'"),
                both(f"cast({name} AS date) = date'{day}'", f"cast({name} AS date) = DATE '{day}'"),
                both(
                    f"trunc({name}, 'MM') = date'{day[:8]}01'",
                    f"date_trunc('month', {name}) = DATE '{day[:8]}01'",
                ),
                both(f"date_trunc('hour', {name}) = '{day} 06:00:00'"),
                both(f"date_trunc('hour', {name}) = '{day} 06:30:00'"),
                both(f"cast({name} AS date) IN (date'{day}', date'{day[:8]}02')"),
                put("({0} < {1} OR {0} >= {2})", column, one, other),
                put("NOT ({0} < {1})", column, one),
                put("({0} IS NULL OR {0} >= {1})", column, one),
                put("{0} <> {1}", column, one),
                both(f"{name} IS NULL"),
                both(f"{name} IS NOT NULL"),
                both(f"year({name}) = {at.year} AND month({name}) = {at.month}"),
                both(f"hour({name}) BETWEEN 6 AND 12"),
                both(f"dayofweek({name}) IN (1, 7)", f"dayofweek({name}) + 1 IN (1, 7)"),
                both(f"hour({name}) IS NULL"),
                both(f"day({name}) % 2 = 0"),
                put("(({0} >= {1}))", column, one),
                put("({0} >= {1} AND true)", column, one),
                put("{0} >= {1} AND {0} >= {2}", column, one, other),
            )
        )
