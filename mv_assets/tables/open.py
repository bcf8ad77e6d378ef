"""From a table's declaration to the table."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets.config import DeltaTable, IcebergTable, ParquetTable
from mv_assets.state.store.database import Database
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.files.stores import for_deltalake, for_pyiceberg
from mv_assets.tables.fingerprint import hashed
from mv_assets.tables.iceberg import IcebergFiles
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.listing import Table
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.tables.times import TimeColumn


def open_table(
    declared: ParquetTable | DeltaTable | IcebergTable,
    database: Database | None,
    clock: Callable[[], int],
    *,
    keep: bool = True,
) -> Table:
    """The table, with its inventory in the state database; with `keep` off nothing is written there."""
    time = None if declared.time_column is None else TimeColumn(declared.time_column, declared.time_unit)
    inventory = Inventory(database, _inventory_name(declared), keep)
    name, settle = declared.name, declared.settle
    if isinstance(declared, ParquetTable):
        return ParquetFiles(
            name, declared.path, time, inventory, clock, settle, declared.files, declared.storage
        )
    if isinstance(declared, DeltaTable):
        options = {**for_deltalake(declared.storage), **declared.storage_options}
        return DeltaFiles(
            name, declared.path, time, inventory, clock, settle, declared.reader, options, declared.storage
        )
    return IcebergFiles(
        name,
        declared.path,
        time,
        inventory,
        clock,
        settle,
        declared.reader,
        {**for_pyiceberg(declared.storage), **(declared.catalog or {})},
        declared.identifier,
        declared.unsafe,
        declared.storage,
    )


def _inventory_name(declared: ParquetTable | DeltaTable | IcebergTable) -> str:
    """What was found out about files elsewhere, or by another time column, is not about these."""
    place = declared.path or getattr(declared, "identifier", None)
    about = (declared.format, place, declared.time_column, declared.time_unit)
    return f"{declared.name}:{hashed(repr(about)) & 0xFFFFFFFF:08x}"
