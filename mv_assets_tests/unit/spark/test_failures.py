"""What can't be computed is a failure of exactly its bucket, in one line; and a Spark that goes away."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

from mv_assets.config import Spark
from mv_assets.spark.errors import EngineRefused, EngineUnavailable, JobFailed
from mv_assets.spark.failures import in_short, spark_errors
from mv_assets.spark.session import Engine
from mv_assets_tests.support.lake import view
from mv_assets_tests.unit.spark import own_process
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, rows_at

Make = Callable[..., UncheckedLake]
ALL = "committed"
SUM = "SELECT date_trunc('day', at) AS hour, sum(x) AS x FROM events GROUP BY 1"

WENT_AWAY = ["Spark went away while this was computed"]


def test_a_sum_that_overflows_fails_its_bucket_alone(unchecked_lake: Make) -> None:
    lake = unchecked_lake(view(sql=SUM))
    lake.put("0.parquet", rows_at([0, 0], x=1))
    lake.put("1.parquet", rows_at([1, 1], x=2**63 - 1))
    lake.put("2.parquet", rows_at([2], x=2**63 - 1))
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: ALL}
    assert "overflow" in lake.failures()[1]
    assert "\n" not in lake.failures()[1]
    assert len(lake.failures()[1]) < 600
    assert lake.rows("x") == [2, 2**63 - 1]


def test_a_division_by_zero_and_a_bad_number_fail_their_buckets(unchecked_lake: Make) -> None:
    """One of the values reads as if Spark were gone."""
    lake = unchecked_lake(daily("1 / x AS x", "CAST(s AS int) AS s"))
    for number, (x, s) in enumerate([(1, "1"), (0, "1"), (1, "Connection refused"), (1, "4")]):
        lake.put(f"{number}.parquet", rows_at([number], x=x, s=s))
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: "failed", 3: ALL}
    assert "DIVIDE_BY_ZERO" in lake.failures()[1]
    assert "Connection refused" in lake.failures()[2]


def test_values_at_the_edges_of_their_types(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("d", "f", "s"))
    most = Decimal("9" * 38)
    values = {
        "d": pa.array([most, most.copy_negate(), None, Decimal(0)], pa.decimal128(38, 0)),
        "f": pa.array([float("inf"), float("-inf"), -0.0, None]),
        "s": pa.array(["line\nbreak", "nul\0", "", None]),
    }
    lake.put("0.parquet", rows_at([0] * 4, **values))
    assert lake.outcomes() == {0: ALL}
    expected = list(zip(*(column.to_pylist() for column in values.values()), strict=True))
    assert lake.rows("d", "f", "s") == sorted(expected, key=repr)
    lake.check()


def test_not_a_number_is_kept(unchecked_lake: Make) -> None:
    lake = unchecked_lake(daily("isnan(f) AS f", "f > 1e308 AS more"))
    lake.put("0.parquet", rows_at([0, 0], f=pa.array([float("nan"), 1.0])))
    assert lake.outcomes() == {0: ALL}
    assert lake.rows("f", "more") == [(False, False), (True, True)]


def test_a_page_that_is_damaged_names_its_file(unchecked_lake: Make) -> None:
    """A look reads the time column only; the rest is found out by the job."""
    lake = unchecked_lake(daily("x"))
    lake.put("0.parquet", rows_at([0], x="fine"))
    path = lake.put(
        "1.parquet", rows_at([1], x="some text to be damaged" * 20), compression="zstd", use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    at = data.rindex(bytes.fromhex("28b52ffd"))
    data[at : at + 12] = bytes(12)
    path.write_bytes(data)
    assert lake.outcomes() == {0: ALL, 1: "failed"}
    assert "1.parquet" in lake.failures()[1]


@pytest.mark.parametrize("value", ["true", "TRUE", " True "])
def test_a_project_that_overlooks_files_is_refused(unchecked_lake: Make, engine: Engine, value: str) -> None:
    """Case 54. Before anything is read, and whatever runs already."""
    for key in ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles"):
        other = Engine(Spark(conf={key: value}), lambda _: engine.shared())
        lake = unchecked_lake(engine=other)
        lake.put("0.parquet", rows_at([0]))
        with pytest.raises(EngineRefused, match=key):
            lake.outcomes()
        assert lake.row(0) is None


def test_settings_of_a_session_are_not_those_of_the_work(engine: Engine) -> None:
    with engine.session() as spark:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        spark.conf.set("spark.sql.ansi.enabled", "false")
        spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
        with Engine(Spark(), lambda _: spark).session() as own:
            assert own.conf.get("spark.sql.session.timeZone") == "UTC"
            assert own.conf.get("spark.sql.ansi.enabled") == "true"
            assert own.conf.get("spark.sql.files.ignoreMissingFiles") == "false"
            found = own.sql(
                "SELECT typeof(CAST('2024-01-01' AS timestamp)), timestamp '1970-01-01' = timestamp_micros(0)"
            )
            assert tuple(found.first() or ()) == ("timestamp", True)


def test_ansi_is_off_only_for_a_project_that_says_so(engine: Engine) -> None:
    conf = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.warehouse.dir": "/nowhere",
        "spark.driver.memory": "9g",
    }
    with engine.session() as spark:
        with Engine(Spark(conf=conf), lambda _: spark).session() as own:
            assert own.sql("SELECT CAST('x' AS int) AS x").first() == (None,)
        with pytest.raises(JobFailed, match="CAST_INVALID_INPUT"), spark_errors():
            spark.sql("SELECT CAST('x' AS int) AS x").collect()


def test_a_message_is_one_short_line(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_text("no parquet")
    with engine.session() as spark, pytest.raises(JobFailed) as failed, spark_errors():
        spark.read.schema("x int").parquet(f"file:{tmp_path}/no.parquet").collect()
    assert "no.parquet" in str(failed.value)
    assert "\n" not in str(failed.value)
    assert len(str(failed.value)) <= 600
    assert in_short(ValueError()) == "ValueError"


def test_a_spark_that_can_not_be_had_is_asked_for_once_and_blames_no_bucket(unchecked_lake: Make) -> None:
    asked = []

    def unplugged(declared: Spark) -> NoReturn:
        asked.append(declared)
        raise EngineUnavailable("unplugged")

    lake = unchecked_lake(view(), view("w"), engine=Engine(Spark(), unplugged))
    lake.put("0.parquet", rows_at([0]))
    errors = [report.error for report in lake.run().values()]
    assert [str(error) for error in errors] == [str(EngineUnavailable("unplugged"))] * 2
    assert len(asked) == 1
    assert (lake.snapshot().attempts, lake.snapshot("w").attempts) == ({}, {})


@pytest.mark.slow
def test_a_spark_that_goes_away_in_the_middle_is_started_anew_and_the_bucket_computed(tmp_path: Path) -> None:
    """Perhaps the bucket was too much for it: it is recorded as failed, and runs alone the next time."""
    said = own_process.run("gone", "local", tmp_path).splitlines()
    assert said == ["{0: 'committed'}", f"{{1: 'failed'}} {WENT_AWAY}", "{1: 'committed'}"]


@pytest.mark.slow
def test_a_server_that_is_killed_is_said_to_be_gone(tmp_path: Path) -> None:
    said = own_process.run("gone", "connect", tmp_path).splitlines()
    assert said == ["{0: 'committed'}", f"{{1: 'failed'}} {WENT_AWAY}", "unavailable False"]


def test_of_what_grpc_says_only_the_details_are_kept() -> None:
    said = '<_InactiveRpcError of RPC that ended with:\n\tstatus = X\n\tdetails = "all addresses refused"\n>'
    assert in_short(ConnectionError(said)) == "all addresses refused"
