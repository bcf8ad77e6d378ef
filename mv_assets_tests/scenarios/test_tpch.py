"""TPC-H's line items by ship date, arriving by receipt date: up to 30 days late."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import DAY
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.spark_lake import SparkLake

FIRST, STEP, STEPS = date(1995, 1, 1), 10, 12
PRICING = """
    SELECT l_shipdate, l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
           sum(l_extendedprice) AS sum_base_price,
           sum(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
           sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
           count(l_quantity) AS quantities, count(*) AS count_order
    FROM events GROUP BY l_shipdate, l_returnflag, l_linestatus
"""


@pytest.fixture(scope="module")
def line_items(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("tpch")
    tool = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(tool), "parquet", "-s", "0.01", "--tables=lineitem", f"--output-dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own environment's tool
    rows = pq.read_table(folder / "lineitem.parquet")
    return rows.filter(pc.field("l_receiptdate") >= FIRST)


@pytest.mark.slow
def test_line_items_that_arrive_weeks_after_they_shipped_end_up_in_their_buckets(
    spark_lake: Callable[..., SparkLake], line_items: pa.Table
) -> None:
    priced = view("priced", sql=PRICING, time_column="l_shipdate", start=FIRST.isoformat())
    lake = spark_lake(priced, table={"time_column": "l_shipdate"})
    repaired = 0
    for step in range(STEPS):
        first = FIRST + timedelta(days=step * STEP)
        received = (pc.field("l_receiptdate") >= first) & (
            pc.field("l_receiptdate") < first + timedelta(days=STEP)
        )
        pq.write_table(line_items.filter(received), lake.folder / "events" / f"{first}.parquet")
        results = lake.run()["priced"].results.values()
        assert {result.outcome.value for result in results} == {"committed"}
        repaired += sum(result.operation == "OVERWRITE" for result in results)
        lake.check()
    days = (STEPS - 1) * STEP
    assert repaired > days
    assert lake.watermark("priced") * DAY > (FIRST + timedelta(days=days) - date(1970, 1, 1)).days * DAY
