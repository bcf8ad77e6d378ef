"""What Dagster was not told yet: buckets that the command line, or a run that died, committed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, takewhile

import dagster as dg
from dagster import DagsterEventType, DagsterInstance

from mv_assets.defs import events
from mv_assets.defs.deployment import Deployment
from mv_assets.defs.names import CONTENT
from mv_assets.defs.tick.claims import Claims
from mv_assets.state import rules
from mv_assets.state.model import Operation, PartitionRow, Snapshot, State
from mv_assets.state.store import Store
from mv_assets.views.view import View

# So many buckets are asked after in a tick; the rest at the next ones.
_MOST = 200
# A bucket that was marked, was computed and came to rest again has fewer lines in the log since.
_MOST_LINES = 20
_COMPUTED = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)

# A place in the order in which a map was committed: version and bucket.
Position = tuple[int, int]
BEGIN: Position = (0, -(1 << 62))


def end_of(version: int) -> Position:
    """After all that was committed up to a version."""
    return version, 1 << 62


def wipes(instance: DagsterInstance, views: Mapping[dg.AssetKey, View]) -> dict[str, float]:
    """When each view that Dagster has a materialization of was wiped last; 0 for never."""
    records = instance.get_asset_records(list(views))
    known = [each.asset_entry for each in records if each.asset_entry.last_materialization is not None]
    details = {views[entry.asset_key].name: entry.asset_details for entry in known}
    return {name: (each.last_wipe_timestamp if each else None) or 0.0 for name, each in details.items()}


def unreported(
    instance: DagsterInstance,
    deployment: Deployment,
    view: View,
    snapshot: Snapshot,
    since: Position,
    claimed: Claims,
    store: Store,
) -> tuple[list[dg.AssetMaterialization], Position]:
    """Materializations of what was committed after `since`, and up to where all is told now.

    Dagster shows what the map says; the map is the truth.
    """
    reports, asked, through = list[dg.AssetMaterialization](), 0, since
    asset = deployment.key_of(view.name)
    changed = sorted(_changed(instance, asset, view, snapshot, since), key=lambda each: each[0])
    free = (row.bucket for _, row in changed if not claimed.has(view, row.bucket))
    knows = _known(instance, asset, view, list(islice(free, _MOST)))
    read: dict[str, str] | None = None
    left = False
    for mark, row in changed:
        # A run that is still on its way tells itself; should it die first, its bucket is asked after again.
        if claimed.has(view, row.bucket):
            left = True
            continue
        if asked >= _MOST:
            return reports, through
        asked += 1
        known = knows.get(row.bucket)
        same = known is not None and _content(known) == row.content
        if row.content != mark[0] or not same:
            valid = rules.effective_state(row, snapshot.header) is State.VALID
            read = provenance(instance, deployment, view) if valid and read is None else read
            # Views above were computed from these very rows: to them nothing is new.
            version = (known.tags or {}).get(events.DATA_VERSION) if known is not None and same else None
            metadata = events.of_bucket(row, "found in the map", _reason(store, view, row.bucket))
            reports.append(
                events.materialization(asset, view, row, metadata, read if valid else None, version)
            )
        through = through if left else mark
    return reports, since if left else end_of(snapshot.header.version)


def _reason(store: Store, view: View, bucket: int) -> str | None:
    """Why a bucket was computed the last time, as the log has it; None if it was new."""
    log = iter(store.events(view.name, bucket, _MOST_LINES))
    computed = next((line for line in log if line.operation in _COMPUTED), None)
    before = takewhile(lambda line: line.operation not in _COMPUTED, log)
    marks = (line.why for line in before if line.operation in (Operation.MARK, Operation.FORCE))
    return None if computed is None else next(marks, None)


def _changed(
    instance: DagsterInstance, asset: dg.AssetKey, view: View, snapshot: Snapshot, since: Position
) -> Iterator[tuple[Position, PartitionRow]]:
    """Rows with new data; and rows that are VALID again without any, where Dagster shows a failed run."""
    failed: Collection[str] | None = None
    # What was not written since is no news: most rows of a large map.
    written = (row for row in snapshot.rows.values() if row.token >= since[0])
    for row in written:
        if row.content is None:
            continue
        if (row.content, row.bucket) > since:
            yield (row.content, row.bucket), row
        elif (row.token, row.bucket) > since and rules.effective_state(row, snapshot.header) is State.VALID:
            failed = _without_materialization(instance, asset) if failed is None else failed
            if view.buckets.key(row.bucket) in failed:
                yield (row.token, row.bucket), row


def _without_materialization(instance: DagsterInstance, asset: dg.AssetKey) -> Collection[str]:
    """Partitions that a run set out to materialize, the last that there was, and did not."""
    storage = instance.event_log_storage
    return storage.get_latest_asset_partition_materialization_attempts_without_materializations(asset)


def provenance(instance: DagsterInstance, deployment: Deployment, view: View) -> dict[str, str]:
    """What a VALID bucket was made from: what Dagster now knows of its inputs."""
    tags: dict[str, str] = {}
    for name in view.declared.reads:
        key = deployment.key_of(name)
        record = instance.get_latest_data_version_record(key)
        known = None if record is None else record.asset_observation or record.asset_materialization
        version = None if known is None else (known.tags or {}).get(events.DATA_VERSION)
        tags |= events.input_tags(key, None if record is None else record.storage_id, version)
    return tags


def _known(
    instance: DagsterInstance, key: dg.AssetKey, view: View, buckets: Sequence[int]
) -> dict[int, dg.AssetMaterialization]:
    """What Dagster was told last of buckets: two questions for all of them, as each takes its time."""
    names = {view.buckets.key(bucket): bucket for bucket in buckets}
    kind = DagsterEventType.ASSET_MATERIALIZATION
    latest = instance.get_latest_storage_id_by_partition(key, kind, set(names)) if names else {}
    if not latest:
        return {}
    wanted = dg.AssetRecordsFilter(asset_key=key, storage_ids=list(latest.values()))
    found = instance.fetch_materializations(wanted, limit=len(latest)).records
    made = (record.asset_materialization for record in found)
    return {names[each.partition]: each for each in made if each is not None and each.partition is not None}


def _content(known: dg.AssetMaterialization) -> object:
    value = known.metadata.get(CONTENT)
    return None if value is None else value.value
