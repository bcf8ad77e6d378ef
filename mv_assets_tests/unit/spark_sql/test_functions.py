from __future__ import annotations

import pytest

from mv_assets.spark_sql.functions import BARE, REFUSALS, not_to_declare
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.spark_functions import AGGREGATES, BUILT_IN
from mv_assets_tests.unit.spark_sql.analysed import only, view_of, whats

# Refused for how they are called, so each has its own way to be called wrongly.
ARGUMENTS = {
    "cast": "fare AS int",
    "date_trunc": "zone_id, pickup_at",
    "from_avro": "fare, 'x', map()",
    "from_xml": "fare, 'x', map()",
    "mode": "fare",
    "schema_of_avro": "'x', map()",
    "schema_of_xml": "'x', map()",
    "trunc": "pickup_at, zone_id",
    "unix_timestamp": "",
}
WINDOW = "WINDOW w AS (PARTITION BY pickup_at)"
REFUSED = sorted(name for refusal in REFUSALS for name in refusal.functions)
FINE = sorted(BUILT_IN - set(REFUSED) - AGGREGATES)


def readable(name: str, call: str = "{}({})") -> list[list[str]]:
    """What is said of a view that calls the function, for each number of arguments that parses."""
    arguments = (
        [ARGUMENTS[name]] if name in ARGUMENTS else ["", "fare", "zone_id, fare", "zone_id, fare, fare"]
    )
    found = [
        whats(f"SELECT pickup_at AS hour, {call.format(name, given)} AS x FROM trips") for given in arguments
    ]
    parsed = [said for said in found if not any("can't be read" in what for what in said)]
    assert parsed
    return parsed


@pytest.mark.parametrize(
    "call", ["{}({})", "{} ({})", "`{}`({})", "/* x */ {} /* y */ ({})", "concat({}({}), 'x')"]
)
@pytest.mark.parametrize("name", REFUSED)
def test_every_refused_function_is_caught_however_it_is_written(name: str, call: str) -> None:
    for said in readable(name, call):
        assert any(what.startswith(f"{name} ") for what in said)


@pytest.mark.parametrize("name", sorted(BARE))
def test_a_clock_or_session_function_is_caught_without_parentheses(name: str) -> None:
    assert only(f"SELECT pickup_at AS hour, {name} AS x FROM trips").what.startswith(f"{name} ")
    assert only(f"SELECT pickup_at AS hour FROM trips WHERE {name} IS NULL").what.startswith(f"{name} ")


@pytest.mark.parametrize("call", ["localtime", "LOCALTIME", "localtime()", "localtime(3)"])
def test_localtime_reads_the_clock(call: str) -> None:
    said = whats(f"SELECT pickup_at AS hour, {call} AS x FROM trips")
    assert said == ["localtime reads the clock; use the table's time column"]


def test_a_refused_function_is_caught_inside_subqueries_and_ctes() -> None:
    cte = "WITH z AS (SELECT borough FROM zones WHERE rand() < 1)"
    assert only(f"{cte} SELECT pickup_at AS hour, borough FROM trips, z").what.startswith("rand ")
    nested = "zone_id IN (SELECT zone_id FROM zones WHERE rand() < 1)"
    assert only(f"SELECT pickup_at AS hour FROM trips WHERE {nested}").what.startswith("rand ")


def test_case_does_not_hide_a_function() -> None:
    assert only("SELECT pickup_at AS hour, RanD() AS x FROM trips").what.startswith("rand ")


def test_a_text_or_column_of_a_function_s_name_is_no_call() -> None:
    base = Source("trips", {"pickup_at": "timestamp", "user": "string", "version": "int"}, "pickup_at")
    assert view_of("SELECT pickup_at AS hour, 'rand()' AS now, user, version FROM trips", base=base)


def test_no_other_function_of_spark_is_refused() -> None:
    said = {name: [what for each in readable(name) for what in each] for name in FINE}
    assert not {
        name: what for name, what in said.items() if any("without GROUP BY" not in one for one in what)
    }


@pytest.mark.parametrize("name", sorted(AGGREGATES - set(REFUSED)))
def test_every_aggregate_of_spark_needs_a_group(name: str) -> None:
    for said in readable(name):
        assert any("without GROUP BY" in what for what in said)


@pytest.mark.parametrize(
    "call",
    [
        "unix_timestamp(pickup_at)",
        "sort_array(collect_list(fare))",
        "sort_array(collect_set(fare), false)",
        "array_sort(array_agg(fare))",
        "size(collect_set(fare))",
        "size(collect_set(fare) FILTER (WHERE zone_id > 1))",
        "sort_array(collect_list(fare) FILTER (WHERE zone_id > 1), false)",
        "sort_array(collect_list(fare) OVER (PARTITION BY pickup_at))",
        "size(collect_list(fare) OVER w)",
        "mode(fare, true)",
        "mode() WITHIN GROUP (ORDER BY fare)",
        "max(struct(fare, zone_id)).zone_id",
        "first_value(fare) OVER (PARTITION BY pickup_at ORDER BY zone_id)",
        "last(fare) IGNORE NULLS OVER (PARTITION BY pickup_at ORDER BY zone_id)",
        "aes_encrypt('a', 'k', 'GCM', 'DEFAULT', '123456789012')",
    ],
)
def test_a_call_that_always_answers_the_same_is_fine(call: str) -> None:
    assert view_of(f"SELECT pickup_at AS hour, {call} AS x FROM trips GROUP BY ALL {WINDOW}").columns == (
        "hour",
        "x",
    )


@pytest.mark.parametrize(
    "call",
    [
        "collect_list(fare)",
        "array_sort(collect_list(fare), (a, b) -> 0)",
        "concat(collect_list(fare), stops)",
        "sort_array(collect_list(stops)[0])",
        "sort_array(collect_list(payload).b.c)",
        "sort_array(collect_list(stops) FILTER (WHERE zone_id > 1)[0])",
        "sort_array(collect_list(fare) || stops)",
        "sort_array(slice(collect_list(fare), 1, 2))",
        "size(array_distinct(collect_list(stops)[0]))",
        "array_sort(collect_list(stops)[0])",
        "listagg(zone_id, ',')",
        "mode(fare)",
        "first_value(fare) OVER (PARTITION BY pickup_at)",
        "unix_timestamp()",
        "aes_encrypt('a', 'k')",
    ],
)
def test_a_call_that_may_answer_differently_is_refused(call: str) -> None:
    assert len(whats(f"SELECT pickup_at AS hour, {call} AS x FROM trips GROUP BY ALL")) == 1


def test_an_unknown_function_is_refused_with_the_nearest_name() -> None:
    assert whats("SELECT pickup_at AS hour, levenstein(zone_id, 'a') AS y FROM trips") == [
        "levenstein is not a function of Spark, did you mean levenshtein?"
    ]


@pytest.mark.parametrize("name", ["upper", "rand", "identifier", "logical_or", "arg_max", "select", "case"])
def test_a_name_that_means_something_is_not_given_to_another_function(name: str) -> None:
    """Also one that sqlglot takes for an aggregate: what it is made of would be misread."""
    assert not_to_declare(name) == f"{name} is a word or a function of Spark SQL; choose another name"


@pytest.mark.parametrize("name", ["channel_of", "f", "to_euros2"])
def test_any_other_name_may_be_given(name: str) -> None:
    assert not_to_declare(name) is None
