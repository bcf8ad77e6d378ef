"""Files that name and type their columns differently, in one bucket or in neighbouring ones."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mv_assets.maintain.audit import audit
from mv_assets.observe.observation import Observation
from mv_assets.query.execute.stored_rows import rows_of
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.unit.spark.unchecked_lake import MOMENT, UncheckedLake, daily, only, rows_at

Make = Callable[..., UncheckedLake]
ALL = "committed"


def test_a_column_that_came_later_is_null_before(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x", "y"))
    lake.put("0.parquet", rows_at([0], x=1))
    lake.put("1.parquet", rows_at([1], x=2, y="new"))
    lake.put("1b.parquet", rows_at([1], x=3))
    lake.put("2.parquet", rows_at([2], y="only"))
    assert lake.outcomes() == dict.fromkeys(range(3), ALL)
    assert lake.rows("x", "y") == [(1, None), (2, "new"), (3, None), (None, "only")]


def test_a_column_that_one_of_many_files_has_is_null_elsewhere(
    unchecked_lake: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = unchecked_lake(daily("x", "y"), table={"settle": "0s"})
    for number in range(100):
        lake.put(f"{number:02}.parquet", rows_at([number % 4], x=number))
    lake.put("40.parquet", rows_at([0], x=40, y="rare"))
    time.sleep(0.02)
    for number in range(4):
        lake.put(f"{number:02}.parquet", rows_at([number], x=number))
    really, asked = ParquetFiles.columns, []

    def columns(table: ParquetFiles, *given: Any, **named: Any) -> Any:
        asked.append(given)
        return really(table, *given, **named)

    monkeypatch.setattr(ParquetFiles, "columns", columns)
    assert lake.outcomes() == dict.fromkeys(range(4), ALL)
    assert [row for row in lake.rows("x", "y") if row[1] is not None] == [(40, "rare")]
    # Once, not for each bucket.
    assert len(asked) == 1


def test_columns_are_found_whatever_their_order_and_case(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("fare", "n"))
    lake.put("a.parquet", rows_at([0], Fare=1.5, n=1))
    lake.put("b.parquet", pa.table({"N": [2], "FARE": [2.5], "AT": pa.array([day(0)], pa.timestamp("us"))}))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("fare", "n") == [(1.5, 1), (2.5, 2)]


def test_one_column_spelled_in_two_ways_is_one(unchecked_lake: Make) -> None:
    sql = "SELECT date_trunc('day', e.AT) AS hour, sum(e.FARE) AS s FROM events e WHERE fare > 0 GROUP BY ALL"
    lake = unchecked_lake(view(sql=sql))
    lake.put("a.parquet", rows_at([0], Fare=1.5))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("s") == [1.5]


@pytest.mark.parametrize("known", [False, True])
def test_a_column_comes_before_an_output_of_its_name(unchecked_lake: Make, *, known: bool) -> None:
    """As in Spark, and where the bucket's files have it; whether schemas were looked at is no matter."""
    lake = unchecked_lake(daily("coalesce(fare, 0) AS amount", "amount * 2 AS d"))
    lake.put("0.parquet", rows_at([0], fare=1, amount=10))
    lake.put("1.parquet", rows_at([1], fare=2))
    if known:
        lake.know_schemas()
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("amount", "d") == [(1, 20), (2, 4)]


@pytest.mark.parametrize("known", [False, True])
def test_a_name_may_mean_a_column_of_a_table_further_out(unchecked_lake: Make, *, known: bool) -> None:
    sql = "SELECT at AS hour, (SELECT max(name) FROM zones WHERE id = zone) AS name FROM events"
    lake = unchecked_lake(view(sql=sql, dimensions=["zones"]), dimensions=["zones"])
    lake.put("0.parquet", rows_at([0], zone=1))
    lake.put("../zones/zones.parquet", pa.table({"id": [1, 2], "name": ["A", "B"]}))
    if known:
        lake.know_schemas()
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("name") == ["A"]


# As they were, as they are, and both as text.
WIDENED: list[tuple[pa.Array, pa.Array, list[str | None]]] = [
    (pa.array([1], pa.int32()), pa.array([2**40]), ["1", "1099511627776"]),
    (pa.array([1], pa.int8()), pa.array([300], pa.int16()), ["1", "300"]),
    (pa.array([0.5], pa.float32()), pa.array([0.1]), ["0.1", "0.5"]),
    (pa.array([1], pa.int32()), pa.array([0.5]), ["0.5", "1.0"]),
    (
        pa.array([Decimal("1.25")], pa.decimal128(10, 2)),
        pa.array([Decimal("1.0625")], pa.decimal128(12, 4)),
        ["1.0625", "1.2500"],
    ),
    (pa.array([7], pa.int64()), pa.array([Decimal("0.5")], pa.decimal128(5, 1)), ["0.5", "7.0"]),
    (
        pa.array([date(2024, 1, 31)]),
        pa.array([datetime(2024, 1, 31, 6)], pa.timestamp("us")),  # noqa: DTZ001 - without a zone
        ["2024-01-31 00:00:00", "2024-01-31 06:00:00"],
    ),
    (pa.array([255], pa.uint8()), pa.array([4_294_967_295], pa.uint32()), ["255", "4294967295"]),
    (pa.array([2**64 - 1], pa.uint64()), pa.array([1], pa.int32()), ["1", "18446744073709551615"]),
    (pa.array([None], pa.null()), pa.array(["s"]), ["s", None]),
]


def test_a_widened_type_holds_the_values_of_both(unchecked_lake: Make) -> None:
    names = [f"x{number}" for number in range(len(WIDENED))]
    lake = unchecked_lake(daily(*(f"CAST({name} AS string) AS {name}" for name in names)))
    lake.put("a.parquet", rows_at([0], **dict(zip(names, (old for old, _, _ in WIDENED), strict=True))))
    lake.put("b.parquet", rows_at([0], **dict(zip(names, (new for _, new, _ in WIDENED), strict=True))))
    assert lake.outcomes() == {0: ALL}
    for name, (_, _, expected) in zip(names, WIDENED, strict=True):
        assert sorted(lake.rows(name), key=str) == sorted(expected, key=str)


def test_a_buckets_rows_do_not_depend_on_what_it_is_computed_with(unchecked_lake: Make) -> None:
    """An int next to a double is no double, and one that shares its bucket with a double is."""
    lake = unchecked_lake(daily("CAST(x AS string) AS x"))
    lake.put("0.parquet", rows_at([0], x=pa.array([1], pa.int32())))
    lake.put("1.parquet", rows_at([1], x=pa.array([1.0])))
    lake.put("12.parquet", rows_at([1, 2], x=pa.array([2, 3], pa.int32())))
    together = (lake.outcomes(), lake.rows("x"))
    assert together == (dict.fromkeys(range(3), ALL), ["1", "1.0", "2.0", "3"])
    for number in (2, 0, 1):
        lake.force(number)
        assert lake.outcomes(scope=only(number)) == {number: ALL}
    assert lake.rows("x") == together[1]


MIXED = [
    (pa.array(["1"]), pa.array([1])),
    (pa.array([1]), pa.array([0.5])),
    (pa.array([{"a": 1}]), pa.array([1])),
    (pa.array([[1]]), pa.array([["1"]])),
    (pa.array([True]), pa.array([1])),
    (pa.array([b"1"]), pa.array(["1"])),
    (pa.array([Decimal(1)], pa.decimal128(38, 0)), pa.array([Decimal(1)], pa.decimal128(38, 10))),
]


def test_only_the_buckets_that_mix_types_fail(unchecked_lake: Make) -> None:
    """Each day but the first and the last mixes the types of another column."""
    names, last = [f"x{number}" for number in range(len(MIXED))], len(MIXED) + 1
    lake = unchecked_lake(daily(*(f"{name} IS NULL AS {name}" for name in names)))
    lake.put("0.parquet", rows_at([0], **{name: one for name, (one, _) in zip(names, MIXED, strict=True)}))
    for number, (name, (one, other)) in enumerate(zip(names, MIXED, strict=True), 1):
        lake.put(f"{number}a.parquet", rows_at([number], **{name: one}))
        lake.put(f"{number}b.parquet", rows_at([number], **{name: other}))
    lake.put(
        f"{last}.parquet", rows_at([last], **{n: other for n, (_, other) in zip(names, MIXED, strict=True)})
    )
    assert lake.outcomes() == {0: ALL, **dict.fromkeys(range(1, last), "failed"), last: ALL}
    for number, said in lake.failures().items():
        assert f"column x{number - 1} is " in said
        assert f"{number}a.parquet" in said
        assert f"{number}b.parquet" in said
    lake.put("1b.parquet", rows_at([1], x0=MIXED[0][0]))
    assert lake.outcomes() == {1: ALL}


def test_a_dimension_that_mixes_types_fails_every_bucket_by_its_files(unchecked_lake: Make) -> None:
    joined = "SELECT date_trunc('day', at) AS hour, x FROM events JOIN zones USING (x)"
    lake = unchecked_lake(view(sql=joined, dimensions=["zones"]), dimensions=["zones"])
    for number in range(2):
        lake.put(f"{number}.parquet", rows_at([number], x=number))
    lake.put("../zones/a.parquet", rows_at([0], x=1))
    lake.put("../zones/b.parquet", rows_at([0], x="1"))
    assert lake.outcomes() == {0: "failed", 1: "failed"}
    [said] = set(lake.failures().values())
    assert "column x is " in said
    assert "a.parquet" in said
    assert "b.parquet" in said
    project, observation = lake.open(), lake.look(whole=True)
    assert isinstance(observation, Observation)
    with (
        project.engine.session() as spark,
        project.sources.computation(spark, observation.view_inputs, observation.buckets) as computation,
    ):
        # An audit asks too, and has no attempt to fail.
        assert computation.groups(list(observation.buckets)).failing == dict.fromkeys(
            observation.buckets, said
        )


def test_nested_fields_come_and_widen(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("s.a AS a", "s.b.c AS c", "transform(l, e -> e.n) AS n", "m['k'].v AS v"))
    old = {
        "s": pa.array([{"a": 1}], pa.struct([("a", pa.int32())])),
        "l": pa.array([[{"n": 1}]], pa.list_(pa.struct([("n", pa.int32())]))),
        "m": pa.array([[("k", {"u": 1})]], pa.map_(pa.string(), pa.struct([("u", pa.int32())]))),
    }
    new = {
        "s": pa.array([{"b": {"c": "x"}, "a": 2**40}]),
        "l": pa.array([[{"o": "o", "n": 2**40}]]),
        "m": pa.array(
            [[("k", {"v": 5, "u": 1})]],
            pa.map_(pa.string(), pa.struct([("v", pa.int64()), ("u", pa.int64())])),
        ),
    }
    lake.put("a.parquet", rows_at([0], **old))
    lake.put("b.parquet", rows_at([0], **new))
    lake.put("c.parquet", rows_at([1], **new))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("a", "c", "n", "v") == [
        (1, None, [1], None),
        (2**40, "x", [2**40], 5),
        (2**40, "x", [2**40], 5),
    ]


def test_a_struct_is_there_even_if_the_asked_field_is_not(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("s IS NULL AS none", "s.b AS b"))
    lake.put("a.parquet", rows_at([0, 0], s=pa.array([{"a": 1}, None])))
    lake.put("b.parquet", rows_at([0], s=pa.array([{"b": 2}])))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("none", "b") == [(False, 2), (False, None), (True, None)]


def test_two_columns_that_differ_by_case_are_nobodys_guess(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("fare"))
    lake.put("0.parquet", rows_at([0], fare=1))
    lake.put("1.parquet", rows_at([1], fare=1, Fare=2))
    lake.put(
        "2.parquet",
        pa.Table.from_arrays([pa.array([day(3, 0) - MOMENT]), *[pa.array([1])] * 2], ["at", "fare", "fare"]),
    )
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: "failed"}
    for number, said in lake.failures().items():
        assert f"file {number}.parquet has columns fare and " in said
    lake.declare(
        daily("count(*) AS n", sql="SELECT date_trunc('day', at) AS hour, count(*) n FROM events GROUP BY 1")
    )
    assert lake.outcomes() == dict.fromkeys(range(3), ALL)


ODD = ["two words", "a.b", "tick`s", "grün ☃", "semi;colon,({=})", "quo\"te's", "%20"]


def test_odd_names_of_columns(unchecked_lake: Make) -> None:
    asked = {f"x{number}": name.replace("`", "``") for number, name in enumerate(ODD)}
    lake = unchecked_lake(
        daily(
            *(f"`{name}` AS {x}" for x, name in asked.items()),
            *(f"s.`{n}` AS s{x}" for x, n in asked.items()),
        )
    )
    lake.put("0.parquet", rows_at([0], **dict.fromkeys(ODD, 5), s=pa.array([dict.fromkeys(ODD, 6)])))
    lake.put("1.parquet", rows_at([1], s=pa.array([{"other": 6, **dict.fromkeys(ODD, 7)}])))
    lake.put("1b.parquet", rows_at([1], s=pa.array([{"third": 6}])))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    for x in asked:
        assert lake.rows(x, f"s{x}") == [(5, 6), (None, 7), (None, None)]


UNREADABLE = {
    "nanos": pa.array([1], pa.timestamp("ns")),
    "nested": pa.array([{"t": 1}], pa.struct([("t", pa.timestamp("ns"))])),
    "clock": pa.array([1], pa.time64("us")),
    "span": pa.array([1], pa.duration("us")),
    "half": pa.array([np.float16(1.5)], pa.float16()),
    "wide": pa.array([Decimal(1)], pa.decimal256(60, 0)),
}


def test_types_that_spark_has_not_fail_where_they_are_used(unchecked_lake: Make) -> None:
    last = len(UNREADABLE) + 1
    lake = unchecked_lake(daily(*(f"{name} IS NULL AS {name}" for name in UNREADABLE)))
    lake.put("0.parquet", rows_at([0], z=1))
    for number, (name, values) in enumerate(UNREADABLE.items(), 1):
        lake.put(f"{number}.parquet", rows_at([number], **{name: values}))
    lake.put(f"{last}.parquet", rows_at([last], **dict.fromkeys(UNREADABLE, 1)))
    assert lake.outcomes() == {0: ALL, **dict.fromkeys(range(1, last), "failed"), last: ALL}
    for number, name in enumerate(UNREADABLE, 1):
        assert f"file {number}.parquet, column {name}: type " in lake.failures()[number]
    lake.declare(daily("z"))
    assert lake.outcomes() == dict.fromkeys(range(last + 1), ALL)


def test_a_column_of_nulls_only_is_null(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("CAST(x AS int) AS x", "coalesce(x, 7) AS y"))
    lake.put("0.parquet", rows_at([0], x=pa.array([None], pa.null())))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x", "y") == [(None, 7)]


def test_a_column_that_no_file_has_fails_by_its_name(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("nowhere"))
    lake.put("0.parquet", rows_at([0]))
    assert lake.outcomes() == {0: "failed"}
    assert "nowhere" in lake.failures()[0]
    assert "\n" not in lake.failures()[0]


def test_of_many_columns_only_the_used_are_read(unchecked_lake: Make) -> None:
    """Case: a table of 2,000 columns."""
    lake = unchecked_lake(daily("c7"))
    lake.put("0.parquet", rows_at([0], **{f"c{n}": n for n in range(2_000)}))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("c7") == [7]
    project, observation = lake.open(), lake.look(whole=True)
    assert isinstance(observation, Observation)
    with (
        project.engine.session() as spark,
        project.sources.computation(spark, observation.view_inputs, observation.buckets) as computation,
    ):
        [alike] = computation.groups([0]).alike
        assert alike.schemas[0].names == ["at", "c7"]
        with redirect_stdout(io.StringIO()) as plan:
            computation.rows(alike.schemas, [0]).explain()
        assert "ReadSchema: struct<at:timestamp,c7:bigint>" in plan.getvalue()


def test_dictionaries_and_binaries_are_plain_values(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("d", "b", "hex(f) AS f"))
    columns = {
        "d": pa.array(["a", "b"]).dictionary_encode(),
        "b": pa.array([b"\0\xff", b""]),
        "f": pa.array([b"ab", None], pa.binary(2)),
    }
    lake.put("0.parquet", rows_at([0, 0], **columns))
    lake.put("0b.parquet", rows_at([0], d="c", b=b"c", f=b"cc"))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("d", "b", "f") == [("a", b"\0\xff", "6162"), ("b", b"", None), ("c", b"c", "6363")]


@pytest.mark.slow
def test_types_that_only_spark_knows_stay_what_they_are_through_views(unchecked_lake: Make) -> None:
    sql = "SELECT at AS hour, done - at AS took, s, parse_json(j) AS j FROM events"
    further = """
        SELECT date_trunc('day', hour) AS hour, s, max(took) AS took, max(CAST(j AS STRING)) AS j,
          count_if(took > INTERVAL '1' HOUR) AS long FROM v GROUP BY ALL"""
    lake = unchecked_lake(view(sql=sql), view("w", sql=further, base="v"))
    collated = {"name": "s", "type": "string", "metadata": {"__COLLATIONS": {"s": "spark.UTF8_LCASE"}}}
    said = json.dumps({"type": "struct", "fields": [collated]})
    done = pa.array([day(0, 2), day(1, 0)])
    rows = rows_at([day(0, 0), 0], done=done, s=pa.array(["x", "X"]), j='{"a": 1}')
    lake.put("0.parquet", rows.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": said}))
    lake.run()
    [row] = lake.stored("w").drop(["hour", "s"]).to_pylist()
    assert row == {"took": 2 * 3_600_000_000, "j": '{"a":1}', "long": 1}
    with rows_of(lake.open(), lake.catalog.views["w"]) as rows:
        kinds = dict(rows.dtypes)
    assert (kinds["took"], kinds["s"]) == ("interval day to second", "string collate UTF8_LCASE")
    for name in ("v", "w"):
        assert [found.verdict for found in audit(lake.open(), lake.catalog.views[name], None)] == ["equal"]
