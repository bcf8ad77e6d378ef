"""Base tables and dimensions as external assets, by the partitions of their views."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import cast

import dagster as dg
from dagster import DagsterEventType, DagsterInstance

from mv_assets.buckets import Buckets
from mv_assets.config import Table
from mv_assets.defs import events
from mv_assets.defs.deployment import Deployment, as_failures
from mv_assets.defs.partitions import partitions_of
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import Listing
from mv_assets.text import in_markdown
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


def _start(deployment: Deployment, table: str, starts: Mapping[str, int]) -> int:
    """Where the first of its views starts."""
    return min((starts[view.name] for view in _views_on(deployment, table)), default=0)


def table_asset(
    deployment: Deployment, table: Table, starts: Mapping[str, int]
) -> dg.AssetSpec | dg.AssetsDefinition:
    """The asset of one table, with partitions from where the first of its views starts.

    It is external: nothing here writes it, and the sensors tell what they see of it.
    """
    width, naming = width_of(deployment, table.name), deployment.naming
    start = _start(deployment, table.name, starts)
    spec = dg.AssetSpec(
        deployment.key_of(table.name),
        partitions_def=None if width is None else partitions_of(width, start),
        description=_description(table),
        metadata=_metadata(table),
        group_name=naming.group,
        owners=list(naming.owners),
        tags=naming.tags,
        kinds={table.format},
    )
    return spec if width is not None else _observable(deployment, table, spec)


def _observable(deployment: Deployment, table: Table, spec: dg.AssetSpec) -> dg.AssetsDefinition:
    """A dimension: without partitions, Dagster takes in what was observed of observable assets only."""

    @dg.multi_observable_source_asset(specs=[spec], name=spec.key.to_python_identifier())  # type: ignore[untyped-decorator]
    def observe() -> Iterator[dg.ObserveResult]:
        with as_failures(), deployment.open("Dagster") as project:
            listing = project.tables[table.name].current().listing()
        yield dg.ObserveResult(
            asset_key=spec.key,
            data_version=dg.DataVersion(events.version_of(fingerprint(listing.segments()))),
        )

    return cast("dg.AssetsDefinition", observe)


def missing_observations(
    instance: DagsterInstance,
    asset: dg.AssetKey,
    listing: Listing,
    width: Buckets,
    spans: Iterable[tuple[int, int]],
    in_any_case: Collection[int],
) -> list[dg.AssetObservation]:
    """Observations of a base table in some stretches of time, where Dagster knows otherwise.

    And of partitions in any case: each observation says what there is of the table as a whole, too.
    """
    parts = {part for start, end in spans for part in islice(width.between(start, end), _MOST_OBSERVED)}
    wanted = sorted({*sorted(parts)[-_MOST_OBSERVED:], *in_any_case})
    certain = {width.key(part) for part in in_any_case}
    found = events.observations(asset, listing, width, wanted)
    known = instance.event_log_storage.get_latest_tags_by_partition(
        asset,
        DagsterEventType.ASSET_OBSERVATION,
        [events.DATA_VERSION],
        asset_partitions=[each.partition for each in found if each.partition is not None],
    )
    return [
        each
        for each in found
        if each.partition in certain
        or known.get(each.partition or "", {}).get(events.DATA_VERSION)
        != (each.tags or {}).get(events.DATA_VERSION)
    ]


def newest_partition(
    deployment: Deployment, table: str, listing: Listing, starts: Mapping[str, int], now: int
) -> list[int]:
    """The last partition that a table's data reaches, of those that Dagster has by now, if it has any."""
    width = width_of(deployment, table)
    if width is None:
        return []
    first, last = width.floor(_start(deployment, table, starts)), width.floor(width.floor(now) - 1)
    newest = events.newest_data(listing)
    reached = last if newest is None else min(width.floor(newest), last)
    return [max(first, reached)] if first <= last else []


def _metadata(table: Table) -> dict[str, object]:
    """What it is and where, as Dagster's other integrations say it."""
    path, identifier = table.path, getattr(table, "identifier", None)
    return {
        "format": table.format,
        "time_column": table.time_column or "none: a dimension",
        **({} if path is None else {"dagster/uri": path}),
        **({} if identifier is None else {"dagster/table_name": identifier}),
    }


def _description(table: Table) -> str:
    where = in_markdown(table.path or getattr(table, "identifier", None) or "")
    what = "dimension" if table.time_column is None else "base table"
    return f"A {what}: {table.format} at {where}. The sensors look at its files; nothing here writes it."
