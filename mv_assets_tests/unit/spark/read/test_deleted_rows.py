"""Rows that are deleted from a table's files are in no bucket and no answer, and marked as any change."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from mv_assets.errors import MvError
from mv_assets.maintain.audit import audit
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.tables.delta import DeltaFiles
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.spark.read import nested
from mv_assets_tests.unit.spark.read.tables import WithVectors
from mv_assets_tests.unit.spark.unchecked_lake import AT, UncheckedLake, daily, rows_at
from mv_assets_tests.unit.tables.iceberg import log

Make = Callable[..., UncheckedLake]
SUMS = "SELECT date_trunc('day', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY 1"
ALL = "committed"


@pytest.fixture
def lake(unchecked_lake: Make) -> UncheckedLake:
    """A day in each of three files, with three rows."""
    made = unchecked_lake(daily(sql=SUMS), table={"format": "delta"})
    for number in range(3):
        add(made, number, [1, 2, 3])
    (made.folder / "vectors").mkdir()
    table = cast("DeltaFiles", made.tables["events"])
    made.tables = {"events": WithVectors(table, made.folder / "vectors")}
    return made


def add(lake: UncheckedLake, number: int, values: list[int]) -> None:
    rows = rows_at([number] * len(values), x=pa.array(values, pa.int64()))
    write_deltalake(lake.folder / "events", rows, mode="append")


def vector(lake: UncheckedLake, number: int, told: str | None) -> None:
    """Say which rows are deleted of the first file of a day; None: none."""
    files = sorted((lake.folder / "events").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    [name, *_] = [file.name for file in files if pq.read_table(file)["at"][0].as_py().day == number + 1]
    if told is None:
        (lake.folder / "vectors" / name).unlink()
    else:
        (lake.folder / "vectors" / name).write_text(told)


def test_119_120_a_vector_marks_its_buckets_and_taken_back_reverts_them(lake: UncheckedLake) -> None:
    assert lake.outcomes() == {0: ALL, 1: ALL, 2: ALL}
    before = lake.snapshot().rows[DAY]
    vector(lake, 1, "[0, 2]")
    lake.look()
    assert lake.states(0, 1, 2) == "VSV"
    vector(lake, 1, None)
    assert lake.outcomes() == {1: "reverted"}
    assert lake.states(0, 1, 2) == "VVV"
    assert lake.snapshot().rows[DAY].generation == before.generation
    vector(lake, 1, "[0, 2]")
    assert lake.outcomes() == {1: ALL}
    assert lake.rows("n", "x") == [(1, 2), (3, 6), (3, 6)]


def test_126_a_damaged_vector_fails_its_bucket_and_no_other(lake: UncheckedLake) -> None:
    vector(lake, 1, "damaged")
    vector(lake, 2, "[0]")
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: ALL}
    assert ".parquet.bin is damaged" in lake.failures()[1]
    assert lake.rows("n", "x") == [(2, 5), (3, 6)]


def test_a_file_that_lost_rows_is_no_addition(lake: UncheckedLake) -> None:
    """Though another one came: what is stored has the lost rows."""
    add(lake, 3, list(range(5_000)))
    lake.outcomes()
    add(lake, 3, [10])
    vector(lake, 3, "[4999]")
    assert lake.outcomes() == {3: ALL}
    assert (5_000, sum(range(4_999)) + 10) in lake.rows("n", "x")


def test_answers_and_audits_are_without_deleted_rows(lake: UncheckedLake) -> None:
    vector(lake, 0, "[2]")
    vector(lake, 2, "[0, 1, 2]")
    lake.outcomes()
    assert [str(each.verdict) for each in audit(lake.open(), lake.catalog.view("v"), None)] == ["equal"] * 3
    answers = Answers(lake.open())
    for sql, expected in {
        "SELECT count(*) FROM events": [(5,)],
        "SELECT max(x) FROM events WHERE at < TIMESTAMP '1970-01-02 00:00:00Z'": [(2,)],
        "SELECT count(*), sum(x) FROM events WHERE at >= TIMESTAMP '1970-01-01 00:00:00Z'": [(5, 9)],
    }.items():
        for freshness in (Freshness.STRICT, Freshness.OFF):
            found = answers.answer(Question(sql, freshness)).frame.collect()
            assert [tuple(row) for row in found] == expected


@pytest.mark.parametrize("times", [[0, 0], [None, None]])
def test_rows_of_which_nobody_can_tell_whether_they_are_deleted_are_in_no_answer(
    unchecked_lake: Make, times: list[int | None]
) -> None:
    """Nor those that belong to no bucket."""
    made = unchecked_lake(daily(sql=SUMS), table={"format": "iceberg", "unsafe": True})
    root = made.folder / "events"
    schema = pa.schema({"at": AT, "x": pa.int64(), "weight": pa.float64()})
    with nested.catalog(made.folder) as catalog:
        table = nested.iceberg(catalog, root, 2, schema=schema)
        table.append(rows_at(times, x=pa.array([1, 2]), weight=pa.array([0.5, 0.0])))
    gone = pa.table({"weight": [-0.0]})
    log.commit(root, log.equality_deletes(made.folder / "gone.parquet", gone, {"weight": 3}))
    made.outcomes()
    for sql in ("SELECT count(*) FROM events", "SELECT max(x) FROM events WHERE x < 3"):
        for freshness in (Freshness.STRICT, Freshness.OFF):
            with pytest.raises(MvError, match="tells rows by a column of type double"):
                Answers(made.open()).answer(Question(sql, freshness))
