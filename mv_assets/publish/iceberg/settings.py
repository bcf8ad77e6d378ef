"""What a table is besides its snapshots: its columns, partitions and properties. They are ours too."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json

from mv_assets.publish.contents import VIEW
from mv_assets.publish.iceberg import changes
from mv_assets.publish.iceberg.schemas import holds, mapping_of
from mv_assets.publish.iceberg.snapshots import Known

MAPPING = "schema.name-mapping.default"
# A commit that lost must be derived anew: the library would put it on top of what won.
NO_RETRIES = {"commit.retry.num-retries": "0"}
_PROPERTIES = {
    **NO_RETRIES,
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
    # The files of a view are gc's to delete, and nobody else's.
    "gc.enabled": "false",
}


def properties(view: str) -> dict[str, str]:
    return {**_PROPERTIES, VIEW: view}


def schema_of(metadata: TableMetadata, own: Known | None) -> Schema:
    """The columns of the last snapshot of ours, whatever somebody has made of them since."""
    number = metadata.current_schema_id if own is None else own.snapshot.schema_id
    return next((each for each in metadata.schemas if each.schema_id == number), metadata.schema())


def earlier(metadata: TableMetadata, known: Sequence[Known]) -> list[Schema]:
    """The columns of all snapshots that can be read."""
    named = {each.snapshot.schema_id for each in known}
    return [each for each in metadata.schemas if each.schema_id in named]


def changed(metadata: TableMetadata, own: Known | None, known: Sequence[Known], view: str) -> str | None:
    """What of a table is not as we left it."""
    found = []
    if schema_of(metadata, own).schema_id != metadata.current_schema_id:
        found.append("columns")
    if metadata.spec().fields:
        found.append("partitions")
    given, needed = metadata.properties, _mapping(metadata, own, known)
    if properties(view).items() - given.items() or not _maps(given.get(MAPPING), needed):
        found.append("properties")
    return f"its {' and '.join(found)} were changed by somebody else" if found else None


def set_right(tx: Transaction, own: Known | None, known: Sequence[Known], view: str) -> None:
    """Make it ours again, in the same step as whatever else is staged."""
    metadata = tx.table_metadata
    schema = schema_of(metadata, own)
    if schema.schema_id != metadata.current_schema_id:
        changes.have_columns_again(tx, schema.schema_id)
    if metadata.spec().fields:
        plain = next(each.spec_id for each in metadata.partition_specs if not each.fields)
        changes.partition(tx, plain)
    if changed(metadata, own, known, view):
        tx.set_properties({**properties(view), MAPPING: _mapping(metadata, own, known).model_dump_json()})


def _mapping(metadata: TableMetadata, own: Known | None, known: Sequence[Known]) -> NameMapping:
    mapping, _ = mapping_of(schema_of(metadata, own), earlier(metadata, known))
    return mapping


def _maps(given: str | None, needed: NameMapping) -> bool:
    try:
        return given is not None and holds(parse_mapping_from_json(given), needed)
    except ValidationError:
        return False
