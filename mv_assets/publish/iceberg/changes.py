"""Parts of one commit that the library has no words for: each is staged, and lands with the others or not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotId,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetSnapshotRefUpdate,
)
from pyiceberg.transforms import IdentityTransform

MAIN = "main"
# Readers tolerate a minute.
_TOLERATED_MS = 30_000


def show(tx: Transaction, snapshot: int) -> None:
    """Let readers see a snapshot that is there already, if they see what was loaded until then."""
    current = tx.table_metadata.refs.get(MAIN)
    before = None if current is None else current.snapshot_id
    shown = {"snapshot-id": snapshot, "ref-name": MAIN, "type": "branch"}
    expected = AssertRefSnapshotId.model_validate({"ref": MAIN, "snapshot-id": before})
    _stage(tx, [SetSnapshotRefUpdate.model_validate(shown)], [expected])


def expect_columns(tx: Transaction) -> None:
    """Nobody has changed the columns since they were loaded: what is added would take another's number."""
    metadata = tx.table_metadata
    current = AssertCurrentSchemaId.model_validate({"current-schema-id": metadata.current_schema_id})
    ids = {"last-assigned-field-id": metadata.last_column_id}
    _stage(tx, [], [current, AssertLastAssignedFieldId.model_validate(ids)])


def have_columns(tx: Transaction, schema: Schema, sorted_by: str | None) -> None:
    """Have these from now on, and be sorted by one of them: in one step, as the other order may know none."""
    orders = tx.table_metadata.sort_orders
    order = order_by(schema, sorted_by, max((each.order_id for each in orders), default=0) + 1)
    known = next((each for each in orders if each.fields == order.fields), None)
    added = [] if known is not None else [AddSortOrderUpdate.model_validate({"sort-order": order})]
    number = order.order_id if known is None else known.order_id
    _stage(
        tx,
        [
            AddSchemaUpdate(schema=schema),
            SetCurrentSchemaUpdate.model_validate({"schema-id": -1}),
            *added,
            SetDefaultSortOrderUpdate.model_validate({"sort-order-id": number}),
        ],
    )


def have_columns_again(tx: Transaction, number: int) -> None:
    """Those that it had before."""
    _stage(tx, [SetCurrentSchemaUpdate.model_validate({"schema-id": number})])


def partition(tx: Transaction, spec: int) -> None:
    _stage(tx, [SetDefaultSpecUpdate.model_validate({"spec-id": spec})])


def order_by(schema: Schema, column: str | None, number: int = 1) -> SortOrder:
    found = next((field.field_id for field in schema.fields if field.name == column), None)
    if found is None:
        return SortOrder(order_id=0)
    return SortOrder(SortField(source_id=found, transform=IdentityTransform()), order_id=number)


def forget(tx: Transaction, snapshots: Iterable[int]) -> None:
    _stage(tx, [RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshots)})])


def is_of_later(metadata: TableMetadata) -> bool:
    """Whether a table was written after what is now here: the clock was set, or another one is ahead.

    Readers refuse a table whose history goes back in time.
    """
    return metadata.last_updated_ms > time.time() * 1_000 + _TOLERATED_MS


def io_of(tx: Transaction) -> FileIO:
    return tx._table.io  # noqa: SLF001 - that of a table which is not there yet can be had nowhere else


def _stage(tx: Transaction, updates: Iterable[Any], requirements: Iterable[Any] = ()) -> None:
    tx._apply(tuple(updates), tuple(requirements))  # noqa: SLF001 - as the module says
