"""Parts of one commit that the library has no words for: each is staged, and lands with the others or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertRefSnapshotId,
    RemoveSnapshotsUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetSnapshotRefUpdate,
)
from pyiceberg.transforms import IdentityTransform

MAIN = "main"


def show(tx: Transaction, snapshot: int) -> None:
    """Let readers see a snapshot that is there already, if they see what was loaded until then."""
    current = tx.table_metadata.refs.get(MAIN)
    before = None if current is None else current.snapshot_id
    shown = {"snapshot-id": snapshot, "ref-name": MAIN, "type": "branch"}
    expected = AssertRefSnapshotId.model_validate({"ref": MAIN, "snapshot-id": before})
    _stage(tx, [SetSnapshotRefUpdate.model_validate(shown)], [expected])


def have_columns(tx: Transaction, schema: Schema) -> None:
    last = SetCurrentSchemaUpdate.model_validate({"schema-id": -1})
    _stage(tx, [AddSchemaUpdate(schema=schema), last])


def have_columns_again(tx: Transaction, number: int) -> None:
    """Those that it had before."""
    _stage(tx, [SetCurrentSchemaUpdate.model_validate({"schema-id": number})])


def partition(tx: Transaction, spec: int) -> None:
    _stage(tx, [SetDefaultSpecUpdate.model_validate({"spec-id": spec})])


def sort(tx: Transaction, column: str | None) -> None:
    """Say by which column the table is sorted, unless that was said."""
    orders = tx.table_metadata.sort_orders
    order = order_by(tx.table_metadata.schema(), column, len(orders))
    known = {each.fields[0].source_id for each in orders if each.fields}
    if order.fields and order.fields[0].source_id not in known:
        added = AddSortOrderUpdate.model_validate({"sort-order": order})
        _stage(tx, [added, SetDefaultSortOrderUpdate.model_validate({"sort-order-id": -1})])


def order_by(schema: Schema, column: str | None, number: int = 1) -> SortOrder:
    found = next((field.field_id for field in schema.fields if field.name == column), None)
    if found is None:
        return SortOrder(order_id=0)
    return SortOrder(SortField(source_id=found, transform=IdentityTransform()), order_id=max(1, number))


def forget(tx: Transaction, snapshots: Iterable[int]) -> None:
    _stage(tx, [RemoveSnapshotsUpdate.model_validate({"snapshot-ids": list(snapshots)})])


def io_of(tx: Transaction) -> FileIO:
    return tx._table.io  # noqa: SLF001 - that of a table which is not there yet can be had nowhere else


def _stage(tx: Transaction, updates: Iterable[Any], requirements: Iterable[Any] = ()) -> None:
    tx._apply(tuple(updates), tuple(requirements))  # noqa: SLF001 - as the module says
