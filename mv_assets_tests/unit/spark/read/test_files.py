"""Files by their names: whatever a file or its folders are called, its rows are read, and once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime

import pyarrow as pa

from mv_assets_tests.support.lake import view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, rows_at

Make = Callable[..., UncheckedLake]
ALL = "committed"
NAMES = [
    "two words",
    "per%20cent%",
    "new\nline",
    "star*?",
    "[set]",
    "{a,b}",
    "back\\slash",
    "com,ma",
    "grün ☃",
    "pl+us",
    "ha#sh",
    " first",
    "last ",
    "co:lon",
    "2024-01-31T10:00:00Z",
    "quo'te\"s",
    "am&p;=",
    "x=y",
    "~tilde$",
]


def test_every_name_is_read_as_it_stands(unchecked_lake: Make) -> None:
    """More of them than Spark lists by itself, without a job."""
    lake = unchecked_lake(daily("x"))
    for number, name in enumerate(NAMES):
        lake.put(f"{name}.parquet", rows_at([0], x=number))
        lake.put(f"in {name}/{name}.parquet", rows_at([0], x=100 + number))
    lake.put("decoy/stars.parquet", rows_at([1], x=-1))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    expected = [-1, *range(len(NAMES)), *(100 + number for number in range(len(NAMES)))]
    assert sorted(lake.rows("x")) == expected


def test_a_file_that_goes_is_not_read_as_empty(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("x"))
    for number in range(3):
        lake.put(f"{number}.parquet", rows_at([number], x=number))
    lake.before = lambda: (lake.folder / "events/1.parquet").unlink(missing_ok=True)
    assert lake.outcomes() == {0: ALL, 1: ALL, 2: ALL}
    assert lake.rows("x") == [0, 2]


HIVE = """
SELECT day AS hour, zone, split(typeof(zone), ' ')[0] AS kind, count(*) AS n, sum(x) AS x
FROM events GROUP BY ALL
"""


def test_folders_give_columns_their_values_and_types(unchecked_lake: Make) -> None:
    """A day that is the time column, and zones of which one would pass for a number."""
    lake = unchecked_lake(view(sql=HIVE), table={"time_column": "day"})
    lake.put("day=1970-01-01/zone=1/a.parquet", pa.table({"x": [1]}))
    lake.put("day=1970-01-01/zone=1/b.parquet", pa.table({"x": [2]}))
    lake.put("day=1970-01-01/zone=a%2Fb c/a.parquet", pa.table({"x": [3]}))
    lake.put("day=1970-01-02/zone=__HIVE_DEFAULT_PARTITION__/a.parquet", pa.table({"x": [4]}))
    # What a file says of a partition column does not count.
    lake.put("day=1970-01-02/zone=2/a.parquet", pa.table({"x": [5], "zone": ["no"], "day": ["never"]}))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    first, second = date(1970, 1, 1), date(1970, 1, 2)
    assert lake.rows("hour", "zone", "kind", "n", "x") == [
        (first, "1", "string", 2, 3),
        (first, "a/b c", "string", 1, 3),
        (second, "2", "string", 1, 5),
        (second, None, "string", 1, 4),
    ]


def test_numbers_in_folders_are_numbers(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("zone + 1 AS zone", "typeof(zone) AS kind"))
    lake.put("zone=007/a.parquet", rows_at([0]))
    lake.put("ZONE=8/a.parquet", rows_at([1]))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("zone", "kind") == [(8, "int"), (9, "int")]


def test_times_in_folders_may_have_colons(unchecked_lake: Make) -> None:
    lake = unchecked_lake(view(sql="SELECT h AS hour, x FROM events"), table={"time_column": "h"})
    lake.put("h=1970-01-01 23:00:00/a.parquet", pa.table({"x": [1]}))
    lake.put("h=1970-01-02 23%3A59%3A59.999/a.parquet", pa.table({"x": [2]}))
    lake.put("h=1970-01-01 23:59:59.999/a:b.parquet", pa.table({"x": [3]}))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("x") == [1, 2, 3]


def test_a_folder_that_is_no_time_is_its_own_error(unchecked_lake: Make) -> None:
    """It makes no text of the days of the others."""
    lake = unchecked_lake(view(sql="SELECT day AS hour, x FROM events"), table={"time_column": "day"})
    lake.put("day=1970-01-01/a.parquet", pa.table({"x": [1]}))
    lake.run()
    lake.put("day=oops/a.parquet", pa.table({"x": [2]}))
    lake.put("day=1970-01-01/b.parquet", pa.table({"x": [3]}))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("x") == [1, 3]


def test_files_at_mixed_depths_say_for_themselves_what_their_folders_do_not(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("zone"))
    lake.put("a.parquet", rows_at([0], zone=pa.array([5_000_000_000])))
    lake.put("zone=1/a.parquet", rows_at([0]))
    lake.put("zone=2/b.parquet", rows_at([1]))
    lake.put("c.parquet", rows_at([2], zone="text"))
    lake.put("zone=3/c.parquet", rows_at([2]))
    lake.put("d.parquet", rows_at([3]))
    assert lake.outcomes() == {0: ALL, 1: ALL, 2: "failed", 3: ALL}
    assert lake.rows("zone") == [1, 2, 5_000_000_000, None]
    assert "column zone is string in file c.parquet, but int in the folders' names" in lake.failures()[2]


def test_hundreds_of_folders_are_one_scan(unchecked_lake: Make) -> None:
    lake = unchecked_lake(
        daily(
            "sum(zone) AS s",
            sql="SELECT date_trunc('day', at) AS hour, sum(zone) AS s FROM events GROUP BY 1",
        )
    )
    for number in range(300):
        lake.put(f"zone={number}/a.parquet", rows_at([number % 2]))
    began = datetime.now().astimezone()
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert lake.rows("s") == [22_350, 22_500]
    assert (datetime.now().astimezone() - began).total_seconds() < 30
