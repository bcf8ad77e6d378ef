"""What Dagster is told of a bucket, of a view, and of a base table's partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import Buckets, duration, iso
from mv_assets.defs.names import CONTENT
from mv_assets.defs.picture import picture
from mv_assets.publish.names import name_of
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.opened import OpenProject
from mv_assets.run.result import Result
from mv_assets.state import health
from mv_assets.state.model import BUCKET, Fingerprint, PartitionRow, Snapshot
from mv_assets.state.publications import Publications
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import Listing
from mv_assets.tables.parts import pieces
from mv_assets.tables.reach import sweep
from mv_assets.tables.times import LAST
from mv_assets.text import in_markdown
from mv_assets.views.view import View

_MOST_BROKEN = 20
DATA_VERSION = "dagster/data_version"
_USER_PROVIDED = "dagster/data_version_is_user_provided"
_CODE_VERSION = "dagster/code_version"

Metadata = dict[str, Any]


def of_result(row: PartitionRow, result: Result) -> Metadata:
    """Metadata of one bucket: what was done, from what, and what changed since it was computed before."""
    changes = result.changes
    if changes is None:
        return of_bucket(row, result.outcome.value, result.reason)
    return {
        **of_bucket(row, result.outcome.value, changes.says or "no file changed"),
        "files added": changes.added,
        "files changed": changes.changed,
        "files removed": changes.removed,
        **_lag(row, result),
    }


def of_bucket(row: PartitionRow, outcome: str, reason: str | None) -> Metadata:
    """Metadata of one bucket, as the map has it."""
    inputs = row.inputs
    return {
        "operation": "" if row.operation is None else row.operation.value,
        "outcome": outcome,
        "state": row.state.value,
        "dagster/partition_row_count": row.rows,
        "rows": row.rows,
        "files": 0 if inputs is None else inputs.base.segment_count,
        **({} if reason is None else {"reason": in_files(reason)}),
        "fingerprint": "" if inputs is None else version_of(inputs.base),
        "bytes": row.bytes,
        "seconds": dg.MetadataValue.float(row.duration_ms / 1_000),
        "generation": row.generation or "",
        CONTENT: row.content or 0,
    }


def in_files(reason: str) -> str:
    """What the map says of segments, in the word that Dagster's users know; names of files are left alone."""
    return re.sub(r"\b(\d+) segment(s?) (added|changed|removed)(?= [(])", r"\1 file\2 \3", reason)


def _lag(row: PartitionRow, result: Result) -> Metadata:
    """How long it took from the newest file until the bucket was VALID, where a file was the reason."""
    newest, changes = result.newest, result.changes
    if changes is None or not (changes.added or changes.changed):
        return {}
    if newest is None or row.refreshed_at is None:
        return {}
    # Clocks of stores may be ahead.
    return {"seconds from newest file": dg.MetadataValue.float(max(row.refreshed_at - newest, 0) / 1_000)}


def of_view(snapshot: Snapshot, now: int) -> Metadata:
    """Metadata of the view as a whole, once a run."""
    counts, lag = health.counts(snapshot), health.lag(snapshot.header, now)
    return {
        "watermark": iso(snapshot.header.watermark),
        "lag": duration(lag),
        "buckets": ", ".join(f"{count} {state.value}" for state, count in sorted(counts.items())),
        "partition_map": dg.MetadataValue.md(picture(snapshot)),
    }


def published_at(project: OpenProject, view: View) -> Metadata:
    """Where other tools find the view, once it is there."""
    declared = project.catalog.target(view.name)
    if declared is None:
        return {}
    found = Publications(project.store).at(view.name, name_of(declared, view.name))
    if found is None or found.location is None:
        return {}
    return {"dagster/uri": found.location, "dagster/table_name": found.table}


def columns_of(project: OpenProject, view: View, rows: Iterable[PartitionRow]) -> Metadata:
    """The columns as the newest of some generations has them."""
    named = [row.generation for row in rows if row.generation is not None]
    files = project.store.files(view.name, named[-1:])
    for file in (file for found in files.values() for file in found):
        try:
            with project.warehouse.open(file.path) as opened:
                schema = pq.read_schema(opened)
        except (OSError, pa.ArrowException, WarehouseUnusable):
            return {}
        columns = [dg.TableColumn(part.name, str(part.type)) for part in schema if part.name != BUCKET]
        return {"dagster/column_schema": dg.TableSchema(columns)}
    return {}


def materialization(
    asset: dg.AssetKey,
    view: View,
    row: PartitionRow,
    metadata: Metadata,
    tags: Mapping[str, str] | None = None,
    version: str | None = None,
) -> dg.AssetMaterialization:
    """A bucket that was committed, told explicitly; with the `version` under which it is known, if it is."""
    versions = {DATA_VERSION: version or str(row.content or 0), _USER_PROVIDED: "true"}
    # A code version without inputs would be taken for one that has none.
    read = {} if tags is None else {_CODE_VERSION: view.definition, **tags}
    return dg.AssetMaterialization(
        asset, partition=view.buckets.key(row.bucket), metadata=metadata, tags={**versions, **read}
    )


def input_tags(key: dg.AssetKey, pointer: int | None, version: str | None) -> dict[str, str]:
    """Which version of an input was read, and with which event Dagster learnt of it."""
    name = key.to_user_string()
    return {
        f"dagster/input_event_pointer/{name}": "NULL" if pointer is None else str(pointer),
        f"dagster/input_data_version/{name}": version or "INITIAL",
    }


def version_of(found: Fingerprint) -> str:
    return f"{found.segment_count}:{found.crc}"


def fingerprints(listing: Listing, width: Buckets, buckets: Iterable[int]) -> dict[int, Fingerprint]:
    """What a table holds now in some of its partitions."""
    return {
        reach.bucket: reach.fingerprint
        for stretch in width.stretches(buckets)
        for reach in sweep(listing, width, stretch[0], width.next(stretch[-1]))
    }


def observations(
    asset: dg.AssetKey, listing: Listing, width: Buckets, buckets: Iterable[int]
) -> list[dg.AssetObservation]:
    """What a base table holds now, partition by partition."""
    found, table = fingerprints(listing, width, buckets), of_table(listing)
    return [_observation(asset, width.key(bucket), each, table) for bucket, each in found.items()]


def observation(asset: dg.AssetKey, listing: Listing) -> dg.AssetObservation:
    """What a dimension holds now."""
    return _observation(asset, None, fingerprint(listing.segments()), of_table(listing))


def of_table(listing: Listing) -> Metadata:
    """What a base table holds as a whole, and what is wrong with it."""
    broken = [f"- {in_markdown(str(file))}" for file in islice(listing.broken.values(), _MOST_BROKEN)]
    left = len(listing.broken) - len(broken)
    more = [f"- and {left} more"] if left else []
    newest = newest_data(listing)
    return {
        "files of the table": listing.number,
        "newest data": "none" if newest is None else iso(newest),
        "broken files": dg.MetadataValue.md("\n".join([*broken, *more]) or "none"),
    }


def newest_data(listing: Listing) -> int | None:
    """The latest time of a table's data; None if it has none."""
    # A file without a time of its own belongs to all times.
    ends = (ends[ends < LAST] for ends in pieces(listing.ends))
    return max((int(some.max()) for some in ends if some.size), default=None)


def _observation(
    asset: dg.AssetKey, partition: str | None, found: Fingerprint, table: Metadata
) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset,
        partition=partition,
        metadata={"files": found.segment_count, "fingerprint": version_of(found), **table},
        tags={DATA_VERSION: version_of(found), _USER_PROVIDED: "true"},
    )
