"""Time ranges by what a Parquet file says of itself."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mv_assets.tables.listing import ALWAYS
from mv_assets.tables.parquet.footer import Extent, Unusable, extent
from mv_assets.tables.times import TimeColumn, Unit
from mv_assets_tests.support.capabilities import writes_int96
from mv_assets_tests.unit.tables.lake import DAY, TS, content, table_content

PER_SECOND: dict[Unit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
UNITS: tuple[Unit, ...] = ("s", "ms", "us", "ns")
SIZES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FIRST, LAST = ALWAYS
YEAR_1 = -62_135_596_800_000
YEAR_9999_END = 253_402_300_799_999


def of(data: bytes, time: TimeColumn | None = TS) -> Extent:
    return extent(pa.BufferReader(data), time)


def span(*values: Any, kind: pa.DataType, unit: Unit | None = None, **options: Any) -> tuple[int, int] | None:
    return of(content(*values, kind=kind, **options), TimeColumn("ts", unit)).range


with_and_without_statistics = pytest.mark.parametrize("write_statistics", [True, False])


@with_and_without_statistics
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin", "+05:30"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_timestamp_is_its_instant_in_utc(unit: Unit, zone: str | None, *, write_statistics: bool) -> None:
    second = PER_SECOND[unit]
    kind = pa.timestamp(unit, zone)
    found = span(2 * second, -3 * second, kind=kind, write_statistics=write_statistics)
    assert found == (-3_000, 2_000)


@with_and_without_statistics
@pytest.mark.parametrize(("unit", "per_ms"), [("us", 1_000), ("ns", 1_000_000)])
def test_fine_timestamps_are_floored_before_1970_too(
    unit: str, per_ms: int, *, write_statistics: bool
) -> None:
    kind = pa.timestamp(unit)
    assert span(-1, kind=kind, write_statistics=write_statistics) == (-1, -1)
    assert span(-per_ms, kind=kind, write_statistics=write_statistics) == (-1, -1)
    assert span(-per_ms - 1, 2 * per_ms - 1, kind=kind, write_statistics=write_statistics) == (-2, 1)


@with_and_without_statistics
@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_a_date_stands_for_its_whole_day(kind: pa.DataType, *, write_statistics: bool) -> None:
    days = [date(1969, 12, 31), date(1970, 1, 2)]
    assert span(*days, kind=kind, write_statistics=write_statistics) == (-DAY, 2 * DAY - 1)


@with_and_without_statistics
def test_years_1_and_9999_are_times(*, write_statistics: bool) -> None:
    days = [date.min, date.max]
    assert span(*days, kind=pa.date32(), write_statistics=write_statistics) == (YEAR_1, YEAR_9999_END)
    micros = (YEAR_1 * 1_000, YEAR_9999_END * 1_000 + 999)
    found = span(*micros, kind=pa.timestamp("us"), write_statistics=write_statistics)
    assert found == (YEAR_1, YEAR_9999_END)


@with_and_without_statistics
@pytest.mark.parametrize(("unit", "per_ms"), [("ms", 1), ("us", 1_000), ("ns", 1_000_000)])
def test_the_extremes_of_a_timestamp_are_times(unit: str, per_ms: int, *, write_statistics: bool) -> None:
    found = span(FIRST, LAST, kind=pa.timestamp(unit), write_statistics=write_statistics)
    assert found == (FIRST // per_ms, LAST // per_ms)


@with_and_without_statistics
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("unit", UNITS)
def test_an_integer_counts_the_declared_unit_since_1970(
    unit: Unit, size: str, *, write_statistics: bool
) -> None:
    low, high = (0, 120) if size.startswith("u") else (-120, 120)
    kind = pa.type_for_alias(size)
    found = span(low, high, kind=kind, unit=unit, write_statistics=write_statistics)
    if unit == "s":
        assert found == (low * 1_000, high * 1_000 + 999)
    else:
        per_ms = PER_SECOND[unit] // 1_000
        assert found == (low // per_ms, high // per_ms)


@with_and_without_statistics
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("unit", UNITS)
def test_any_integer_gives_a_range_that_can_be_kept(unit: Unit, size: str, *, write_statistics: bool) -> None:
    bits = int(size.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if size.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for values in ((low, high), (low,), (high,)):
        found = span(*values, kind=pa.type_for_alias(size), unit=unit, write_statistics=write_statistics)
        assert found is not None
        assert FIRST <= found[0] <= found[1] <= LAST


def test_unsigned_integers_beyond_the_signed_ones_are_not_negative() -> None:
    assert span(1, 2**32 - 1, kind=pa.uint32(), unit="s") == (1_000, (2**32 - 1) * 1_000 + 999)
    assert span(1, 2**63, kind=pa.uint64(), unit="ns") == (0, 2**63 // 1_000_000)


@writes_int96
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("store_schema", [True, False])
def test_int96_is_read_by_its_rows(unit: Unit, *, store_schema: bool) -> None:
    options: Any = {"use_deprecated_int96_timestamps": True, "store_schema": store_schema}
    second = PER_SECOND[unit]
    found = span(-3 * second, 2 * second, None, kind=pa.timestamp(unit, "UTC"), **options)
    assert found == (-3_000, 2_000)


@writes_int96
def test_int96_is_floored_and_reaches_from_year_1_to_9999() -> None:
    options: Any = {"use_deprecated_int96_timestamps": True}
    assert span(-1, 1_999_999, kind=pa.timestamp("ns"), **options) == (-1, 1)
    assert span(YEAR_1, YEAR_9999_END, kind=pa.timestamp("ms"), **options) == (YEAR_1, YEAR_9999_END)


VERSION, OLD = "org.apache.spark.version", "org.apache.spark.legacyDateTime"
MICROS, IN_1899, IN_1582 = pa.timestamp("us", "UTC"), -2_208_988_800_000_001, -141_428
INT96: Any = {"use_deprecated_int96_timestamps": True}


def said(value: int, kind: pa.DataType, keys: dict[str, str], **options: Any) -> tuple[int, int] | None:
    rows = pa.table({"ts": pa.array([value, 0], kind)}).replace_schema_metadata(keys)
    return of(table_content(rows, **options)).range


@pytest.mark.parametrize(
    ("value", "kind", "keys", "options"),
    [
        (IN_1899, MICROS, {VERSION: "2.4.8"}, {}),
        (IN_1899, MICROS, {VERSION: "3.5.1", OLD: ""}, {}),
        (IN_1582, pa.date32(), {VERSION: "2.4.8"}, {}),
        pytest.param(IN_1899, MICROS, {VERSION: "3.0.3"}, INT96, marks=writes_int96),
        pytest.param(
            IN_1899, MICROS, {VERSION: "3.5.1", "org.apache.spark.legacyINT96": ""}, INT96, marks=writes_int96
        ),
    ],
)
def test_times_that_spark_would_move_are_refused(
    value: int, kind: pa.DataType, keys: dict[str, str], options: Any
) -> None:
    with pytest.raises(Unusable, match="Spark's old calendar"):
        said(value, kind, keys, **options)
    assert said(value + 1, kind, keys, **options) is not None


@pytest.mark.parametrize(
    ("value", "kind", "keys", "options"),
    [
        (IN_1899, MICROS, {}, {}),
        (IN_1899, MICROS, {OLD: ""}, {}),
        (IN_1899, MICROS, {VERSION: "3.0.0"}, {}),
        (IN_1899, MICROS, {VERSION: "10.0.0"}, {}),
        pytest.param(IN_1899, MICROS, {VERSION: "3.5.1", OLD: ""}, INT96, marks=writes_int96),
        (IN_1899, pa.timestamp("us"), {VERSION: "3.5.1", OLD: ""}, {}),
    ],
)
def test_times_that_spark_leaves_alone_are_times(
    value: int, kind: pa.DataType, keys: dict[str, str], options: Any
) -> None:
    assert said(value, kind, keys, **options) == (-2_208_988_800_001, 0)


def test_all_row_groups_count() -> None:
    assert span(5, 9, 1, 3, kind=pa.timestamp("ms"), row_group_size=1) == (1, 9)


@with_and_without_statistics
def test_nulls_are_counted_and_lie_nowhere(*, write_statistics: bool) -> None:
    data = content(None, 7, None, 3, None, row_group_size=2, write_statistics=write_statistics)
    assert of(data) == Extent((3, 7), nulls=3, rows=5)


@with_and_without_statistics
def test_a_file_of_nulls_alone_lies_nowhere(*, write_statistics: bool) -> None:
    assert of(content(None, None, write_statistics=write_statistics)) == Extent(None, nulls=2, rows=2)


@with_and_without_statistics
def test_a_file_without_rows_lies_nowhere(*, write_statistics: bool) -> None:
    assert of(content(write_statistics=write_statistics)) == Extent(None, nulls=0, rows=0)


def test_a_column_that_alone_has_no_statistics_is_read() -> None:
    rows = pa.table({"ts": pa.array([4, None, 2], pa.timestamp("ms")), "x": [1, 2, 3]})
    assert of(table_content(rows, write_statistics=["x"])) == Extent((2, 4), nulls=1, rows=3)


def test_statistics_that_contradict_themselves_are_not_believed() -> None:
    low, high = 0x0102030405060708, 0x0203040506070809
    data = content(low, high, kind=pa.timestamp("us"))
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    first, last, other = (value.to_bytes(8, "little") for value in (low, high, 0))
    swapped = data[footer:].replace(first, other).replace(last, first).replace(other, last)
    assert swapped != data[footer:]
    assert of(data[:footer] + swapped).range == (low // 1_000, high // 1_000)


def test_without_a_time_column_a_file_with_rows_is_always_there() -> None:
    assert of(content(1, 2), None) == Extent(ALWAYS, rows=2)
    assert of(content(), None) == Extent(None)


def test_spark_does_not_care_for_case_and_an_exact_name_comes_first() -> None:
    assert of(content(1, column="TS")).range == (1, 1)
    both = pa.table({"TS": pa.array([1], pa.timestamp("ms")), "ts": pa.array([2], pa.timestamp("ms"))})
    assert of(table_content(both)).range == (2, 2)


@with_and_without_statistics
def test_nested_columns_of_the_same_name_are_other_columns(*, write_statistics: bool) -> None:
    kind = pa.timestamp("ms")
    inner = pa.struct([("ts", kind)])
    rows = pa.table(
        {
            "a": pa.array([{"ts": 1}], inner),
            "b": pa.array([[{"ts": 2}]], pa.list_(inner)),
            "ts": pa.array([3], kind),
            "c": pa.array([{"ts": 4}], inner),
        }
    )
    assert of(table_content(rows, write_statistics=write_statistics)).range == (3, 3)
    with pytest.raises(Unusable, match="no column ts"):
        of(table_content(rows.drop_columns(["ts"])))


@pytest.mark.parametrize("kind", ["string", "double", "bool", "binary", "time64[us]"])
def test_a_retyped_time_column_says_its_type(kind: str) -> None:
    with pytest.raises(Unusable, match=r"its time column ts has type .*, not a date or timestamp"):
        of(content(None, kind=pa.type_for_alias(kind)))


def test_integers_need_a_unit_and_a_unit_needs_integers() -> None:
    with pytest.raises(Unusable, match="holds integers, but the table declares no time_unit"):
        of(content(1, kind=pa.int64()))
    with pytest.raises(Unusable, match="has type timestamp, not an integer"):
        of(content(1), TimeColumn("ts", "ms"))
    with pytest.raises(Unusable, match="has type decimal, not an integer"):
        of(content(1, kind=pa.decimal128(9, 0)), TimeColumn("ts", "ms"))


@with_and_without_statistics
@pytest.mark.parametrize("kind", [pa.duration("us"), pa.time32("ms"), pa.null()])
def test_other_columns_that_are_integers_on_disk_give_a_range_or_a_reason(
    kind: pa.DataType, *, write_statistics: bool
) -> None:
    with contextlib.suppress(Unusable):
        assert span(None, kind=kind, unit="us", write_statistics=write_statistics) is None
    with contextlib.suppress(Unusable):
        of(content(*([] if kind == pa.null() else [5]), kind=kind, write_statistics=write_statistics))


def test_a_list_or_struct_is_no_time_column() -> None:
    for rows in (pa.table({"ts": [[1]]}), pa.table({"ts": [{"x": 1}]})):
        with pytest.raises(Unusable):
            of(table_content(rows), TimeColumn("ts", "ms"))


def test_a_file_cut_off_anywhere_is_unusable() -> None:
    data = content(1, 2, None)
    for length in range(len(data)):
        with pytest.raises(Unusable, match="it can't be read as Parquet"):
            of(data[:length])


def test_a_wrong_magic_is_unusable() -> None:
    data = content(1, 2)
    for wrong in (data[:-4] + b"PARX", data[:-4] + b"PARE", data[:-8] + b"\xff\xff\xff\x7fPAR1", b"PAR1" * 3):
        with pytest.raises(Unusable):
            of(wrong)


def test_too_little_memory_says_nothing_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr("pyarrow.parquet.ParquetFile", fail)
    with pytest.raises(MemoryError):
        of(content(1))


FLIPS = """
import sys
import pyarrow as pa
from mv_assets.tables.parquet.footer import Unusable, extent
from mv_assets.tables.times import TimeColumn

with open(sys.argv[1], "rb") as file:
    data = file.read()
for at in range(len(data)):
    for bit in range(8):
        damaged = bytearray(data)
        damaged[at] ^= 1 << bit
        try:
            extent(pa.BufferReader(bytes(damaged)), TimeColumn("ts"))
        except Unusable:
            pass
print("survived")
"""


@pytest.mark.parametrize(
    "options",
    [{}, {"write_statistics": False}, {"use_deprecated_int96_timestamps": True}, {"store_schema": False}],
    ids=["plain", "no statistics", "int96", "no schema"],
)
def test_no_flipped_bit_does_more_than_make_the_file_unusable(tmp_path: Path, options: Any) -> None:
    file = tmp_path / "a.parquet"
    file.write_bytes(content(1, 2, None, **options))
    # In a process of its own, which a damaged footer must not end.
    done = subprocess.run(  # noqa: S603 - our own source
        [sys.executable, "-c", FLIPS, str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "survived\n", "")


@with_and_without_statistics
def test_the_oldest_parquet_version_is_read(*, write_statistics: bool) -> None:
    options: Any = {"version": "1.0", "store_schema": False, "write_statistics": write_statistics}
    assert span(-1, 1_500_000, kind=pa.timestamp("us"), **options) == (-1, 1_500)
