"""DuckDB over the same files: what every query should give."""

from __future__ import annotations

import re

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets_tests.proof.fuzz.comparison import Row, plain
from mv_assets_tests.proof.fuzz.sql.select import Query
from mv_assets_tests.proof.fuzz.world import SCHEMA, World


class Oracle:
    """Knows the files as they are when it is made, and the views as their SQL says."""

    def __init__(self, world: World) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1")
        tables = [world.whole.get(name) or pq.read_table(world.folder / name) for name in world.files]
        events = pa.concat_tables([SCHEMA.empty_table(), *tables])
        # Times without a zone are UTC to DuckDB without further ado.
        times = events["at"].cast(pa.timestamp("us"))
        self._table("events", events.set_column(0, "at", times))
        self._table("zones", pq.read_table(world.lake.folder / "zones" / "zones.parquet"))
        for view in world.views:
            rows = re.sub(r"\bat\b", '"at"', view.duck or view.sql)
            covered = f"\"{view.time}\" >= DATE '{view.start(world.first)}'"
            self._connection.execute(f"CREATE TABLE {view.name} AS SELECT * FROM ({rows}) WHERE {covered}")

    def _table(self, name: str, rows: pa.Table) -> None:
        self._connection.register("given", rows)
        self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self._connection.unregister("given")

    def answer(self, query: Query) -> list[Row]:
        rows = self._connection.execute(query.duck).fetchall()
        return [tuple(map(plain, row)) for row in rows]

    def close(self) -> None:
        self._connection.close()
