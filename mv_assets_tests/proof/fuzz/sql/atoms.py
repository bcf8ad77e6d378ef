"""What queries are made of: keys, conditions and aggregates over the columns of `events`."""

from __future__ import annotations

from mv_assets_tests.proof.fuzz.sql.dialects import Both, both, put, same

_NULL_OR = "CASE WHEN $at IS NOT NULL THEN {} END"
# Functions of time by the coarsest grain that still tells them.
TIMES: dict[str, tuple[Both, ...]] = {
    "none": (same("$at"),),
    "second": (same("date_trunc('second', $at)"), same("second($at)")),
    "minute": (
        same("date_trunc('minute', $at)"),
        same("minute($at)"),
        same("date_trunc('MINUTE', date_trunc('second', $at))"),
    ),
    "hour": (
        same("date_trunc('hour', $at)"),
        same("date_trunc('HOUR', $at)"),
        same("hour($at)"),
        same("date_trunc('hour', date_trunc('minute', $at))"),
        same("hour($at) % 6"),
        same("date_trunc('hour', ($at))"),
    ),
    "day": (
        same("date_trunc('day', $at)"),
        both("date_trunc('DD', $at)", "date_trunc('day', $at)"),
        same("cast($at AS date)"),
        both("to_date($at)", "cast($at AS date)"),
        both("date($at)", "cast($at AS date)"),
        both("$at::date"),
        same("cast(date_trunc('hour', $at) AS date)"),
        same("date_trunc('day', date_trunc('hour', $at))"),
        both("dayofweek($at)", "dayofweek($at) + 1"),
        both("weekday($at)", "isodow($at) - 1"),
        same("dayofyear($at)"),
        same("day($at)"),
        both("dayofmonth($at)", "day($at)"),
        both("day(to_date($at))", "day($at)"),
        both("hour(to_date($at))", _NULL_OR.format("0")),
        both("minute(to_date($at))", _NULL_OR.format("0")),
        both("hour(cast($at AS date))", _NULL_OR.format("0")),
        both("cast(cast($at AS date) AS timestamp)", "date_trunc('day', $at)"),
        both("int(day($at))", "day($at)"),
        both("day($at) div 7", "day($at) // 7"),
        both(
            "concat(cast(year($at) AS string), '/', cast(month($at) AS string))",
            _NULL_OR.format("concat(year($at), '/', month($at))"),
        ),
    ),
    "week": (
        same("date_trunc('week', $at)"),
        both("trunc($at, 'WEEK')", "cast(date_trunc('week', $at) AS date)"),
        both("weekofyear($at)", "weekofyear($at)"),
        same("date_trunc('week', cast($at AS date))"),
        same("date_trunc('week', date_trunc('day', $at))"),
    ),
    "month": (
        same("date_trunc('month', $at)"),
        both("date_trunc('MON', $at)", "date_trunc('month', $at)"),
        both("trunc($at, 'MM')", "cast(date_trunc('month', $at) AS date)"),
        both("trunc(cast($at AS date), 'month')", "cast(date_trunc('month', $at) AS date)"),
        same("month($at)"),
        same("date_trunc('month', cast($at AS date))"),
        both("month(to_date($at))", "month($at)"),
        same("date_trunc('month', date_trunc('week', $at))"),
    ),
    "quarter": (same("date_trunc('quarter', $at)"), same("quarter($at)")),
    "year": (
        same("year($at)"),
        same("date_trunc('year', $at)"),
        both("trunc($at, 'YEAR')", "cast(date_trunc('year', $at) AS date)"),
        both("trunc(trunc($at, 'MM'), 'YY')", "cast(date_trunc('year', $at) AS date)"),
        same("year($at) * 100 + month($at)"),
    ),
}
GRAINS = tuple(TIMES)


def times(grain: str) -> list[Both]:
    """What rows cut to a grain can tell; of weeks it is little."""
    coarser = GRAINS[GRAINS.index(grain) :]
    found = [each for at in coarser for each in TIMES[at]]
    return list(TIMES["week"]) if grain == "week" else found


COLUMNS: dict[str, tuple[Both, ...]] = {
    "zone": (
        same("$zone"),
        same("$zone"),
        same("$zone + 1"),
        same("$zone % 2"),
        both("mod($zone, 2)", "$zone % 2"),
        same("coalesce($zone, 0)"),
        same("$zone IS NULL"),
        same("CASE WHEN $zone > 1 THEN 'big' ELSE 'small' END"),
        both("if($zone > 1, $zone, -$zone)", "CASE WHEN $zone > 1 THEN $zone ELSE -$zone END"),
        same("abs($zone)"),
        same("-($zone - 1)"),
        same("greatest($zone, 1)"),
        same("cast($zone AS bigint)"),
        same("nullif($zone, 2)"),
    ),
    "kind": (
        same("$kind"),
        same("$kind"),
        same("upper($kind)"),
        same("lower($kind)"),
        same("length($kind)"),
        same("substring($kind, 1, 1)"),
        same("coalesce($kind, 'none')"),
        same("CASE $kind WHEN 'a' THEN 1 WHEN 'A' THEN 2 END"),
    ),
    "flag": (same("$flag"), same("NOT $flag"), same("coalesce($flag, false)"), same("$flag IS NULL")),
    "d": (same("$d"), same("year($d)"), same("day($d)"), same("date_trunc('month', $d)")),
    "loud": (same("upper($kind)"), same("upper($kind)"), same("coalesce(upper($kind), '-')")),
    "third": (
        same("$zone % 3"),
        same("$zone % 3"),
        both("mod($zone, 3)", "$zone % 3"),
        same("$zone % 3 + 1"),
    ),
    "borough": (same("$borough"), same("$borough"), same("upper($borough)"), same("$borough IS NULL")),
    "rank": (same("$rank"), same("$rank"), same("$rank % 2"), same("coalesce($rank, 0)")),
    "place": (same("$place"), same("$place"), same("coalesce($place, 0)"), same("$place IS NULL")),
    "x": (same("$x"), both("$x div 10", "$x // 10"), same("$x % 5")),
    "f": (same("$f"), same("$f > 5")),
    "fare": (same("$fare"), same("$fare > 10"), same("$fare * 2")),
}
CONDITIONS: dict[str, tuple[Both, ...]] = {
    "zone": (
        same("$zone = 2"), same("$zone > 1"), same("$zone IN (1, 3, 7)"), same("$zone IS NULL"),
        same("$zone IS NOT NULL"), same("$zone BETWEEN 0 AND 2"), same("$zone <> 2"), same("NOT ($zone = 2)"),
        same("$zone NOT IN (1, 2)"), both("$zone <=> 2", "$zone IS NOT DISTINCT FROM 2"), same("2 < $zone"),
        same("$zone % 2 = 0"), same("$zone NOT BETWEEN 1 AND 2"), same("$zone > 99"), same("$zone + 1 > 2"),
        both("$zone <=> null", "$zone IS NULL"), same("$zone = 1 + 1"), same("$zone > 1.5"),
    ),
    "kind": (
        same("$kind = 'a'"), same("$kind LIKE 'a%'"), same("$kind IS NOT NULL"), same("$kind = ''"),
        same("$kind IN ('a', 'é', 'none')"), same("upper($kind) = 'A'"), same("$kind NOT LIKE '%b'"),
        same("$kind > 'a'"), same("length($kind) = 1"), same("$kind = '東京'"), same("lower($kind) <> $kind"),
        same("CASE WHEN $kind = 'a' THEN true ELSE $kind IS NULL END"),
    ),
    "flag": (same("$flag"), same("NOT $flag"), same("$flag IS NULL"), same("$flag = true"),
             same("$flag IS TRUE")),
    "d": (same("$d IS NOT NULL"), same("day($d) < 10"), same("year($d) > 1969")),
    "loud": (same("upper($kind) = 'A'"), same("upper($kind) IS NULL"), same("upper($kind) LIKE 'A%'")),
    "third": (same("$zone % 3 = 1"), same("$zone % 3 IS NOT NULL"), same("$zone % 3 IN (0, 2)")),
    "borough": (same("$borough = 'north'"), same("$borough IS NULL"), same("$borough IN ('south', 'Süd')")),
    "rank": (same("$rank > 4"), same("$rank IS NULL"), same("$rank IN (1, 3, 5)"), same("$rank <> $zone")),
    "place": (same("$place = 2"), same("$place > 1"), same("$place IS NULL"), same("$place IS NOT NULL"),
              same("coalesce($place, 0) <> 2"), same("$place IN (1, 2)"), same("$place = $zone")),
    "x": (same("$x > 0"), same("$x % 2 = 0"), same("$x IS NULL"), same("$x BETWEEN -10 AND 10")),
    "f": (same("$f > 5"), same("$f IS NOT NULL")),
    "fare": (same("$fare > 10"), same("$fare IS NULL"), same("$fare < 3.25"), same("$fare BETWEEN 1 AND 20")),
}  # fmt: skip
# In place of what rows of a view meet: conditions of which some say at least that, and some do not.
NEARLY: dict[str, tuple[str, ...]] = {
    "$zone IS NOT NULL": (
        "$zone > -9", "$zone <> 2", "($zone = 1 OR $zone >= 2)", "($zone = 1 OR $kind = 'a')",
    ),
    "$zone > 1": (
        "$zone >= 2", "$zone = 3", "$zone IN (2, 3)", "$zone BETWEEN 2 AND 3", "NOT ($zone <= 1)",
        "$zone > 2.5", "($zone = 2 OR $zone > 3)", "$zone > 0", "$zone IN (1, 2)", "$zone >= 1.5",
        "$zone <> 1", "NOT ($zone <= 1 AND $kind = 'a')", "($zone > 1 OR $zone IS NULL)", "$zone > 2 - 1",
    ),
    "NOT ($zone > 3)": (
        "$zone <= 3", "$zone < 4", "$zone IN (0, 2)", "$zone = 1", "NOT ($zone >= 3)", "$zone <> 4",
        "$zone IS NULL", "($zone <= 3 OR $zone IS NULL)", "NOT ($zone > 3 OR $kind = 'a')", "$zone < 3.5",
        "NOT ($zone > 3 AND $kind = 'a')", "$zone BETWEEN -1 AND 3",
    ),
    "$kind IS NOT NULL": (
        "$kind = 'a'", "$kind <> 'b'", "$kind IN ('a', 'b')", "$kind > ''", "NOT ($kind = 'a')",
        "($kind = 'a' OR $zone = 2)", "length($kind) >= 0",
    ),
    "$fare > 10": ("$fare >= 10.01", "$fare > 20", "$fare BETWEEN 11 AND 30", "$fare >= 10", "$fare > 9.99",
                   "($fare > 10 OR $fare IS NULL)", "NOT ($fare <= 10.00)", "$fare = 12.5"),
}  # fmt: skip
# Spark averages decimals of few digits as doubles, and rounds what those look like written out.
_MEAN = (
    "CAST(CAST(CAST(sum({0}) * 100 AS DOUBLE) / nullif(count({0}), 0)::DOUBLE / 100::DOUBLE AS VARCHAR) "
    "AS DECIMAL(14, 6))"
)


def mean_of_decimals(argument: Both) -> Both:
    """AVG as Spark rounds it; DuckDB's is a float."""
    return Both(f"avg({argument.spark})", _MEAN.format(argument.duck))


def conditional(aggregate: Both, condition: Both) -> Both:
    return put("{0} FILTER (WHERE {1})", aggregate, condition)


_PAIRS = (
    "count(DISTINCT CASE WHEN $zone IS NOT NULL AND $kind IS NOT NULL THEN concat($zone, '|', $kind) END)"
)
ROWS = (same("count(*)"), same("count(*)"), same("count(1)"), same("COUNT( * )"), same("sum(1)"))
AGGREGATES: dict[str, tuple[Both, ...]] = {
    "n": ROWS,
    "fare": (same("sum($fare)"), same("sum($fare)"), same("sum($fare) * 2"), same("-sum($fare)")),
    "fares": (same("count($fare)"),),
    "mean": (mean_of_decimals(same("$fare")),),
    "cheap": (same("min($fare)"), same("min($fare)")),
    "dear": (same("max($fare)"), same("max(($fare))")),
    "xs": (same("sum($x)"), same("sum($x) + count(*)"), same("abs(sum($x))"), same("sum(2 * $x)"),
           same("sum($x + 1)"), same("sum(3 - $x)")),
    "xmean": (same("avg($x)"), both("mean($x)", "avg($x)")),
    "xn": (same("count($x)"),),
    "spread": (same("stddev_pop($x)"), same("stddev($x)"), same("var_pop($x)"), same("variance($x)"),
               same("var_samp($x)")),
    "lo": (same("min($x)"),),
    "hi": (same("max($x)"), same("max($x) - 1")),
    "fsum": (same("sum($f)"),),
    "fmean": (same("avg($f)"), same("avg($f) * 2")),
    "fn": (same("count($f)"),),
    "flo": (same("min($f)"),),
    "fhi": (same("max($f)"),),
    "always": (same("bool_and($flag)"), both("every($flag)", "bool_and($flag)")),
    "ever": (same("bool_or($flag)"), both("some($flag)", "bool_or($flag)"),
             both("any($flag)", "bool_or($flag)")),
    "last": (same("max($at)"),),
    "since": (same("min($at)"),),
    "far": (same("sum(CASE WHEN $zone > 1 THEN $fare ELSE 0 END)"),
            same("sum(CASE WHEN $zone > 1 THEN $fare END)"), same("sum($fare) FILTER (WHERE $zone > 1)")),
    "flagged": (same("count(*) FILTER (WHERE $flag)"),
                both("count_if($flag)", "count(*) FILTER (WHERE $flag)")),
    "newest": (same("max($d)"),),
    "rank": (same("max($rank)"),),
    "greatest": (same("max($kind)"),),
    "zone": (same("max($zone)"),),
    "pairs": (both("count(DISTINCT $zone, $kind)", _PAIRS),),
    "other": (
        same("count(DISTINCT $x)"), same("sum(DISTINCT $zone)"), same("sum($fare * 2)"),
        same("max($fare + $x)"),
        same("count(*) FILTER (WHERE $fare > 10)"), same("min($kind)"), same("sum($x) FILTER (WHERE $f > 5)"),
        same("median($x)"), same("sum($zone)"), same("avg($zone)"),
    ),
}  # fmt: skip


def of_key(key: Both) -> tuple[Both, ...]:
    """Aggregates that a key of a view can answer."""
    return (
        put("count(DISTINCT {0})", key),
        put("count({0})", key),
        put("min({0})", key),
        put("max({0})", key),
        put("count(CASE WHEN ({0}) IS NOT NULL THEN 1 END)", key),
        Both(f"count_if(({key.spark}) IS NULL)", f"count(*) FILTER (WHERE ({key.duck}) IS NULL)"),
        put("bool_or(({0}) IS NULL)", key),
        put("sum(CASE WHEN ({0}) IS NULL THEN 1 ELSE 0 END)", key),
        put("count(DISTINCT {0}) FILTER (WHERE ({0}) IS NOT NULL)", key),
    )
