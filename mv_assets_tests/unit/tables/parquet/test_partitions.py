"""Columns whose values stand in the folders' names."""

from __future__ import annotations

import pytest

from mv_assets.tables.parquet.partitions import HivePartitions, types_of, values_of
from mv_assets.tables.times import TimeColumn, of_text
from mv_assets_tests.unit.tables.lake import DAY, LATER, SETTLE, Lake, content, put, ranges

DATE = TimeColumn("day")
NEW_YEAR = 19_723 * DAY  # of 2024
DEFAULT = "__HIVE_DEFAULT_PARTITION__"


def data(column: str = "x") -> bytes:
    return content(1, column=column)


def test_values_are_those_of_all_folders() -> None:
    assert values_of("a=1/plain/b=x=y/part-0.parquet") == {"a": "1", "b": "x=y"}
    assert values_of("part=0.parquet") == values_of("plain/a.parquet") == {}


def test_the_default_partition_is_null_and_only_as_it_is_spelled() -> None:
    assert values_of(f"a={DEFAULT}/f") == {"a": None}
    assert values_of(f"a={DEFAULT.lower()}/f") == {"a": DEFAULT.lower()}


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("a%20b", "a b"),
        ("a%2Fb", "a/b"),
        ("%3D", "="),
        ("100%25", "100%"),
        ("a+b", "a+b"),
        ("ä", "ä"),
        ("%", "%"),
    ],
)
def test_values_are_url_decoded(folder: str, value: str) -> None:
    assert values_of(f"k={folder}/f") == {"k": value}
    assert values_of(f"{folder.replace('=', '')}=v/f") == {value: "v"}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-5", "007"], "int"),
        (["2147483647", "-2147483648"], "int"),
        (["2147483648"], "bigint"),
        (["9223372036854775808"], "string"),
        (["2024-01-31", "2024-02-01"], "date"),
        (["2024-01-31", "2024-02-30"], "string"),
        (["2024-01-31", "5"], "string"),
        (["1", "x"], "string"),
        (["1", DEFAULT], "int"),
        ([DEFAULT], "string"),
        (["2024-W05-3"], "string"),
        (["٣"], "string"),
        (["-"], "string"),
        (["1.5"], "string"),
    ],
)
def test_the_type_of_a_partition_column_follows_from_all_its_values(values: list[str], kind: str) -> None:
    assert types_of(f"k={value}" for value in values) == {"k": kind}


def test_partition_values_of_a_listing_are_found_by_name(lake: Lake) -> None:
    put(lake.root / "k=a%20b" / "f.parquet", content(1))
    put(lake.root / f"k={DEFAULT}" / "f.parquet", content(1))
    found = lake.look()
    by_name = found.details.partitions
    assert {name: dict(by_name[name]) for name in found.names} == {
        "k=a%20b/f.parquet": {"k": "a b"},
        f"k={DEFAULT}/f.parquet": {"k": None},
    }
    assert found.schema == {"k": "string"}
    assert len(HivePartitions(found.names)) == 2


def test_a_date_in_the_folder_is_the_time_of_all_rows(lake: Lake) -> None:
    put(lake.root / "day=2024-01-01" / "a.parquet", data())
    put(lake.root / "day=1969-12-31" / "h=1" / "a.parquet", data())
    assert ranges(lake.look(DATE)) == {
        "day=2024-01-01/a.parquet": (NEW_YEAR, NEW_YEAR + DAY - 1),
        "day=1969-12-31/h=1/a.parquet": (-DAY, -1),
    }
    columns = lake.table(DATE).columns()
    assert columns == {"x": "timestamp_ntz", "day": "date", "h": "int"}


@pytest.mark.parametrize(
    ("unit", "value", "span"),
    [
        ("s", "-1", (-1_000, -1)),
        ("s", "1704067200", (NEW_YEAR, NEW_YEAR + 999)),
        ("ms", "1704067200000", (NEW_YEAR, NEW_YEAR)),
        ("us", "-1", (-1, -1)),
        ("ns", "1999999", (1, 1)),
    ],
)
def test_an_integer_in_the_folder_is_the_time_of_all_rows(
    lake: Lake, unit: str, value: str, span: tuple[int, int]
) -> None:
    put(lake.root / f"ts={value}" / "a.parquet", data())
    assert list(ranges(lake.look(TimeColumn("ts", unit))).values()) == [span]  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["s", "ms"])
@pytest.mark.parametrize("value", ["9999999999999999999", "-9999999999999999999", "9" * 40])
def test_a_number_beyond_all_times_in_a_folder_does_not_stop_the_look(
    lake: Lake, unit: str, value: str
) -> None:
    put(lake.root / f"ts={value}" / "a.parquet", data())
    put(lake.root / "ts=1" / "a.parquet", data())
    found = lake.look(TimeColumn("ts", unit))  # type: ignore[arg-type]
    assert "ts=1/a.parquet" in ranges(found)
    assert f"ts={value}/a.parquet" in {*found.names, *found.broken}


def test_the_folder_wins_over_a_column_of_the_same_name(lake: Lake) -> None:
    put(lake.root / "day=2024-01-01" / "a.parquet", data("day"))
    assert ranges(lake.look(DATE)) == {"day=2024-01-01/a.parquet": (NEW_YEAR, NEW_YEAR + DAY - 1)}


def test_rows_of_the_default_partition_have_no_time(lake: Lake) -> None:
    put(lake.root / f"day={DEFAULT}" / "a.parquet", content(1, 2, 3, column="x"))
    found = lake.look(DATE)
    assert (found.names, found.nulls) == ([], {f"day={DEFAULT}/a.parquet": 3})
    assert found.broken == {}


def test_a_dated_folder_may_hold_a_file_without_rows(lake: Lake) -> None:
    put(lake.root / "day=2024-01-01" / "a.parquet", content(column="x"))
    assert (len(lake.look(DATE)), lake.look(DATE).broken) == (0, {})


@pytest.mark.parametrize(
    "value",
    [
        "today",
        "2024-02-30",
        "2024-1-5",
        "2024",
        "20240131",
        "2024-W05-3",
        "2024W053",
        "12",
        "%20",
        "2024-01-01x",
    ],
)
def test_a_value_that_is_not_a_time_is_named_with_its_file(lake: Lake, value: str) -> None:
    put(lake.root / f"day={value}" / "a.parquet", data())
    put(lake.root / "day=2024-01-01" / "a.parquet", data())
    found = lake.look(DATE)
    assert found.names == ["day=2024-01-01/a.parquet"]
    (bad,) = found.unplaced
    assert bad.name == f"day={value}/a.parquet"
    assert "which is not a time" in bad.why


def test_an_encoded_time_is_a_time(lake: Lake) -> None:
    put(lake.root / "at=2024-01-01 00%3A00%3A01" / "a.parquet", data())
    found = lake.look(TimeColumn("at"))
    assert list(ranges(found).values()) == [(NEW_YEAR + 1_000, NEW_YEAR + 1_000)]


def test_times_with_a_zone_are_instants() -> None:
    assert of_text("2024-01-01T02:00:00+02:00", None) == (NEW_YEAR, NEW_YEAR)
    assert of_text("2024-01-01T00:00:00.000999Z", None) == (NEW_YEAR, NEW_YEAR)
    assert of_text("1969-12-31T23:59:59.999999", None) == (-1, -1)


def test_spark_does_not_care_for_the_case_of_a_partition_column(lake: Lake) -> None:
    put(lake.root / "Day=2024-01-01" / "a.parquet", data())
    assert list(ranges(lake.look(DATE)).values()) == [(NEW_YEAR, NEW_YEAR + DAY - 1)]


def test_98_a_damaged_file_has_the_range_of_its_folder(lake: Lake) -> None:
    lake.damage("day=2024-01-01/a.parquet")
    found = lake.look(DATE)
    assert list(ranges(found).values()) == [(NEW_YEAR, NEW_YEAR + DAY - 1)]
    assert found.broken.keys() == {"day=2024-01-01/a.parquet"}
    assert found.unplaced == []


def test_a_file_that_is_still_arriving_in_a_dated_folder_is_looked_at_again(lake: Lake) -> None:
    file = put(lake.root / "day=2024-01-01" / "a.parquet", data()[:-10])
    lake.age(file, 0)
    assert lake.look(DATE).recheck_at is not None
    put(file, data())
    lake.clock.now = LATER
    assert lake.look(DATE).broken == {}
    assert lake.look(DATE).recheck_at is None
    assert SETTLE < LATER


def test_a_time_in_the_files_is_read_there_whatever_the_folders_say(lake: Lake) -> None:
    lake.write("day=2024-01-01/a.parquet", 7)
    assert ranges(lake.look()) == {"day=2024-01-01/a.parquet": (7, 7)}
