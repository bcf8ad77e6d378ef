"""A home of mv_assets 0.1.0, put back: what its code wrote into the state, its tables, and its warehouse."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import sqlglot
import yaml
from sqlalchemy import create_engine, make_url, text

from mv_assets.state.model import BUCKET
from mv_assets.views.catalog import load

HERE = Path(__file__).parent
DAMAGED = "broken.parquet"
_IDS = "SELECT setval(pg_get_serial_sequence('mv_event', 'id'), (SELECT max(id) FROM mv_event))"


def put_back(folder: Path, url: str) -> Path:
    """The whole of it; gives the project file."""
    declared = yaml.safe_load((HERE / "project.yaml").read_text())
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump({**declared, "state": url}, sort_keys=False))
    _write_tables(folder)
    _write_state(url)
    _write_warehouse(folder, url)
    return file


def _write_tables(folder: Path) -> None:
    """The files, byte by byte: a checksum is of the whole file."""
    content = defaultdict[str, str](str)
    name = ""
    for line in (HERE / "files.txt").read_text().splitlines():
        if line.startswith(" "):
            content[name] += line.strip()
        else:
            name = line
    for name, encoded in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(encoded))


def _write_state(url: str) -> None:
    is_sqlite = make_url(url).get_backend_name() == "sqlite"
    engine = create_engine(url)
    with engine.begin() as connection:
        for line in (HERE / "home.sql").read_text().splitlines():
            if line and not line.startswith("--"):
                statement = line.replace("BIGSERIAL", "INTEGER") if is_sqlite else line
                connection.exec_driver_sql(statement)
        if not is_sqlite:
            connection.execute(text(_IDS))
    engine.dispose()


def _write_warehouse(folder: Path, url: str) -> None:
    """The rows that the map names, in the files that it names."""
    catalog, engine = load(folder / "project.yaml", schemas=False), create_engine(url)
    with engine.connect() as asked, duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name in ("trips", "zones", "visits"):
            files = [str(path) for path in (folder / name).glob("*.parquet") if path.name != DAMAGED]
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({files})")
        for view in catalog.views.values():
            sql = sqlglot.transpile(view.select.bare, "spark", "duckdb")[0]
            connection.execute(f"CREATE VIEW {view.name} AS {sql}")
            rows = connection.sql(f"SELECT * {_as_in_spark(connection, view.name)} FROM {view.name}")
            rows = rows.to_arrow_table()
            times = rows[view.declared.time_column].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
            starts = pa.array([view.buckets.floor(each) for each in times.to_pylist()], pa.int64())
            rows = rows.append_column(BUCKET, starts)
            named = asked.execute(
                text(
                    "SELECT g.id, g.files, p.bucket FROM mv_generation g JOIN mv_partition p "
                    "ON p.generation = g.id WHERE g.view = :view"
                ),
                {"view": view.name},
            ).all()
            buckets = defaultdict[str, list[int]](list)
            for generation, _, bucket in named:
                buckets[generation].append(bucket)
            for generation, files in {(each.id, each.files) for each in named}:
                [[path, *_]] = json.loads(files)
                place = folder / ".mv_assets" / "warehouse" / path
                place.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(rows.filter(pc.is_in(starts, pa.array(buckets[generation]))), place)
    engine.dispose()


def _as_in_spark(connection: duckdb.DuckDBPyConnection, view: str) -> str:
    """Its sums of whole numbers are no wider than those."""
    described = connection.sql(f"DESCRIBE {view}").fetchall()
    sums = [f"CAST({name} AS BIGINT) AS {name}" for name, kind, *_ in described if kind == "HUGEINT"]
    return f"REPLACE ({', '.join(sums)})" if sums else ""
