"""A lake for tables that DuckDB would read otherwise: files of any shape, and tables of any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.config import MaterializedView
from mv_assets.config.file import Draft
from mv_assets.plan.scope import Scope
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake

MOMENT = timedelta(microseconds=1)
AT = pa.timestamp("us", "UTC")


def daily(*columns: str, **given: Any) -> MaterializedView:
    """A view of a row a day; of some columns, or of what they come to."""
    listed = ", ".join(columns)
    sql = f"SELECT date_trunc('day', at) AS hour, {listed} FROM events"
    return view(**{"sql": sql, **given})


def rows_at(times: Sequence[Any], kind: pa.DataType = AT, **columns: Any) -> pa.Table:
    """Rows at some times, or at the very ends of days; a plain value is that of all rows."""
    stamps = [
        day(time + 1, 0) - MOMENT if isinstance(time, int) and pa.types.is_timestamp(kind) else time
        for time in times
    ]
    arrays = {
        name: value if isinstance(value, pa.Array) else pa.array([value] * len(stamps))
        for name, value in columns.items()
    }
    return pa.table({"at": pa.array(stamps, kind), **arrays})


@dataclass
class UncheckedLake(SparkLake):
    """`table` may say a `format`."""

    def know_schemas(self) -> None:
        """Go on as a command that held the project against its tables."""
        self.catalog = prepare(Draft("test", self.project), schemas=True)

    def put(self, name: str, rows: pa.Table, **options: Any) -> Path:
        path = self.folder / "events" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path, **options)
        return path

    def rows(self, *columns: str) -> list[Any]:
        """What the view stored, of some of its columns; in order."""
        listed = self.stored().select(columns).to_pylist()
        found = [tuple(row.values()) if len(columns) > 1 else row[columns[0]] for row in listed]
        return sorted(found, key=repr)

    def failures(self) -> dict[int, str]:
        """Why days failed."""
        records = sorted(self.snapshot().attempts.items())
        return {bucket // DAY: record.last_error for bucket, record in records if record.last_error}

    def force(self, number: int) -> None:
        """Have a day computed again."""
        self.manager.force(self.catalog.views["v"].declaration, [number * DAY], "again")


def only(number: int) -> Scope:
    """One day."""
    return Scope(number * DAY, (number + 1) * DAY)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
