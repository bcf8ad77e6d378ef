"""Base tables and dimensions as observable source assets, by the partitions of their views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

import dagster as dg
from dagster import DagsterEventType, DagsterInstance

from mv_assets.buckets import Buckets
from mv_assets.config import Table
from mv_assets.defs import events
from mv_assets.defs.deployment import Deployment, as_failures
from mv_assets.defs.names import GROUP
from mv_assets.defs.partitions import partitions_of
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import Listing
from mv_assets.views.view import View

# So many partitions are observed at a time, the newest: an event is a write of Dagster's.
_MOST_OBSERVED = 200


def _views_on(deployment: Deployment, table: str) -> list[View]:
    """The views that read windows of a table."""
    return [view for view in deployment.catalog.views.values() if table in view.declared.timed]


def width_of(deployment: Deployment, table: str) -> Buckets | None:
    """The buckets that a table is shown by: the narrowest of its views, UTC's first; None for a dimension."""
    widths = [view.buckets for view in _views_on(deployment, table)]
    return min(widths, key=lambda each: (each.next(0) - each.floor(0), each.zone is not None), default=None)


def table_asset(deployment: Deployment, table: Table, starts: Mapping[str, int]) -> dg.SourceAsset:
    """The asset of one table, with partitions from where the first of its views starts."""
    width = width_of(deployment, table.name)
    start = min((starts[view.name] for view in _views_on(deployment, table.name)), default=0)
    partitions = None if width is None else partitions_of(width, start)

    @dg.observable_source_asset(
        name=table.name,
        partitions_def=partitions,
        description=_description(table),
        metadata={"format": table.format, "time_column": table.time_column or "none: a dimension"},
        group_name=GROUP,
        tags={f"dagster/kind/{table.format}": ""},
    )
    def observe() -> dg.DataVersion | dg.DataVersionsByPartition:
        with as_failures(), deployment.open("Dagster") as project:
            listing = project.tables[table.name].current().listing()
        if width is None:
            return dg.DataVersion(events.version_of(fingerprint(listing.segments())))
        end = width.floor(deployment.now())
        first = max(width.floor(min(listing.starts, default=0)), width.floor(start))
        recent = list(width.between(first, end))[-_MOST_OBSERVED:]
        found = events.fingerprints(listing, width, recent)
        return dg.DataVersionsByPartition(
            {width.key(b): events.version_of(each) for b, each in found.items()}
        )

    return observe


def missing_observations(
    instance: DagsterInstance, listing: Listing, width: Buckets, spans: Iterable[tuple[int, int]]
) -> list[dg.AssetObservation]:
    """Observations of a base table in some stretches of time, where Dagster knows otherwise."""
    parts = {part for start, end in spans for part in islice(width.between(start, end), _MOST_OBSERVED)}
    newest = sorted(parts)[-_MOST_OBSERVED:]
    found = events.observations(listing, width, newest)
    known = instance.event_log_storage.get_latest_tags_by_partition(
        dg.AssetKey(listing.table),
        DagsterEventType.ASSET_OBSERVATION,
        [events.DATA_VERSION],
        asset_partitions=[each.partition for each in found if each.partition is not None],
    )
    return [
        each
        for each in found
        if known.get(each.partition or "", {}).get(events.DATA_VERSION)
        != (each.tags or {}).get(events.DATA_VERSION)
    ]


def _description(table: Table) -> str:
    where = getattr(table, "path", None) or getattr(table, "identifier", None)
    what = "dimension" if table.time_column is None else "base table"
    return f"A {what}: {table.format} at `{where}`. The sensors look at its files; nothing here writes it."
