"""A user's own assets below a view: they are given its rows, and only those that can be trusted."""

from collections.abc import Callable

import dagster as dg
import pytest

from mv_assets_tests.support.lake import day, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster, failure_of

Make = Callable[..., InProcessDagster]
READ: dict[str, list[tuple[object, ...]]] = {}
DAYS = dg.DailyPartitionsDefinition("1970-01-01", timezone="UTC")
WEEKS = dg.WeeklyPartitionsDefinition("1970-01-05", timezone="UTC", day_offset=1)


def _mine() -> dg.Definitions:
    READ.clear()

    @dg.asset(partitions_def=DAYS)
    def daily(context: dg.AssetExecutionContext, v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        READ[context.partition_key] = [tuple(row) for row in v.orderBy("hour").collect()]

    @dg.asset(partitions_def=WEEKS)
    def weekly(context: dg.AssetExecutionContext, v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        READ[f"week {context.partition_key}"] = [tuple(row) for row in v.collect()]

    @dg.asset
    def whole(v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        READ["whole"] = [tuple(row) for row in v.collect()]

    return dg.Definitions(assets=[daily, weekly, whole])


def _mapped() -> dg.Definitions:
    READ.clear()
    second = dg.AssetIn(partition_mapping=dg.SpecificPartitionsPartitionMapping(["1970-01-02"]))
    by_place = dg.MultiPartitionsDefinition({"day": DAYS, "place": dg.StaticPartitionsDefinition(["eu"])})
    tenants, named = dg.StaticPartitionsDefinition(["a"]), dg.DynamicPartitionsDefinition(name="named")

    def reading(name: str, partitions: dg.PartitionsDefinition | None, v: dg.AssetIn) -> dg.AssetsDefinition:
        @dg.asset(name=name, partitions_def=partitions, ins={"v": v})
        def read(v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
            READ[name] = [tuple(row) for row in v.collect()]

        return read

    return dg.Definitions(
        assets=[
            reading("multi", by_place, dg.AssetIn()),
            reading("dynamic", named, dg.AssetIn()),
            reading("specific", tenants, second),
            reading("mapped", None, second),
            reading("all_of_it", tenants, dg.AssetIn(partition_mapping=dg.AllPartitionMapping())),
        ]
    )


def _joining() -> dg.Definitions:
    READ.clear()

    @dg.asset(partitions_def=DAYS)
    def joined(v, w) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        READ["joined"] = [tuple(row) for row in v.join(w, "hour").collect()]

    return dg.Definitions(assets=[joined])


def test_an_asset_may_join_two_views(dagster: Make) -> None:
    made = dagster(view(), view("w", base="v", sql="SELECT hour, n AS m FROM v"), extra=_joining())
    made.settle()
    assert made.execute([dg.AssetKey("joined")], "1970-01-02", {}).success
    assert len(READ["joined"]) == 2


def test_an_asset_gets_the_rows_of_its_partition(dagster: Make) -> None:
    made = dagster(extra=_mine())
    made.settle()
    assert made.execute([dg.AssetKey("daily")], "1970-01-02", {}).success
    assert [row[1] for row in READ["1970-01-02"]] == [1, 1]


def test_an_asset_of_coarser_partitions_gets_them_together(dagster: Make) -> None:
    made = dagster(extra=_mine(), days=tuple(range(12)))
    made.settle()
    assert made.execute([dg.AssetKey("weekly")], "1970-01-05", {}).success
    assert len(READ["week 1970-01-05"]) == 14


def test_an_asset_without_partitions_gets_all_that_is_complete(dagster: Make) -> None:
    made = dagster(extra=_mine())
    made.settle()
    assert made.execute([dg.AssetKey("whole")], None, {}).success
    assert len(READ["whole"]) == 8


@pytest.mark.parametrize(
    ("name", "partition", "rows"),
    [
        ("multi", "1970-01-02|eu", 2),
        ("dynamic", "1970-01-02", 2),
        ("specific", "a", 2),
        ("mapped", None, 2),
        ("all_of_it", "a", 8),
    ],
)
def test_an_asset_gets_what_its_partition_mapping_says(
    dagster: Make, name: str, partition: str | None, rows: int
) -> None:
    made = dagster(extra=_mapped())
    made.instance.add_dynamic_partitions("named", ["1970-01-02"])
    made.settle()
    assert made.execute([dg.AssetKey(name)], partition, {}).success
    assert len(READ[name]) == rows


def test_a_stale_bucket_is_not_given_away(dagster: Make) -> None:
    made = dagster(extra=_mine())
    made.settle()
    made.lake.write("late.parquet", [day(1)])
    made.tick()
    result = made.execute([dg.AssetKey("daily")], "1970-01-02", {})
    assert not result.success
    assert "1970-01-02 of view v can't be trusted now: STALE" in _cause(result)
    assert made.execute([dg.AssetKey("daily")], "1970-01-03", {}).success


def test_a_bucket_that_was_never_computed_is_not_an_empty_one(dagster: Make) -> None:
    made = dagster(extra=_mine())
    made.settle()
    result = made.execute([dg.AssetKey("daily")], "1970-01-09", {})
    assert not result.success
    assert "never computed" in _cause(result)


def test_an_empty_bucket_has_the_columns_of_the_others(dagster: Make) -> None:
    made = dagster(view(sql="SELECT at AS hour, x FROM events WHERE x <> 1"), extra=_mine())
    made.settle()
    assert made.execute([dg.AssetKey("daily")], "1970-01-02", {}).success
    assert READ["1970-01-02"] == []


def _cause(result: dg.ExecuteInProcessResult) -> str:
    return failure_of(result)
