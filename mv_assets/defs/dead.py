"""Runs that died without a word: nothing would ever end them, and they hold their buckets and their pool."""

from __future__ import annotations

from collections.abc import Iterable

from dagster import DagsterInstance, DagsterRunStatus, RunRecord

from mv_assets.buckets import MINUTE
from mv_assets.defs.names import VIEW_TAG, WORK_TAG
from mv_assets.defs.taken import unfinished, window_of
from mv_assets.refresh.place import Place
from mv_assets.views.view import View

# A run that lives does something within this time: it logs, or the heart of its attempt beats.
_SILENT_MS = 5 * MINUTE
_WORKING = (DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING)


def end_dead_runs(instance: DagsterInstance, place: Place, views: Iterable[View]) -> list[str]:
    """End runs that a sensor asked for and whose process is gone; their ids."""
    named, ended = {view.name: view for view in views}, list[str]()
    for record in unfinished(instance):
        run = record.dagster_run
        view = named.get(run.tags.get(VIEW_TAG, ""))
        if view is None or WORK_TAG not in run.tags or run.status not in _WORKING:
            continue
        if _is_silent(instance, record, place.clock()) and not _is_alive(place, view, record):
            instance.report_run_failed(run, "its process is gone: no log and no heartbeat for five minutes")
            ended.append(run.run_id)
    return ended


def _is_silent(instance: DagsterInstance, record: RunRecord, now: int) -> bool:
    if now - int(record.update_timestamp.timestamp() * 1_000) < _SILENT_MS:
        return False
    latest = instance.get_records_for_run(record.dagster_run.run_id, limit=1, ascending=False).records
    return not latest or now - int(latest[0].event_log_entry.timestamp * 1_000) >= _SILENT_MS


def _is_alive(place: Place, view: View, record: RunRecord) -> bool:
    """Whether an attempt on one of its buckets is alive: whoever's it is, it is too early to tell."""
    window = window_of(view, record.dagster_run)
    if window is None or view.name not in place.store.views():
        return False
    alive = place.registry.alive(view.name)
    attempts = place.store.snapshot(view.name, *window).attempts.values()
    return any(attempt.generation in alive for attempt in attempts if attempt.generation is not None)
