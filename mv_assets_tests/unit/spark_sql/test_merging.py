from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from mv_assets.buckets import Buckets
from mv_assets.spark_sql.merge import Merging, merging_of
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import analyse

EVENTS = Source(
    "events",
    {
        "at": "timestamp",
        "zone": "int",
        "fare": "double",
        "n": "bigint",
        "price": "decimal(10,2)",
        "ok": "boolean",
        "word": "string",
    },
    time_column="at",
)
UNKNOWN = Source("events", time_column="at")
ZONES = Source("zones", {"zone": "int", "borough": "string"})


def merging(sql: str, base: Source = EVENTS) -> Merging | str:
    dimensions = [ZONES] if "zones" in sql else []
    found, mistakes = analyse(
        sql, base=base, dimensions=dimensions, time_column="h", buckets=Buckets.of("1d")
    )
    assert found is not None, mistakes
    return found.merging if isinstance(found.merging, Merging) else found.merging.reason


def by_hour(items: str, group: str = "GROUP BY ALL", base: Source = EVENTS) -> Merging | str:
    return merging(f"SELECT date_trunc('hour', at) AS h, {items} FROM events {group}", base)


def kinds(found: Merging | str) -> dict[str, str]:
    assert isinstance(found, Merging), found
    return {name: partial.kind.value for name, partial in found.aggregates.items()}


@pytest.mark.parametrize(
    ("aggregate", "kind"),
    [
        ("count(*)", "count"),
        ("count(1)", "count"),
        ("count(fare)", "count"),
        ("count_if(n > 1)", "count"),
        ("sum(n)", "sum"),
        ("sum(n * price)", "sum"),
        ("sum(n) FILTER (WHERE ok)", "sum"),
        ("min(fare)", "min"),
        ("max(at)", "max"),
        ("bool_and(ok)", "bool_and"),
        ("every(ok)", "bool_and"),
        ("bool_or(ok)", "bool_or"),
        ("some(ok)", "bool_or"),
        ("hll_sketch_agg(zone, 12)", "hll_sketch_agg"),
    ],
)
def test_aggregates_that_come_in_parts_are_merged(aggregate: str, kind: str) -> None:
    assert kinds(by_hour(f"zone, {aggregate} AS a")) == {"a": kind}


@pytest.mark.parametrize(
    "item",
    [
        "avg(n)",
        "count(DISTINCT zone)",
        "sum(DISTINCT n)",
        "try_sum(n)",
        "sum(n) + 1",
        "CAST(sum(n) AS INT)",
        "approx_count_distinct(zone)",
        "sort_array(collect_set(zone))",
        "stddev(n)",
        "percentile_approx(n, 0.5)",
        "max(struct(n, zone)).zone",
    ],
)
def test_other_aggregates_need_all_files(item: str) -> None:
    assert "does not come in parts" in str(by_hour(f"{item} AS a"))


def test_aggregates_that_sqlglot_does_not_know_are_no_keys() -> None:
    for item in ("vector_sum(v)", "vector_avg(v)", "schema_of_variant_agg(v)"):
        for group in ("GROUP BY ALL", "GROUP BY 1"):
            assert "does not come in parts" in str(by_hour(f"{item} AS a", group, UNKNOWN))


@pytest.mark.parametrize(
    ("items", "group"),
    [
        ("zone + 1 AS a", "1, zone + 1"),
        ("zone, upper(word) AS w, concat(upper(word), zone, 'x') AS a", "h, zone, upper(word)"),
        ("zone AS z, z * 2 AS a", "1, events.zone"),
        ("(zone) AS a, 7 AS seven, transform(array(zone), x -> x + 1) AS t", "1, (zone)"),
        ("zone AS a", "ALL"),
        ("upper(zone) AS zone, zone + 1 AS a", "ALL"),
    ],
)
def test_what_is_made_of_keys_is_one_value_a_group(items: str, group: str) -> None:
    assert kinds(by_hour(f"{items}, count(*) AS c", f"GROUP BY {group}")) == {"c": "count"}


@pytest.mark.parametrize("item", ["word", "zone + n", "strange(word)", "(SELECT borough FROM zones)"])
def test_what_is_made_of_anything_else_needs_all_files(item: str) -> None:
    select = parse_one(f"SELECT zone, {item} AS a FROM events GROUP BY zone", dialect="spark")
    resolver = Resolver(EVENTS, [ZONES])
    resolver.query(select, {}, None)
    assert isinstance(select, exp.Select)
    assert "is not made of keys" in str(merging_of(select, resolver.meaning, (), aggregates=True))


def test_what_is_made_of_an_aggregate_by_its_name_needs_all_files() -> None:
    assert "does not come in parts" in str(by_hour("sum(n) AS s, s + 1 AS a", "GROUP BY 1"))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT DISTINCT at AS h, n FROM events", "DISTINCT"),
        ("SELECT at AS h, sum(n) AS n FROM events GROUP BY at HAVING sum(n) > 1", "HAVING"),
        ("SELECT at AS h, row_number() OVER (PARTITION BY at ORDER BY n, zone) AS r FROM events", "window"),
        (
            "SELECT at AS h, Session_Window(at, '1 hour') AS s, sum(n) AS n FROM events GROUP BY ALL",
            "session",
        ),
        ("SELECT date_trunc('hour', at) AS h, sum(n) AS n FROM events GROUP BY h, zone", "zone is a key"),
        (
            "SELECT date_trunc('hour', at) AS h, zone % 2 AS zone, sum(n) AS n FROM events GROUP BY h, zone",
            "zone is a key",
        ),
    ],
)
def test_what_depends_on_other_rows_needs_all_files(sql: str, why: str) -> None:
    assert why in str(merging(sql))


@pytest.mark.parametrize("base", [EVENTS, UNKNOWN])
@pytest.mark.parametrize("item", ["coalesce(zone, 7)", "zone + 1", "upper(ok)"])
def test_a_key_that_may_be_a_column_is_no_output_column(item: str, base: Source) -> None:
    found = by_hour(f"{item} AS zone, count(*) AS n", "WHERE zone > 1 GROUP BY 1, zone", base)
    assert "zone is a key" in str(found)


@pytest.mark.parametrize("base", [EVENTS, UNKNOWN])
def test_a_key_that_spark_may_take_for_a_column_is_no_output_column(base: Source) -> None:
    items = "coalesce(zone, 7) AS z, count(*) AS c"
    for group in ("GROUP BY 1, 2, z", "GROUP BY h, zone, z", "GROUP BY 1, coalesce(zone, 7), z + 1"):
        assert "is a key" in str(by_hour(items, group, base))
    # If z were a column, Spark would refuse the item.
    for group in ("GROUP BY 1, z", "GROUP BY h, z", "GROUP BY h, coalesce(zone, 7)"):
        assert kinds(by_hour(items, group, base)) == {"c": "count"}
    assert kinds(by_hour("payload.z AS z, count(*) AS c", "GROUP BY h, z", UNKNOWN)) == {"c": "count"}


def test_a_key_by_a_table_s_name_or_inside_of_an_output_is_not_the_output_of_that_name() -> None:
    for table, group in (("events e", "zone, e.x"), ("events", "e.x")):
        sql = f"SELECT date_trunc('hour', at) AS h, zone AS e, count(*) AS n FROM {table} GROUP BY 1, {group}"
        assert "e.x is a key" in str(merging(sql, UNKNOWN))


@pytest.mark.parametrize(
    "item",
    [
        "explode(split(k, ',')) AS a",
        "explode(array(1, 1)) AS a",
        "inline(array(struct(1), struct(1))) AS a",
        "stack(1, sum(n), sum(n)) AS (a, b)",
    ],
)
def test_a_group_that_becomes_several_rows_needs_all_files(item: str) -> None:
    assert "several rows" in str(by_hour(f"k, {item}, count(*) AS c", "GROUP BY 1, k", UNKNOWN))


@pytest.mark.parametrize("place", [0, 4])
def test_a_place_without_an_item_is_for_spark_to_refuse(place: int) -> None:
    assert "no item" in str(by_hour("zone, count(*) AS n", f"GROUP BY h, zone, {place}"))


def test_a_date_by_a_format_is_not_the_date_without_it() -> None:
    dates = "1, to_date(word), to_date(word, 'yyyy-MM-dd')"
    assert "to_date(word) is a key" in str(
        by_hour("to_date(word, 'yyyy-MM-dd') AS d, sum(n) AS n", f"GROUP BY {dates}")
    ).replace("TO_DATE", "to_date")


def test_a_text_is_not_the_number_that_a_sign_makes_of_it() -> None:
    assert "plus sign" in str(by_hour("+word AS w, sum(n) AS n", "GROUP BY 1, word"))
    assert kinds(by_hour("n + 1 AS w, sum(n) AS n", "GROUP BY 1, 2")) == {"n": "sum"}


def test_columns_of_one_spelling_are_two() -> None:
    base = Source("events", {"at": "timestamp", "a": "struct<b:int>", "a.b": "int", "n": "int"}, "at")
    assert "is a key" in str(by_hour("`a.b` AS z, sum(n) AS n", "GROUP BY 1, `a.b`, a.b", base))


@pytest.mark.parametrize(
    "group",
    [
        "GROUP BY ALL",
        "GROUP BY 1, 2",
        "GROUP BY h, zone",
        "GROUP BY date_trunc('hour', e.at), e.zone",
        "GROUP BY date_trunc('hour', at), ZONE",
    ],
)
def test_groups_are_known_by_their_columns_however_they_are_written(group: str) -> None:
    sql = f"SELECT date_trunc('hour', at) AS h, zone, sum(n) AS n FROM events e {group}"
    assert kinds(merging(sql)) == {"n": "sum"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT at AS h, n FROM events WHERE n > 1",
        "SELECT at AS h, borough FROM events LEFT JOIN zones USING (zone)",
        "SELECT at AS h, n FROM events WHERE zone IN (SELECT zone FROM zones)",
        "SELECT at AS h, (SELECT max(borough) FROM zones) AS b FROM events",
        "SELECT at AS h, explode(sequence(1, n)) AS e FROM events",
    ],
)
def test_single_rows_are_put_side_by_side(sql: str) -> None:
    assert merging(sql) == Merging()


@pytest.mark.parametrize(
    ("argument", "rounds"),
    [
        ("n", False),
        ("n * 2", False),
        ("price * 1.5", False),
        ("price / 3", False),
        ("CAST(fare AS DECIMAL(10, 2))", False),
        ("n * CAST(fare AS INT)", False),
        ("fare", True),
        ("n / 3", True),
        ("n * 1.5D", True),
        ("n * 1e2", True),
        ("CAST(n AS DOUBLE)", True),
        ("CASE WHEN ok THEN fare END", True),
        ("CASE WHEN fare > 1.5 AND word = 'refund' THEN n END", False),
        ("word", True),
    ],
)
def test_sums_of_floating_point_are_told(argument: str, rounds: bool) -> None:  # noqa: FBT001 - a table of cases
    found = by_hour(f"sum({argument}) AS a, max(fare) AS m")
    assert isinstance(found, Merging)
    assert found.floats == ({"a"} if rounds else set())


def test_of_columns_whose_type_nobody_knows_spark_will_tell() -> None:
    found = by_hour("sum(fare) AS a", base=UNKNOWN)
    assert isinstance(found, Merging)
    assert found.floats == set()
