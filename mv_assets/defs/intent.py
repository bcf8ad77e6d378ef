"""Who asks for a run: a machine that wants what is due, or a person who means what they say."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import dagster as dg
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus

from mv_assets.defs.names import WORK_TAG

_MACHINES = (
    WORK_TAG,
    "dagster/sensor_name",
    "dagster/schedule_name",
    "dagster/from_automation_condition",
    "dagster/auto_materialize",
)
_PARENT = "dagster/parent_run_id"
# Dagster's own retry of a failed run.
_RETRY = "dagster/retry_number"


class Expected(StrEnum):
    """What the one who asked expects."""

    DUE = "compute what is due"
    AGAIN = "try again what is not VALID, whatever its backoff"
    FORCED = "compute everything again"


def expected_of(run: DagsterRun, instance: DagsterInstance, *, force: bool | None) -> Expected:
    """What is expected of a run; `force` is the run's own config, which has the last word."""
    if force is not None:
        return Expected.FORCED if force else Expected.DUE
    # Of a run that is executed again the tags are those of the first, whoever asks now.
    if _RETRY in run.tags:
        return Expected.DUE
    if _PARENT in run.tags:
        parent = instance.get_run_by_id(run.tags[_PARENT])
        done = parent is not None and parent.status is DagsterRunStatus.SUCCESS
        return Expected.FORCED if done else Expected.AGAIN
    return Expected.DUE if _by_machine(run.tags) else Expected.FORCED


def _by_machine(tags: Mapping[str, str]) -> bool:
    return any(tag in tags for tag in _MACHINES)


class RefreshConfig(dg.Config):
    """How a view's buckets are refreshed."""

    force: bool | None = None
    """Compute again what is VALID, too. Left out: yes if a person asks for the run, no if a sensor does."""
