"""What 0.1 may have read wrong, or told apart in another way, is computed again; a view beside it is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
import yaml
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType, TimestamptzType, UUIDType
from sqlalchemy import update

from mv_assets.plan import planner
from mv_assets.project import Project
from mv_assets.state.store import Store, schema
from mv_assets_tests.scenarios.migration.home import DAMAGED, put_back
from mv_assets_tests.support.lake import Lake, view
from mv_assets_tests.support.object_store import ObjectStore, object_store

_DAY = "SELECT date_trunc('day', at) AS day, {} FROM events GROUP BY ALL"
VIEWS = [
    view(name, sql=_DAY.format(value), time_column="day")
    for name, value in {
        "plain": "sum(x) AS x",
        "nested": "sum(place.visitors) AS x",
        "ids": "max(id) AS id",
    }.items()
]
_COLUMNS = Schema(
    NestedField(1, "at", TimestamptzType()),
    NestedField(2, "id", UUIDType()),
    NestedField(3, "x", LongType()),
    NestedField(4, "place", StructType(NestedField(5, "visitors", LongType()))),
)
# What the code of 0.1.0 recorded of these views: their definitions, and the columns that each reads.
RECORDED = {
    "plain": ("201777542b572637", -1939533991382610619),
    "nested": ("520e77ba9086709d", 4927785978100734504),
    "ids": ("1b0c2c98cab2a326", -512897422178570419),
}


@pytest.fixture
def store(state_url: str) -> Iterator[Store]:
    opened = Store(state_url)
    yield opened
    opened.close()


@pytest.fixture
def lake(tmp_path: Path, store: Store) -> Lake:
    """Views of an Iceberg table, up to date."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db")
    catalog.create_namespace("db")
    rows = {
        "at": pa.array([datetime(1970, 1, day, 5, tzinfo=UTC) for day in (1, 2)], pa.timestamp("us", "UTC")),
        "id": pa.array([UUID(int=number).bytes for number in (1, 2)], pa.binary(16)),
        "x": [1, 2],
        "place": [{"visitors": 1}, {"visitors": 2}],
    }
    catalog.create_table("db.events", _COLUMNS, f"file://{tmp_path}/events").append(pa.table(rows))
    catalog.close()
    made = Lake(tmp_path, store, VIEWS, table={"format": "iceberg", "unsafe": True})
    made.converge()
    return made


def as_recorded(lake: Lake) -> None:
    """Have the maps say of definitions and columns what 0.1 did."""
    view_, row, definition = schema.view, schema.partition, schema.definition
    with lake.store.database.write() as connection:
        for name, (known, columns) in RECORDED.items():
            inputs = lake.snapshot(name).rows[0].inputs
            assert inputs is not None
            files = [inputs.base.segment_count, inputs.base.crc]
            text = json.dumps([files, known, [["schema of events", [2, columns]]]])
            connection.execute(update(row).where(row.c.view == name).values(inputs=text))
            for table in (view_, definition):
                connection.execute(update(table).where(table.c.view == name).values(definition=known))


def test_of_an_iceberg_table_views_that_reach_inside_a_column_and_those_on_its_uuids(lake: Lake) -> None:
    as_recorded(lake)
    found = {
        name: [(work.operation.value, work.reason) for work in planner.plan(lake.look(name, whole=True)).work]
        for name in RECORDED
    }
    assert found == {
        "plain": [],
        "nested": [("OVERWRITE", "the view's definition changed")],
        "ids": [("OVERWRITE", "schema of events changed")],
    }


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


def test_parquet_tables_on_s3_as_etags_tell_what_changed(
    tmp_path: Path, state_url: str, server: ObjectStore
) -> None:
    """0.1 read each object for the checksum that it took of the same file on a disk."""
    file = put_back(tmp_path, state_url)
    server.create("lake")
    for path in (tmp_path / "trips").iterdir():
        if path.name != DAMAGED:
            server.put(f"lake/trips/{path.name}", path.read_bytes())
    declared = yaml.safe_load(file.read_text())
    declared["tables"][0]["path"] = "s3://lake/trips"
    file.write_text(yaml.safe_dump({**declared, "storage": server.storage()}))
    with Project.open(file) as project:
        [hourly] = project.plan("hourly").as_json()["views"]
    [work] = hourly["work"]
    assert (work["operation"], len(work["buckets"])) == ("OVERWRITE", 12)
