"""Runs that died without a word: nothing would ever end them, and they hold their buckets and their pool."""

from __future__ import annotations

from collections.abc import Sequence

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus, RepositoryDefinition, RunRecord

from mv_assets.buckets import MINUTE
from mv_assets.defs.deployment import Deployment, identity
from mv_assets.defs.names import PROJECT_TAG
from mv_assets.defs.tick.claims import assets_of, window_of
from mv_assets.run.opened import OpenProject
from mv_assets.views.view import View

# A run that lives does something within this time: it logs, or a heart beats. One that waits for a place in
# its pool, or for files, logs every five minutes.
_SILENT_MS = 15 * MINUTE


def living(
    instance: DagsterInstance,
    repository: RepositoryDefinition | None,
    deployment: Deployment,
    project: OpenProject,
    runs: Sequence[RunRecord],
    now: int,
) -> list[RunRecord]:
    """Runs without those whose process is gone. These are ended, if they are nobody's but ours."""
    # A run may be about views of several tables; whichever sensor sees it must know them all.
    named = deployment.by_key(project.catalog.views.values())
    found = list[RunRecord]()
    for record in runs:
        run = record.dagster_run
        about = assets_of(run, repository) | {key.asset_key for key in run.asset_check_selection or ()}
        job = run.tags.get(PROJECT_TAG) == identity(project.catalog.project)
        # What else a run does may take hours in silence.
        ours = job or (bool(about) and about <= named.keys())
        # A job of the launchpad may be about any view.
        touched = [named[key] for key in about & named.keys()] or list(named.values() if job else ())
        silent = bool(touched) and _is_silent(instance, record, now)
        if not silent or any(_beats(project, view, run) for view in touched):
            found.append(record)
        elif ours:
            said = "its process is gone: no log and no heartbeat for a quarter of an hour"
            instance.report_run_failed(run, said)
    return found


def _is_silent(instance: DagsterInstance, record: RunRecord, now: int) -> bool:
    # One in the queue waits for its turn, however long.
    if record.dagster_run.status is DagsterRunStatus.QUEUED:
        return False
    if now - int(record.update_timestamp.timestamp() * 1_000) < _SILENT_MS:
        return False
    latest = instance.get_records_for_run(record.dagster_run.run_id, limit=1, ascending=False).records
    return not latest or now - int(latest[0].event_log_entry.timestamp * 1_000) >= _SILENT_MS


def _beats(project: OpenProject, view: View, run: DagsterRun) -> bool:
    """Whether anybody works on the buckets of a run, or, if it has none, on the view or reads it."""
    if view.name not in project.store.views():
        return False
    alive, window = project.registry.alive(view.name), window_of(view, run.tags)
    if window is None:
        return bool(alive) or project.leases.held(view.name)
    attempts = project.store.snapshot(view.name, *window).attempts.values()
    return any(attempt.generation in alive for attempt in attempts if attempt.generation is not None)
