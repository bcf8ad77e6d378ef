"""What Dagster was not told yet: buckets that the command line, or a run that died, committed."""

from __future__ import annotations

import dagster as dg
from dagster import DagsterInstance

from mv_assets.defs import events
from mv_assets.defs.names import CONTENT
from mv_assets.defs.taken import Taken
from mv_assets.state import rules
from mv_assets.state.model import PartitionRow, Snapshot, State
from mv_assets.views.view import View

_MOST = 200


def untold(
    instance: DagsterInstance, view: View, snapshot: Snapshot, since: int, taken: Taken
) -> tuple[list[dg.AssetMaterialization], int]:
    """Materializations of rows that changed after version `since`, and the version up to which all are told.

    Dagster shows what the map says; the map is the truth.
    """
    told, through = list[dg.AssetMaterialization](), snapshot.header.version
    for row in sorted(snapshot.rows.values(), key=lambda row: row.token):
        if row.token <= since or row.content is None:
            continue
        # A run that is still on its way tells itself.
        if taken.has(view, row.bucket) or len(told) >= _MOST:
            through = min(through, row.token - 1)
            continue
        if rules.effective_state(row, snapshot.header) is State.VALID and not _knows(instance, view, row):
            told.append(events.materialization(view, row, events.of_bucket(row, "found in the map")))
    return told, through


def _knows(instance: DagsterInstance, view: View, row: PartitionRow) -> bool:
    key = view.buckets.key(row.bucket)
    record = instance.get_latest_data_version_record(dg.AssetKey(view.name), partition_key=key)
    known = record.asset_materialization if record is not None else None
    value = known.metadata.get(CONTENT) if known is not None else None
    return value is not None and value.value == row.content
