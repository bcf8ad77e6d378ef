"""Random queries in two dialects, most of them such that views can answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date

from mv_assets_tests.proof.fuzz.sql import atoms
from mv_assets_tests.proof.fuzz.sql.dialects import Both, Naming, both, naming, put, same
from mv_assets_tests.proof.fuzz.sql.profiles import NAMED, PROFILES, Profile
from mv_assets_tests.proof.fuzz.sql.ranges import ranges
from mv_assets_tests.proof.fuzz.sql.select import Query, Select


def query(pick: random.Random, first: date, *, named: Sequence[str]) -> Query:
    """One query; `named` are views that may be asked by their names."""
    if named and pick.random() < 0.13:
        return _by_name(pick, first, pick.choice(named))
    made = _plain(pick, first)
    # Of what is left open, or sorted, the outermost query says nothing.
    if made.some is None and not made.ordered and pick.random() < 0.2:
        return _around(pick, made, _plain(pick, first))
    return made


_AROUND = (
    "SELECT * FROM ({0}) AS w",
    "WITH w AS ({0}) SELECT * FROM w",
    "SELECT count(*) FROM ({0}) AS w",
    "{0} UNION ALL {0}",
    "WITH events AS ({0}) SELECT count(*) FROM events",
    "SELECT w.* FROM ({0}) AS w WHERE EXISTS ({1})",
    "WITH a AS ({0}), b AS ({1}) SELECT a.*, n FROM a, (SELECT count(*) AS n FROM b)",
    "SELECT count(*), (SELECT count(*) FROM ({1}) AS i) FROM ({0}) AS w",
    "SELECT w.*, count(*) OVER () FROM ({0}) AS w",
    "SELECT w.* FROM ({0}) AS w LEFT JOIN (SELECT count(*) AS n FROM ({1}) AS i) AS c ON n > 2",
)


def _around(pick: random.Random, one: Query, other: Query) -> Query:
    """A query in which others are."""
    form = pick.choice(_AROUND)
    if "{1}" in form and other.some is not None:
        form = _AROUND[0]
    by_spark = one.by_spark or ("{1}" in form and other.by_spark)
    return Query(form.format(one.spark, other.spark), form.format(one.duck, other.duck), by_spark=by_spark)


def _plain(pick: random.Random, first: date) -> Query:
    """One SELECT on the base table."""
    profile = pick.choices(PROFILES, [each.weight for each in PROFILES])[0]
    made = _select(pick, profile)
    made.where += _conditions(pick, profile, first)
    pick.shuffle(made.where)
    if profile.rows and pick.random() < 0.5:
        _single_rows(made, profile)
    else:
        _aggregating(made, profile)
    return made.query()


def _select(pick: random.Random, profile: Profile) -> Select:
    called = naming(pick, "events", joined=profile.joined)
    table = called.table + (pick.choice((" ", " AS ")) + called.alias if called.alias else "")
    if not profile.joined:
        return Select(pick, called, _halved(pick, called, Both(table, "events e")))
    zones = "zones z" if called.joined == "z" else "zones"
    left, right = f"{called.qualifier}.zone", f"{called.joined}.zone"
    same_zone = pick.choice((f"{left} = {right}", f"{right} = {left}"))
    side = "JOIN" if pick.random() < profile.inner else "LEFT JOIN"
    duck = f"events e {side} zones z ON e.zone = z.zone"
    if side == "JOIN" and pick.random() < 0.3:
        order = pick.choice((f"{table}, {zones}", f"{zones}, {table}", f"{zones} CROSS JOIN {table}"))
        return Select(pick, called, Both(order, duck), where=[both(same_zone, "true")])
    words, on = pick.choice((side, side.lower())), pick.choice((f"ON {same_zone}", "USING (zone)"))
    order = (
        f"{zones} {words} {table}" if side == "JOIN" and pick.random() < 0.3 else f"{table} {words} {zones}"
    )
    return Select(pick, called, Both(f"{order} {on}", duck))


def _halved(pick: random.Random, called: Naming, source: Both) -> Both:
    """Seldom only the rows that have a zone, or those that have none."""
    if pick.random() > 0.08:
        return source
    kind = pick.choice(("SEMI", "ANTI"))
    on = f"ON {called.qualifier}.zone = zones.zone"
    return Both(
        f"{source.spark} LEFT {kind} JOIN zones {on}",
        f"{source.duck} {kind} JOIN zones z ON e.zone = z.zone",
    )


def _conditions(pick: random.Random, profile: Profile, first: date) -> list[Both]:
    found = [_at_least(pick, each) for each in profile.conditions] if pick.random() < 0.93 else []
    found += [_condition(pick, profile) for _ in range(pick.choice((0, 0, 1, 1, 2)))]
    return [*found, *ranges(pick, first)]


def _at_least(pick: random.Random, condition: Both) -> Both:
    """A condition, or one that says as much, more, or nearly as much."""
    return pick.choice([condition, condition, *map(same, atoms.NEARLY.get(condition.spark, ()))])


def _condition(pick: random.Random, profile: Profile) -> Both:
    names = [name for name in profile.keys if name in atoms.CONDITIONS]
    if not names or pick.random() < 0.05:
        names = ["zone", "kind", "x", "fare"]
    one, other = (pick.choice(atoms.CONDITIONS[pick.choice(names)]) for _ in range(2))
    return pick.choice((one, one, one, put("({0} OR {1})", one, other), put("NOT ({0} AND {1})", one, other)))


def _key(pick: random.Random, profile: Profile) -> Both:
    if pick.random() < 0.5 or not profile.keys:
        times = atoms.times(profile.grain)
        if pick.random() < 0.05:
            times = [each for some in atoms.TIMES.values() for each in some]
        return pick.choice(times)
    return pick.choice(atoms.COLUMNS[pick.choice(profile.keys)])


def _aggregate(pick: random.Random, profile: Profile) -> Both:
    chance = pick.random()
    if chance < 0.12 and profile.grain != "none":
        found = pick.choice(atoms.of_key(_key(pick, profile)))
    else:
        found = pick.choice(atoms.AGGREGATES[pick.choice(profile.aggregates)])
    simple = found.spark.startswith(("count(", "sum(", "min(", "max(")) and found.spark.endswith(")")
    if simple and "DISTINCT" not in found.spark and "FILTER" not in found.spark and pick.random() < 0.12:
        return atoms.conditional(found, _condition(pick, profile))
    return found


def _aggregating(made: Select, profile: Profile) -> None:
    pick = made.pick
    made.keys = list(dict.fromkeys(_key(pick, profile) for _ in range(pick.choice((0, 1, 1, 2, 2, 3)))))
    values = [_aggregate(pick, profile) for _ in range(pick.choice((0, 1, 2, 2, 3, 4)))]
    if values and pick.random() < 0.1:
        values.append(_combined(pick, profile))
        made.by_spark |= "/" in values[-1].spark
    if not made.keys and not values:
        values = [same("count(*)")]
    if pick.random() < 0.04:
        values = [pick.choice((same("1"), same("'one'")))]
        made.hidden, made.keys = made.keys, []
        made.having = [same("(bool_or($flag))")] if "ever" in profile.aggregates else [same("(count(*) > 4)")]
    if made.keys and pick.random() < 0.1:
        made.hidden.append(made.keys.pop())
    made.items = [*made.keys, *values] or [same("count(*)")]
    made.distinct = pick.random() < 0.05
    if made.keys and not made.hidden and not values and pick.random() < 0.5:
        made.grouped, made.distinct = False, True
    pick.shuffle(made.items)
    if made.grouped and pick.random() < 0.15:
        value = pick.choice(atoms.AGGREGATES[pick.choice(profile.aggregates)])
        if {"always", "ever"} & {*profile.aggregates} and pick.random() < 0.3:
            value = pick.choice((same("bool_or($flag)"), same("bool_or($flag) IS NULL")))
            made.having.append(put("({0})", value))
        way = pick.choice(
            ("count(*) > 2", "count(*) BETWEEN 1 AND 5", "({0}) IS NOT NULL", "({0}) IS NULL OR count(*) > 1")
        )
        made.having.append(put(f"({way})", value))
        if made.keys and pick.random() < 0.4:
            made.having.append(put("({0}) IS NOT NULL", pick.choice(made.keys)))


def _combined(pick: random.Random, profile: Profile) -> Both:
    plain = ("n", "fares", "xn", "xs", "hi", "fn")
    one, other = (pick.choice([a for a in plain if a in profile.aggregates] or ["n"]) for _ in range(2))
    left, right = atoms.AGGREGATES[one][0], atoms.AGGREGATES[other][0]
    ways = (
        "{0} + {1}",
        "coalesce({0}, 0) * 2 - {1}",
        "CASE WHEN {0} > 3 THEN {1} ELSE 0 END",
        "{0} / nullif({1}, 0)",
    )
    return put(pick.choice(ways), left, right)


def _single_rows(made: Select, profile: Profile) -> None:
    pick = made.pick
    made.grouped = False
    names = [each for each in profile.rows if each != "at"]
    chosen = [both("$at")] if pick.random() < 0.5 else []
    chosen += [pick.choice(atoms.COLUMNS[name]) for name in pick.sample(names, pick.randint(1, len(names)))]
    if pick.random() < 0.3:
        chosen.append(pick.choice(atoms.times("none")))
    pick.shuffle(chosen)
    made.items = chosen
    made.distinct = pick.random() < 0.15


def _by_name(pick: random.Random, first: date, name: str) -> Query:
    columns = NAMED[name]
    called = naming(pick, name, joined=False)
    table = called.table + (f" {called.alias}" if called.alias else "")
    made = Select(pick, called, Both(table, f"{name} e"))
    made.where = ranges(pick, first, columns.time)
    # Text next to a date is read as a date, next to a timestamp as a timestamp.
    made.by_spark = columns.dates and bool(made.where)
    keys = [same(f"${each}") for each in (columns.time, *columns.keys)]
    values = [same(f"${each}") for each in (*columns.numbers, *columns.others)]
    if pick.random() < 0.4:
        made.grouped = False
        made.items = pick.sample([*keys, *values], pick.randint(1, len(keys) + len(values)))
        return made.query()
    made.keys = pick.sample(keys, pick.randint(0, len(keys)))
    number = same(f"${pick.choice(columns.numbers)}")
    functions = ("sum({0})", "max({0})", "min({0})", "count({0})", "count(DISTINCT {0})", "count(*)")
    made.items = [*made.keys, *(put(pick.choice(functions), number) for _ in range(pick.randint(1, 3)))]
    return made.query()
