"""A Delta table beside the demo's files: fares come, and single rows of them are deleted in place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import deleted_by_library

_SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "cents": pa.int64()})
_ROWS = 20


def create(root: Path, chance: np.random.Generator, days: int) -> None:
    DeltaTable.create(root, _SCHEMA)
    log.commit(root, log.protocol("deletionVectors"))
    for ago in range(days + 1):
        append(root, chance, ago)


def append(root: Path, chance: np.random.Generator, ago: int = 0) -> None:
    """Some of the day that ended so many days ago."""
    end = datetime.now(UTC) - timedelta(days=ago)
    times = [end - timedelta(seconds=int(each)) for each in chance.integers(86_400, size=_ROWS)]
    rows = {"at": times, "cents": chance.integers(100, 10_000, size=_ROWS)}
    write_deltalake(root, pa.table(rows, _SCHEMA), mode="append")


def delete(root: Path, chance: np.random.Generator) -> None:
    """By the library, which writes the files anew without these rows."""
    DeltaTable(root).delete(f"cents % 20 = {chance.integers(20)}")


def delete_by_vector(root: Path, chance: np.random.Generator) -> None:
    """The rows stay in their file, and a vector says which of them are gone."""
    gone = deleted_by_library(root)
    name = str(chance.choice(_files(root)))
    rows = pq.read_metadata(root / name).num_rows
    places = sorted({*gone.get(name, ()), int(chance.integers(rows))})
    [path] = {each["path"] for each in log.actions(root, "add") if unquote(each["path"]) == name}
    log.with_vector(root, log.deletion_vector(*places), path)


def rows(root: Path) -> pa.Table:
    """What the table holds, not by mv_assets."""
    gone, found = deleted_by_library(root), []
    for name in _files(root):
        held = pq.read_table(root / name, partitioning=None)
        found.append(held.take([at for at in range(len(held)) if at not in gone.get(name, ())]))
    return pa.concat_tables(found)


def _files(root: Path) -> list[str]:
    return sorted(
        unquote(uri.removeprefix("file://").removeprefix(f"{root}/")) for uri in DeltaTable(root).file_uris()
    )
