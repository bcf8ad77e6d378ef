"""What must hold when all has come to rest, whoever was killed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from mv_assets.maintain.garbage import Garbage
from mv_assets.publish.contents import VERSION
from mv_assets.state import rules
from mv_assets.state.leases import Leases
from mv_assets.state.model import State
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.proof.soak.city import City
from mv_assets_tests.support.published_lake import current_rows, rows_of

_ALL = 10_000_000


def wrong(lake: City, *, complete: bool) -> list[str]:
    """VALID buckets whose rows are not those that DuckDB computes from the files; files must not move."""
    try:
        (lake if complete else lake.as_looked_at()).check(complete=complete)
    except AssertionError as error:
        return [str(error)]
    return []


def unlike_published(lake: City, seen: dict[str, int], *, complete: bool) -> Iterator[str]:
    """What a reader of the published tables finds: other rows than the map names, or an earlier version."""
    for view in lake.store.views():
        if not lake.reader.exists(view):
            if complete:
                yield f"{view} is not published"
            continue
        before = lake.store.snapshot(view).header.version
        version, rows = int(lake.reader.summary(view)[VERSION]), rows_of(lake.reader.rows(view))
        if version < seen.get(view, 0):
            yield f"{view}: version {version} is published, and {seen[view]} was before"
        seen[view] = version
        # While others commit, only the map of that very version tells what it should be.
        named = rows_of(current_rows(lake.store, lake.root, view))
        still = lake.store.snapshot(view).header.version == before
        if still and (complete or version == before) and rows != named:
            yield f"{view}: {len(rows)} rows are published as version {version}, and others are in the map"


def violations(lake: City, dagster: Dagster, seen: dict[str, int]) -> list[str]:
    """All that is wrong at rest."""
    found = [*wrong(lake, complete=True), *unlike_published(lake, seen, complete=True)]
    for view in lake.catalog.views:
        found += [f"{view}: {each}" for each in _of_map(lake, view)]
        found += [f"{view}: {each}" for each in _of_files(lake, view)]
        found += [f"{view}: {each}" for each in _of_dagster(dagster, view)]
    found += [f"run {run.id[:8]} is {run.status}" for run in dagster.unfinished()]
    return found + [f"backfill {each} was never begun" for each in dagster.backfills_ahead()]


def _of_map(lake: City, view: str) -> Iterator[str]:
    snapshot = lake.store.snapshot(view)
    header, rows = snapshot.header, snapshot.rows
    versions = {event.version for event in lake.store.events(view, most=_ALL)}
    if versions != set(range(1, header.version + 1)):
        missing = sorted(set(range(1, header.version + 1)) - versions)
        yield f"the log lacks versions {missing[:10]} of {header.version}, or has others"
    at = header.start
    while (row := rows.get(at)) is not None and row.inputs is not None:
        if (
            row.inputs.definition != header.definition
            or header.buckets.next(at) > (header.source_end or 0) + 1
        ):
            break
        at = header.buckets.next(at)
    if header.watermark != at:
        key = header.buckets.key
        yield f"W is {key(header.watermark)}, but all is committed up to {key(at)}"
    stale = [b for b, row in rows.items() if rules.effective_state(row, header) is not State.VALID]
    if stale:
        yield f"STALE at rest: {header.buckets.span(stale)}"
    alive = Registry(lake.store).alive(view)
    going = [b for b, record in snapshot.attempts.items() if record.generation in alive]
    if going:
        yield f"an attempt goes on with {header.buckets.span(going)}"


def _of_files(lake: City, view: str) -> Iterator[str]:
    """Every generation that a row names is whole; every other file is registered, and gc takes it."""
    named = {row.generation for row in lake.store.snapshot(view).rows.values() if row.generation is not None}
    with lake.store.read(view) as reader:
        registered = {generation.id for generation in reader.generations()}
    for generation, files in lake.store.files(view, named).items():
        for file in files:
            path = lake.root / file.path
            if not path.is_file() or path.stat().st_size != file.bytes:
                yield f"{file.path} of generation {generation} is not there as it was committed"
    if unknown := _folders(lake, view) - registered:
        yield f"nobody knows of {sorted(unknown)}"
    # As if all heartbeats and leases had run out, and nobody read what was published.
    with lake.store.write(view) as tx:
        tx.end_leases(2**62)
    for publication in Publications(lake.store).of(view):
        Publications(lake.store).end(view, publication.target)
    registry, leases = Registry(lake.store, lifetime_ms=0), Leases(lake.store)
    for error in (
        Garbage(lake.store, lake.manager, lake.warehouse, registry=registry, leases=leases).gc(view).errors
    ):
        yield f"gc: {error}"
    named = {row.generation for row in lake.store.snapshot(view).rows.values() if row.generation is not None}
    if left := _folders(lake, view) - named:
        yield f"gc has left {sorted(left)}"


def _folders(lake: City, view: str) -> set[str]:
    with suppress(FileNotFoundError):
        return {path.name for path in (lake.root / view).iterdir() if path.is_dir()}
    return set()


def _of_dagster(dagster: Dagster, view: str) -> Iterator[str]:
    if keys := dagster.partitions(view).materializing:
        yield f"Dagster shows {list(keys)[:5]} as in progress"
    if keys := dagster.partitions(view).failed:
        yield f"Dagster shows {list(keys)[:5]} as failed"
