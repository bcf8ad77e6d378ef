"""Views in a time zone as Dagster's assets: partitions are local days, also where zones differ."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from mv_assets.buckets import Buckets
from mv_assets.config import MaterializedView
from mv_assets.defs.picture import picture
from mv_assets_tests.support.lake import EPOCH, HOURLY, view
from mv_assets_tests.unit.defs.in_process import InProcessDagster

Make = Callable[..., InProcessDagster]
NEW_YORK = "America/New_York"
DAYS = Buckets.of("1d", NEW_YORK)
DAILY = "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events GROUP BY ALL"
OF_HOURS = "SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM h GROUP BY ALL"
READ: dict[str, list[int]] = {}


def new_york(name: str = "v", **given: Any) -> MaterializedView:
    declared = {"sql": DAILY, "time_column": "day", "timezone": NEW_YORK, "start": "2024-11-01"}
    return view(name, **{**declared, **given})


def fill(made: InProcessDagster) -> None:
    """A row each half hour of five days, of which one has 25 hours."""
    for number in range(1, 6):
        start = DAYS.parse(f"2024-11-0{number}")
        end = DAYS.next(start)
        made.lake.write(
            f"{number}.parquet", [when(at) for at in range(start, end, 1_800_000)] + [when(end - 1)]
        )


def when(time: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time)


def mine() -> dg.Definitions:
    READ.clear()

    @dg.asset(partitions_def=dg.DailyPartitionsDefinition("2024-11-01", timezone=NEW_YORK))
    def below(context: dg.AssetExecutionContext, v) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
        READ[context.partition_key] = [row.n for row in v.collect()]

    return dg.Definitions(assets=[below])


def partitions_above(made: InProcessDagster, view_: str, key: str, table: str) -> set[str]:
    """The partitions of a table or view that Dagster takes one of a view's to be made of."""
    graph = made.repository.asset_graph
    below, above = graph.get(dg.AssetKey(view_)), graph.get(dg.AssetKey(table))
    assert below.partitions_def is not None
    assert above.partitions_def is not None
    mapping = graph.get_partition_mapping(below.key, above.key)
    found = mapping.get_upstream_mapped_partitions_result_for_partitions(
        below.partitions_def.subset_with_partition_keys([key]),
        below.partitions_def,
        above.partitions_def,
        current_time=when(made.lake.clock()),
    )
    return set(found.partitions_subset.get_partition_keys())


def test_114_partitions_are_local_days_in_ticks_runs_and_assets_below(dagster: Make) -> None:
    made = dagster(new_york(), days=(), extra=mine())
    fill(made)
    assert made.settle() == ["v 2024-11-01..2024-11-05"]
    assert {
        key: each.metadata["rows"].value for key, each in made.materialized("v").items()
    } == dict.fromkeys([f"2024-11-0{number}" for number in range(1, 6)], 1)
    made.lake.write("late.parquet", [when(DAYS.parse("2024-11-04") - 1)])
    assert made.settle() == ["v 2024-11-03"]
    assert made.materialize("v", "2024-11-02", "2024-11-03").success
    assert made.execute([dg.AssetKey("below")], "2024-11-03", {}).success
    assert READ == {"2024-11-03": [52]}
    assert partitions_above(made, "v", "2024-11-03", "events") == {"2024-11-03"}
    assert "2024-11-01 to 2024-11-05, 28 a line" in picture(made.lake.snapshot())


def test_115_a_day_in_a_zone_above_hours_in_utc_loads_and_follows_them(dagster: Make) -> None:
    hours = view("h", sql=HOURLY, bucket="1h", start="2024-11-01T04:00")
    made = dagster(hours, new_york(base="h", sql=OF_HOURS), days=())
    fill(made)
    made.settle()
    assert len(made.materialized("v")) == 5
    made.lake.write("late.parquet", [when(DAYS.parse("2024-11-04") - 1)])
    assert made.settle() == ["h 2024-11-04T04:00", "v 2024-11-03"]
    # Dagster can't tell which hours a day in another zone has: by its book they are all of them.
    assert len(partitions_above(made, "v", "2024-11-03", "h")) > 24


@pytest.mark.parametrize("order", [1, -1])
def test_views_in_several_zones_load_above_one_table(dagster: Make, order: int) -> None:
    views = [new_york(), new_york("k", timezone="Asia/Kolkata"), new_york("u", timezone="UTC")]
    made = dagster(*views[::order], days=())
    fill(made)
    made.settle()
    graph = made.repository.asset_graph
    zones = {name: graph.get(dg.AssetKey(name)).partitions_def.timezone for name in ("v", "k", "u", "events")}  # type: ignore[union-attr]
    assert zones == {"v": NEW_YORK, "k": "Asia/Kolkata", "u": "UTC", "events": "UTC"}
    assert partitions_above(made, "u", "2024-11-03", "events") == {"2024-11-03"}
    for name in ("v", "k", "u"):
        assert made.materialized(name).keys() == {
            made.lake.catalog.view(name).buckets.key(bucket) for bucket in made.lake.snapshot(name).rows
        }
