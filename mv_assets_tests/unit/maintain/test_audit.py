"""An audit finds what is stored wrong, quarantines exactly that, and never what only changed meanwhile."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.maintain import arrow_check as rereading
from mv_assets.maintain.audit import audit
from mv_assets.maintain.recomputation import Finding
from mv_assets.progress import Progress
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.spark.read import arrow
from mv_assets.state.errors import NotInForce
from mv_assets.state.model import BUCKET
from mv_assets.tables.listing import Listing
from mv_assets.tables.parquet.table import ParquetTableVersion
from mv_assets_tests.support.lake import HOURLY, day, through, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.shop import Shop
from mv_assets_tests.support.spark_lake import SparkLake
from mv_assets_tests.support.warehouse_lake import DuckDbLake

SparkLakes = Callable[..., SparkLake]
DuckDbLakes = Callable[..., DuckDbLake]
Rows = list[dict[str, Any]]
TYPES = pa.schema(
    {
        "at": pa.timestamp("us", "UTC"),
        "i": pa.int64(),
        "dec": pa.decimal128(20, 4),
        "s": pa.string(),
        "d": pa.date32(),
        "ntz": pa.timestamp("us"),
        "f": pa.float64(),
        "g": pa.float32(),
        "xs": pa.list_(pa.float64()),
        "st": pa.struct({"p": pa.int32(), "q": pa.list_(pa.string())}),
        "m": pa.map_(pa.string(), pa.int64()),
        "b": pa.binary(),
    }
)
LAST = 23
RAW = f"SELECT {', '.join(TYPES.names)} FROM events"
SUMS = "SELECT date_trunc('hour', at) AS hour, s, sum(f) AS total, avg(f) AS mean FROM events GROUP BY ALL"


def raw_view() -> Any:
    return view(sql=RAW, time_column="at")


def value(number: int, hour: int) -> dict[str, Any]:
    """One row with something of every type, null where the numbers say so."""
    at = number * 24 + hour
    return {
        "at": through(number)[1] if hour == LAST else day(number, hour),
        "i": at,
        "dec": Decimal(at) / 8 if at % 3 else None,
        "s": f"s{at % 4}" if at % 5 else None,
        "d": date(1969, 12, 1 + at % 28),
        "ntz": day(-number, hour).replace(tzinfo=None, microsecond=at),
        "f": [at / 7, float("nan"), float("-inf"), None, -0.0][at % 5],
        "g": at / 3,
        "xs": [at / 7, None] if at % 2 else None,
        "st": {"p": None, "q": ["x", None]} if at % 2 else None,
        "m": [("k", at), ("l", None)] if at % 3 else [],
        "b": bytes([at % 256]),
    }


def fill(lake: SparkLake, *numbers: int) -> None:
    """Days of twelve rows, of which the last two are the same."""
    for number in numbers:
        rows = [value(number, hour) for hour in (*range(10), LAST, LAST)]
        pq.write_table(pa.Table.from_pylist(rows, TYPES), lake.folder / "events" / f"day-{number}.parquet")


def audited(lake: SparkLake, name: str = "v", most: int | None = None, **given: Any) -> dict[int, str]:
    """An audit; the verdict on each day."""
    return {each.bucket // DAY: each.verdict.value for each in found(lake, name, most, **given)}


def found(lake: SparkLake, name: str = "v", most: int | None = None, **given: Any) -> list[Finding]:
    return audit(lake.open(), lake.catalog.view(name), most, **given)


def files(lake: SparkLake, number: int, name: str = "v") -> list[Path]:
    """The generation files of one day."""
    row = lake.row(number, name)
    assert row is not None
    assert row.generation is not None
    listed = lake.store.files(name, [row.generation])[row.generation]
    return [lake.folder / "warehouse" / file.path for file in listed]


def tamper(lake: SparkLake, number: int, change: Callable[[Rows], Rows], *, name: str = "v") -> None:
    """Rewrite a day's rows behind the map's back, under the recorded size."""
    for path in files(lake, number, name):
        before, size = pq.read_table(path), path.stat().st_size
        mine = [row for row in before.to_pylist() if row[BUCKET] == number * DAY]
        others = [row for row in before.to_pylist() if row[BUCKET] != number * DAY]
        rewrite(path, pa.Table.from_pylist([*others, *(change(mine) if mine else [])], before.schema), size)


def rewrite(path: Path, rows: pa.Table, size: int) -> None:
    """Write another file of exactly the size, with as much metadata as that takes, and no checksum."""
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)
    length = 0
    for _ in range(20):
        with pq.ParquetWriter(
            path, rows.schema, compression="zstd", store_schema=False, write_statistics=False
        ) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"padding": "x" * length})
        if path.stat().st_size == size:
            return
        length = max(length + size - path.stat().st_size, 0)
    pytest.fail(f"{path} can't be made {size} bytes long, it has {path.stat().st_size}")


def first(rows: Rows, **changed: Any) -> Rows:
    return [{**rows[0], **changed}, *rows[1:]]


@pytest.mark.slow
def test_rows_of_every_type_are_equal_to_their_recomputation(spark_lake: SparkLakes) -> None:
    lake = spark_lake(raw_view(), view("sums", sql=SUMS))
    fill(lake, 0, 1, 2)
    lake.run()
    before = lake.version("v"), lake.version("sums")
    assert audited(lake) == audited(lake, "sums") == dict.fromkeys(range(3), "equal")
    assert [each.rows for each in found(lake)] == [12, 12, 12]
    assert (lake.version("v"), lake.version("sums")) == before


TAMPERINGS: list[tuple[Callable[[Rows], Rows], str]] = [
    (lambda rows: first(rows, i=-1), "1 of 12 rows differs"),
    (lambda rows: first(rows, s="x", b=b""), "1 of 12 rows differs"),
    (lambda rows: first(rows, ntz=rows[0]["at"].replace(tzinfo=None)), "1 of 12 rows differs"),
    (lambda rows: [{**row, "s": None} for row in rows], "of 12 rows differ"),
    (lambda rows: [{**row, "d": None} for row in rows], "12 of 12 rows differ"),
    (lambda rows: rows[1:], "1 of 12 rows differs"),
    (lambda rows: [*rows, rows[0]], "1 of 13 rows differs"),
    (lambda _: [], "12 of 12 rows differ"),
    (lambda rows: [{**row, "g": row["g"] * 1.0001} for row in rows], "12 of 12 rows differ"),
    (lambda rows: [{**row, "f": None} for row in rows], "of 12 rows differ"),
    (lambda rows: [{**row, "m": row["m"][:1]} for row in rows], "of 12 rows differ"),
]


def test_tampered_buckets_are_quarantined_and_then_mended(spark_lake: SparkLakes) -> None:
    lake, days = spark_lake(raw_view()), range(2, len(TAMPERINGS) + 2)
    fill(lake, 1, *days)
    lake.run()
    for number, (change, _) in zip(days, TAMPERINGS, strict=True):
        tamper(lake, number, change)
    assert audited(lake) == {0: "equal", 1: "equal"} | dict.fromkeys(days, "different")
    assert lake.states(0, 1, *days) == "VV" + "S" * len(days)
    for number, (_, reason) in zip(days, TAMPERINGS, strict=True):
        row = lake.row(number)
        assert row is not None
        assert row.forced
        assert str(row.reason).startswith("audit: ")
        assert f"{reason} from a recomputation" in str(row.reason)
    assert lake.outcomes() == dict.fromkeys(days, "committed")
    assert set(audited(lake).values()) == {"equal"}
    lake.check()


@pytest.mark.parametrize(("factor", "verdict"), [(1 + 1e-12, "equal"), (1 + 1e-6, "different")])
def test_floats_may_differ_in_their_last_digits_only(
    spark_lake: SparkLakes, factor: float, verdict: str
) -> None:
    lake = spark_lake(view(sql=SUMS))
    pq.write_table(
        pa.Table.from_pylist([{**value(0, hour), "f": hour / 7} for hour in (*range(1, 9), LAST)], TYPES),
        lake.folder / "events" / "day-0.parquet",
    )
    lake.run()
    tamper(lake, 0, lambda rows: [{**row, "total": row["total"] * factor} for row in rows])
    assert audited(lake) == {0: verdict}


def test_a_missing_file_is_found_for_all_buckets_that_it_may_hold(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1)
    lake.run()
    lake.days(2)
    lake.run()
    (path,) = files(lake, 0)
    path.unlink()
    assert audited(lake, most=1) == {2: "equal"}
    assert audited(lake) == {0: "missing", 1: "missing", 2: "equal"}
    assert lake.states(0, 1, 2) == "SSV"
    name = path.relative_to(lake.folder / "warehouse")
    assert lake.reason(0) == f"audit: generation file {name} is missing"
    assert lake.outcomes() == {0: "committed", 1: "committed"}
    assert audited(lake) == dict.fromkeys(range(3), "equal")
    lake.check()


def test_a_sample_of_a_damaged_generation_tells_of_its_other_buckets(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1, 2)
    lake.run()
    files(lake, 0)[0].unlink()
    assert audited(lake, most=1) == dict.fromkeys(range(3), "missing")
    assert lake.states(0, 1, 2) == "SSS"
    lake.run()


def test_a_truncated_file_is_found_by_its_size(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0)
    lake.run()
    (path,) = files(lake, 0)
    size = path.stat().st_size
    os.truncate(path, size // 2)
    assert audited(lake) == {0: "different"}
    assert f"has {size // 2} bytes instead of {size}" in str(lake.reason(0))
    lake.run()
    lake.check()


@pytest.mark.slow
def test_one_file_of_noise_does_not_hide_the_others(spark_lake: SparkLakes) -> None:
    lake = spark_lake(raw_view())
    for number in range(4):
        fill(lake, number)
        lake.run()
    tamper(lake, 0, lambda rows: first(rows, i=-1))
    (footerless,), (noisy,) = files(lake, 1), files(lake, 2)
    footerless.write_bytes(b"x" * footerless.stat().st_size)
    content = bytearray(noisy.read_bytes())
    content[4:1200] = b"\xff" * 1196
    noisy.write_bytes(content)
    assert audited(lake) == {0: "different", 1: "different", 2: "different", 3: "equal"}
    assert "1 of 12 rows" in str(lake.reason(0))
    assert "can't be read" in str(lake.reason(1))
    assert "can't be read" in str(lake.reason(2))
    assert lake.outcomes() == dict.fromkeys(range(3), "committed")
    assert audited(lake) == dict.fromkeys(range(4), "equal")


def test_noise_and_a_wrong_checksum_are_found_and_cost_no_other_bucket_its_verdict(
    spark_lake: SparkLakes,
) -> None:
    lake = spark_lake(view(max_buckets_per_run=1))
    lake.days(0, 1, 2)
    lake.run()
    lake.declare(view())
    (noise,), (changed,) = files(lake, 0), files(lake, 1)
    noise.write_bytes(b"x" * noise.stat().st_size)
    checksum = changed.parent / f".{changed.name}.crc"
    known = checksum.read_bytes()
    tamper(lake, 1, lambda rows: first(rows, n=77))
    checksum.write_bytes(known)
    assert audited(lake) == {0: "different", 1: "different", 2: "equal"}
    assert f"{noise.name} can't be read" in str(lake.reason(0))
    assert f"generation {changed.parent.name} can't be read" in str(lake.reason(1))
    assert lake.states(0, 1, 2) == "SSV"


@pytest.mark.slow
def test_a_file_that_fails_its_checksum_can_not_be_read(spark_lake: SparkLakes) -> None:
    lake = spark_lake(raw_view())
    for number in range(3):
        fill(lake, number)
        lake.run()
    (path,) = files(lake, 1)
    checksum = path.parent / f".{path.name}.crc"
    known = checksum.read_bytes()
    tamper(lake, 1, lambda rows: first(rows, i=-1))
    checksum.write_bytes(known)
    assert audited(lake) == {0: "equal", 1: "different", 2: "equal"}
    assert "can't be read" in str(lake.reason(1))
    lake.run()
    lake.check()


@pytest.mark.parametrize("mount_point", [False, True])
def test_a_warehouse_that_is_not_there_is_no_loss_of_every_bucket(
    duckdb_lake_on_sqlite: DuckDbLakes, *, mount_point: bool
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    with made.unmounted(mount_point=mount_point), pytest.raises(WarehouseUnusable, match="mount or restore"):
        found(made)
    assert made.states(0) == "V"


def test_a_warehouse_that_can_not_be_looked_into_is_no_loss_of_every_bucket(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()
    made.storehouse = 300 * "x"
    with pytest.raises(WarehouseUnusable, match="File name too long"):
        found(made)
    made.storehouse = "warehouse"
    assert made.states(0) == "V"


@pytest.mark.slow
def test_a_view_on_a_view_is_computed_again_from_what_that_one_stores(spark_lake: SparkLakes) -> None:
    daily = "SELECT date_trunc('day', hour) AS hour, sum(n) AS n FROM v GROUP BY ALL"
    lake = spark_lake(view(), view("daily", base="v", sql=daily))
    lake.days(0, 1)
    lake.run()
    assert audited(lake, "daily") == dict.fromkeys(range(2), "equal")
    tamper(lake, 1, lambda rows: first(rows, n=77), name="daily")
    assert audited(lake, "daily") == {0: "equal", 1: "different"}
    assert lake.states(0, 1) == "VV"
    lake.run()
    tamper(lake, 0, lambda rows: first(rows, n=77))
    assert audited(lake) == {0: "different", 1: "equal"}
    (waits, equal) = found(lake, "daily")
    assert (waits.verdict, equal.verdict) == ("not comparable", "equal")
    assert str(waits.reason).startswith("waits for v 1970-01-01")
    lake.run()
    assert audited(lake, "daily") == dict.fromkeys(range(2), "equal")
    lake.check()


@pytest.mark.slow
def test_a_join_is_computed_again_with_its_dimension(spark_lake: SparkLakes) -> None:
    sql = HOURLY.replace("count(*) AS n FROM events", "label, count(*) AS n FROM events JOIN z USING (x)")
    lake = spark_lake(view(sql=sql, dimensions=["z"]), dimensions=["z"])
    labels = lake.folder / "z" / "z.parquet"
    pq.write_table(pa.table({"x": [0, 1], "label": ["zero", None]}), labels)
    lake.days(0, 1)
    lake.run()
    assert audited(lake) == dict.fromkeys(range(2), "equal")
    tamper(lake, 0, lambda rows: first(rows, label=None))
    assert audited(lake) == {0: "different", 1: "equal"}
    lake.run()
    pq.write_table(pa.table({"x": [0, 1], "label": ["nil", None]}), labels)
    assert [each.reason for each in found(lake)] == ["its inputs changed"] * 2


def test_buckets_without_rows_are_equal_to_no_rows(spark_lake: SparkLakes) -> None:
    lake = spark_lake(view(sql=HOURLY.replace("GROUP", "WHERE x <> 1 GROUP")))
    lake.days(0, 1, 2)
    lake.run()
    lake.remove("day-0.parquet")
    lake.run()
    assert [(each.verdict, each.rows) for each in found(lake)] == [("equal", 0), ("equal", 0), ("equal", 2)]


def test_a_sample_has_the_newest_and_all_has_all(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(*range(6))
    lake.run()
    samples = [set(audited(lake, most=3, chance=random.Random(seed))) for seed in range(3)]
    assert all(len(sample) == 3 and 5 in sample for sample in samples)
    assert audited(lake, most=3, chance=random.Random(0)).keys() == samples[0]
    assert len(set(map(frozenset, samples))) > 1
    assert set(audited(lake, most=1)) == {5}
    assert set(audited(lake, most=99)) == set(audited(lake)) == set(range(6))


def test_what_changed_since_can_not_be_compared_and_is_left_alone(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1)
    lake.run()
    lake.write("late.parquet", [day(0)])
    version = lake.version()
    (changed, equal) = found(lake)
    assert (changed.verdict, changed.reason) == ("not comparable", "its inputs changed")
    assert equal.verdict == "equal"
    assert set(audited(lake, most=1)) == {1}
    assert lake.version() == version


def reasons(lake: SparkLake, name: str = "v", **given: Any) -> dict[int, str | None]:
    """An audit that can compare nothing; why that is so for each day."""
    findings = found(lake, name, **given)
    assert {each.verdict for each in findings} == {"not comparable"}
    return {each.bucket // DAY: each.reason for each in findings}


def test_a_bucket_whose_rows_an_approximate_function_decides_on_can_not_be_compared(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite(view(sql=f"{HOURLY} HAVING approx_percentile(x, 0.5) >= 0"))
    made.days(0)
    made.run()
    assert reasons(made) == {0: "an approximate function of its SQL decides which rows there are"}


def test_a_bucket_that_is_frozen_can_not_be_compared(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite(view(on_base_delete="freeze"))
    made.days(0)
    made.write("today.parquet", [day(1)])
    made.run()
    made.remove("day-0.parquet")
    made.run()
    assert reasons(made) == {0: "it is frozen: files that it was computed from are gone"}


def test_a_bucket_that_waits_for_its_upstream_can_not_be_compared(spark_lake: SparkLakes) -> None:
    lake = spark_lake(view(), view("daily", base="v", sql="SELECT hour, n FROM v"))
    lake.days(0)
    lake.run()
    lake.manager.force(lake.catalog.view("v").declaration, [0], "a person")
    (why,) = reasons(lake, "daily").values()
    assert str(why).startswith("waits for v 1970-01-01")


def test_a_bucket_that_is_computed_while_an_audit_begins_can_not_be_compared(
    duckdb_lake_on_sqlite: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(0)
    made.run()

    really = ParquetTableVersion.listing

    def peer(version: ParquetTableVersion, *given: Any) -> Listing:
        monkeypatch.setattr(ParquetTableVersion, "listing", really)
        made.write("late.parquet", [day(0)])
        made.days(1)
        made.run()
        return really(version, *given)

    monkeypatch.setattr(ParquetTableVersion, "listing", peer)
    assert reasons(made) == {
        0: "its inputs changed",
        1: "it was computed after this audit began",
    }


@dataclass
class During(Progress):
    """Something happens before the job, or after it and before its verdicts are confirmed."""

    after: Callable[[], object] = lambda: None
    before: Callable[[], object] = lambda: None
    left: int = 0

    def plans(self, buckets: int, size: int) -> None:
        assert size == 0
        self.left = buckets
        self.before()

    def ends(self, buckets: int, size: int) -> None:
        assert size == 0
        self.left -= buckets
        if buckets and not self.left:
            self.after()


def test_a_base_that_changes_during_the_audit_leads_to_no_quarantine(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1)
    lake.run()
    tamper(lake, 0, lambda rows: first(rows, n=77))
    tamper(lake, 1, lambda rows: first(rows, n=77))
    late = During(lambda: lake.write("late.parquet", [day(0)]))
    (changed, different) = found(lake, progress=late)
    assert (changed.verdict, changed.reason) == ("not comparable", "its inputs changed while it was audited")
    assert different.verdict == "different"
    assert lake.row(0).forced is False  # type: ignore[union-attr]
    lake.run()
    # The late file was merged into what is wrong, and the next audit finds that.
    assert [finding.verdict for finding in found(lake)] == ["different", "equal"]
    lake.run()
    lake.check()


def test_a_file_that_is_replaced_while_it_is_read_leads_to_no_quarantine(spark_lake: SparkLakes) -> None:
    lake = spark_lake(view(sql="SELECT at, x FROM events", time_column="at"))
    lake.days(0)
    lake.run()

    def replaced() -> None:
        lake.write("day-0.parquet", [day(0, 1), day(0, 2)], 5)

    (finding,) = found(lake, progress=During(before=replaced))
    assert (finding.verdict, lake.row(0).forced) == ("not comparable", False)  # type: ignore[union-attr]


def test_a_bucket_that_is_computed_anew_during_the_audit_is_not_quarantined(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0)
    lake.run()
    tamper(lake, 0, lambda rows: first(rows, n=77))

    def peer() -> None:
        lake.manager.force(lake.catalog.view("v").declaration, [0], "a person")
        lake.run()

    (finding,) = found(lake, progress=During(peer))
    assert (finding.verdict, lake.states(0)) == ("not comparable", "V")
    lake.check()


def test_a_quarantined_bucket_is_not_marked_again(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0)
    lake.run()
    tamper(lake, 0, lambda rows: first(rows, n=77))
    assert audited(lake) == {0: "different"}
    version = lake.version()
    assert audited(lake) == {0: "different"}
    assert lake.version() == version


@pytest.mark.parametrize("whole", [True, False], ids=["a file", "a column of it"])
def test_a_bucket_that_can_not_be_computed_again_says_why_and_stays(
    spark_lake: SparkLakes, *, whole: bool
) -> None:
    sql = "SELECT date_trunc('hour', at) AS hour, sum(1 DIV x) AS n FROM events GROUP BY ALL"
    lake = spark_lake(view(sql=sql))
    for number in (1, 2):
        lake.days(number)
    lake.run()
    assert audited(lake)[1] == "equal"
    broken = lake.folder / "events" / "day-2.parquet"
    content, stat = broken.read_bytes(), broken.stat()

    def damage() -> None:
        if whole:
            broken.write_bytes(b"x" * len(content))
        else:
            lake.spoil(broken.name, "x")

    findings = {each.bucket // DAY: each for each in found(lake, progress=During(before=damage))}
    assert (findings[1].verdict, findings[2].verdict) == ("equal", "not comparable")
    assert lake.states(1, 2) == "VV"
    broken.write_bytes(content)
    os.utime(broken, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_approximate_columns_are_left_out(spark_lake: SparkLakes) -> None:
    sql = HOURLY.replace("AS n", "AS n, approx_percentile(x, 0.5) AS p")
    oracle = sql.replace("approx_percentile(x, 0.5)", "max(x)").replace(" at)", ' "at")')
    lake = spark_lake(view(sql=sql), oracle={"v": oracle})
    lake.days(0)
    lake.run()
    tamper(lake, 0, lambda rows: first(rows, p=77))
    assert audited(lake) == {0: "equal"}
    tamper(lake, 0, lambda rows: first(rows, n=77, p=0))
    assert audited(lake) == {0: "different"}
    lake.run()


def test_a_view_that_nobody_refreshed_has_nothing_to_audit(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    assert found(lake) == []
    lake.days(0)
    lake.look()
    assert found(lake) == []


def test_a_definition_that_is_not_in_force_is_refused(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0)
    lake.run()
    lake.declare(view(sql=HOURLY.replace("count(*)", "count(x)")))
    with pytest.raises(NotInForce):
        found(lake)


# What is read a second way


def reread(lake: SparkLake, name: str = "v", **given: Any) -> dict[int, bool | str | None]:
    """An audit; of each day whether Arrow read it too, or why not."""
    return {each.bucket // DAY: each.reread or each.not_reread for each in found(lake, name, **given)}


def test_rows_of_every_type_are_the_same_to_arrow(spark_lake: SparkLakes) -> None:
    lake = spark_lake(raw_view(), view("sums", sql=SUMS))
    fill(lake, 0, 1)
    lake.run()
    assert reread(lake) == reread(lake, "sums") == {0: True, 1: True}


def test_a_view_on_a_view_and_a_dimension_are_read_by_arrow_too(spark_lake: SparkLakes) -> None:
    joined = HOURLY.replace("count(*) AS n FROM events", "label, count(*) AS n FROM events JOIN z USING (x)")
    daily = "SELECT date_trunc('day', hour) AS hour, sum(n) AS n FROM v GROUP BY ALL"
    lake = spark_lake(
        view(sql=joined, dimensions=["z"]), view("daily", base="v", sql=daily), dimensions=["z"]
    )
    pq.write_table(pa.table({"x": [0, 1], "label": ["zero", None]}), lake.folder / "z" / "z.parquet")
    lake.days(0, 1)
    lake.run()
    assert reread(lake) == reread(lake, "daily") == {0: True, 1: True}


def test_as_many_buckets_are_reread_as_fit_and_larger_ones_say_so(
    spark_lake: SparkLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = spark_lake()
    lake.days(*range(5))
    lake.run()
    sizes = [path.stat().st_size for path in (lake.folder / "events").iterdir()]
    monkeypatch.setattr(rereading, "MOST", 3)
    sample = reread(lake, chance=random.Random(1))
    assert sample[4] is True
    assert sorted(sample.values(), key=str) == [None, None, True, True, True]
    monkeypatch.setattr(rereading, "LARGEST", max(sizes) + 1)
    assert reread(lake) == {4: True} | dict.fromkeys(range(4))
    monkeypatch.setattr(rereading, "LARGEST", 1)
    assert reread(lake, most=1) == {4: "more than 0 MB of files"}
    monkeypatch.undo()
    monkeypatch.setattr(arrow, "LARGEST", 1)
    assert reread(lake, most=1) == {4: "its rows take more than 0 MB in memory"}


def test_a_file_that_arrow_can_not_open_costs_no_other_bucket_its_reading(spark_lake: SparkLakes) -> None:
    lake = spark_lake()
    lake.days(0, 1)
    lake.run()
    away = lake.folder / "events" / "day-0.parquet"

    def gone() -> None:
        away.rename(lake.folder / "away")

    (changed, equal) = found(lake, progress=During(gone))
    (lake.folder / "away").rename(away)
    assert (changed.verdict, changed.reason) == ("not comparable", "its inputs changed while it was audited")
    assert (equal.verdict, equal.reread) == ("equal", True)


CODE = """\
import itertools

from pyspark.sql import functions as F

calls = itertools.count()


def counted(events, bucket):
    return events.groupBy("x").agg(F.count("*").alias("n")).withColumn("day", F.lit(bucket.start))


def fickle(events, bucket):
    return counted(events, bucket).withColumn("n", F.col("n") + next(calls))
"""
ROLLING = """
    WITH counted AS (SELECT x, count(*) AS n FROM events GROUP BY x)
    SELECT :bucket_start AS day, x, n FROM counted
"""


def by_bucket(name: str, **given: Any) -> Any:
    base = {"table": "events", "from": "1d"}
    return view(name, **{"base": base, "scope": "bucket", "sql": ROLLING, "time_column": "day", **given})


def test_views_that_are_meant_by_bucket_are_computed_again_by_the_same_meaning(
    spark_lake: SparkLakes, shop: Callable[..., Shop]
) -> None:
    function = by_bucket("function", sql=None, python="shop.views:counted")
    lake = spark_lake(by_bucket("v"), function, code=shop(CODE).folder)
    lake.days(0, 1, 2)
    lake.run()
    for name in ("v", "function"):
        assert audited(lake, name) == dict.fromkeys(range(3), "equal")
        assert [(each.reread, each.not_reread) for each in found(lake, name)] == [(True, None)] * 3
    tamper(lake, 1, lambda rows: first(rows, n=77), name="function")
    assert audited(lake, "function") == {0: "equal", 1: "different", 2: "equal"}


def test_a_function_that_gives_other_rows_each_time_is_found(
    spark_lake: SparkLakes, shop: Callable[..., Shop]
) -> None:
    lake = spark_lake(by_bucket("v", sql=None, python="shop.views:fickle"), code=shop(CODE).folder)
    lake.days(0, 1)
    lake.run()
    assert audited(lake) == {0: "different", 1: "different"}
    assert "from a recomputation" in str(lake.reason(0))
