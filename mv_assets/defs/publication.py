"""Views as tables for other tools: published after a run, and by a sensor where that did not happen.

A target that hangs or fails so holds up neither looks nor commits.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import dagster as dg

from mv_assets.defs import checks
from mv_assets.defs.deployment import Deployment
from mv_assets.publish.publisher import PublishedView, Publisher
from mv_assets.run.opened import OpenProject
from mv_assets.views.view import View

# Of the 60 s that Dagster gives a tick; what is left is published by the next ones.
_PUBLISHING_S = 25.0


def publishing_sensors(deployment: Deployment, interval_s: int) -> list[dg.SensorDefinition]:
    """What publishes views whose maps have changed, whoever changed them; none if no view is published."""
    catalog = deployment.catalog
    views = [view for view in catalog.views.values() if catalog.target(view.name) is not None]
    return [_sensor(deployment, views, interval_s)] if views else []


def _sensor(deployment: Deployment, views: list[View], interval_s: int) -> dg.SensorDefinition:
    @dg.sensor(
        name=deployment.naming.of("publish_views"),
        asset_selection=dg.AssetSelection.assets(*deployment.by_key(views)),
        minimum_interval_seconds=interval_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Shows views as tables to other tools, where their maps have changed since.",
    )
    def publish(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        known = _known(context.cursor)
        with deployment.project("Dagster sensor publish_views") as project:
            done = project.publish_behind(_time_is_over(_PUBLISHING_S))
            # Of the others nothing has changed: maps of all buckets are not read for that.
            asked = {each.view for each in done} | {view.name for view in views if view.name not in known}
            status = project.status(*asked) if asked else None
        for each in done:
            _log(context.log, each)
        verdicts = {
            each.view.name: checks.published(each, status.now)
            for each in status or ()
            if status is not None and each.snapshot is not None
        }
        told = {name: f"{verdict.passed} {verdict.says}" for name, verdict in verdicts.items()}
        new = [view for view in views if view.name in told and told[view.name] != known.get(view.name)]
        return dg.SensorResult(
            skip_reason="; ".join(_said(each) for each in done) or "up to date",
            asset_events=[verdicts[view.name].evaluation(deployment.key_of(view.name)) for view in new],
            cursor=json.dumps({**known, **told}),
        )

    return publish


def publish_after(log: logging.Logger, project: OpenProject, view: View) -> None:
    """Show what a run has committed; if that fails, it is the view's trouble and not the run's."""
    publisher = Publisher(project.catalog, project.store, project.manager, project.warehouse)
    for each in publisher.publish([view.name]):
        _log(log, each)


def _log(log: logging.Logger, each: PublishedView) -> None:
    if each.error is not None:
        log.error("%s", each.error)
    elif each.publication is not None and each.publication.replaced is not None:
        log.warning("%s: %s; it was published over", each.publication.table, each.publication.replaced)
    elif each.is_new:
        log.info(_said(each))


def _said(each: PublishedView) -> str:
    if each.error is not None:
        return str(each.error)
    if each.copying:
        return f"{each.view}: rows are copied to files of their own, and published after that; it goes on"
    if each.publication is None or each.publication.version is None:
        return f"{each.view}: there is nothing to show yet"
    return f"{each.view} is published as {each.publication.table}, version {each.publication.version}"


def _known(cursor: str | None) -> Mapping[str, str]:
    """What was told last; a cursor of another version costs only that it is told twice."""
    with suppress(ValueError):
        found = json.loads(cursor or "{}")
        return found if isinstance(found, dict) else {}
    return {}


def _time_is_over(seconds: float, monotonic: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    ends = monotonic() + seconds
    return lambda: monotonic() > ends
