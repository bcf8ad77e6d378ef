"""Jobs for people, in the launchpad: refresh, drop and audit a view, collect garbage.

Dagster reads the types of configs that are made here, so annotations can't be left for later.
"""

import hashlib
from enum import Enum
from typing import Any

import dagster as dg
from pydantic import Field

from mv_assets.defs import checks, events
from mv_assets.defs.alive import SignsOfLife
from mv_assets.defs.deployment import Deployment, as_failures, identity
from mv_assets.defs.names import POOL, PROJECT_TAG, SPARK
from mv_assets.defs.projection import provenance
from mv_assets.maintain.audit import audit
from mv_assets.maintain.garbage import Garbage, GcReport
from mv_assets.observe.observation import Observed
from mv_assets.plan.scope import Scope, between, prepare, to_drop
from mv_assets.run.opened import OpenProject
from mv_assets.run.refresher import Refresher, Report


def maintenance_jobs(deployment: Deployment) -> list[dg.JobDefinition]:
    """The jobs of a project that has views."""
    if not deployment.catalog.views:
        return []
    views = _names(list(deployment.catalog.views))
    whose = {PROJECT_TAG: identity(deployment.catalog.project)}
    return [
        _job(
            "refresh_view",
            "Compute what is missing or STALE of a view: all of it, a range, or one bucket.",
            _refresh(deployment, views),
            whose,
        ),
        _job(
            "drop_view",
            "Forget a view's buckets and delete its data, and if asked that of the views based on it. "
            "Its sensor then asks for all of them again.",
            _drop(deployment, views),
        ),
        _job(
            "audit_view",
            "Compute stored buckets once more and compare; what differs is STALE afterwards.",
            _audit(deployment, views),
            whose,
        ),
        _job(
            "collect_garbage",
            "Delete view data that no bucket and no reader needs, and rewrite what is mostly dead.",
            _collect(deployment, views),
        ),
    ]


def _names(views: list[str]) -> Any:
    """The views to choose from. Dagster knows an enum by its name only, so other views have another."""
    digest = hashlib.blake2b(repr(views).encode(), digest_size=3).hexdigest()
    return Enum(f"View_{digest}", {name: name for name in views})


def _job(
    name: str, description: str, op: dg.OpDefinition, tags: dict[str, str] | None = None
) -> dg.JobDefinition:
    @dg.job(name=name, description=description, tags=tags)
    def job() -> None:
        op()

    return job


def _refresh(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class RefreshView(dg.Config):
        view: views = Field(description="The view.")
        first: str | None = Field(
            None, description="First bucket, as 2024-01-31 or 2024-01-31T15:00; left out: all."
        )
        last: str | None = Field(None, description="Last bucket, included; left out: the first one alone.")
        force: bool = Field(default=False, description="Compute again what is VALID, too.")
        extend: bool = Field(default=False, description="Let the view cover buckets before its start.")
        max_bytes: int | None = Field(None, ge=0, description="Read no more than that of the base tables.")

    @dg.op(name="mv_assets_refresh", required_resource_keys={SPARK}, pool=POOL)
    def refresh(context: dg.OpExecutionContext, config: RefreshView) -> None:
        view = deployment.catalog.view(config.view.value)
        _refuse_without_first(config.first, config.last, extend=config.extend)
        with as_failures(), _open(deployment, context) as project:
            now = deployment.now()
            buckets = between(view, config.first or None, config.last or None, now)
            if config.force:
                # What is forced is STALE until it is computed: see first that it can be.
                project.engine.check()
            prepare(
                project.manager, project.store, view, buckets, now, force=config.force, extend=config.extend
            )
            scope = Scope.of(view, buckets, config.max_bytes)
            alive = SignsOfLife(context.log)
            refresher = Refresher(project, scope, observer=alive.observer, sleep=alive.sleep)
            reports = refresher.run([view.name])
            for report in reports:
                _tell(context, deployment, project, report)
        _raise_if_wrong(reports)

    return refresh


def _refuse_without_first(first: str | None, last: str | None, *, extend: bool) -> None:
    """What the command line refuses, too: it would be one bucket, or the whole view."""
    if first:
        return
    if last:
        raise dg.Failure("a range has both `first` and `last`: give `first` as well", allow_retries=False)
    if extend:
        raise dg.Failure(
            "`extend` goes with `first`: name the bucket that the view is to cover", allow_retries=False
        )


def _tell(
    context: dg.OpExecutionContext, deployment: Deployment, project: OpenProject, report: Report
) -> None:
    """Report what a refresh committed as materializations of its view's asset."""
    view, key = report.view, report.view.buckets.key
    rows = project.store.snapshot(view.name).rows if report.results else {}
    for bucket, result in sorted(report.results.items()):
        context.log.info("%s %s: %s", view.name, key(bucket), result.outcome.value)
        if result.outcome.wrote and bucket in rows:
            metadata = events.of_bucket(rows[bucket], result.outcome.value)
            read = provenance(context.instance, deployment, view)
            context.log_event(events.materialization(view, rows[bucket], metadata, read))
    for waiting in report.waiting:
        context.log.info("%s %s waits: %s", view.name, key(waiting.bucket), waiting.reason)


def _raise_if_wrong(reports: list[Report]) -> None:
    wrong = [
        line for report in reports for line in report.wrong.sentences(report.view.name, report.view.buckets)
    ]
    if wrong:
        raise dg.Failure("\n".join(wrong), allow_retries=False)


def _drop(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class DropView(dg.Config):
        view: views = Field(description="The view.")
        confirm: str = Field("", description="Write the view's name here as well: its data will be deleted.")
        with_dependants: bool = Field(
            default=False, description="Drop the views that are based on it, too; they would wait for it."
        )

    @dg.op(name="mv_assets_drop")
    def drop(context: dg.OpExecutionContext, config: DropView) -> None:
        name = config.view.value
        if config.confirm != name:
            raise dg.Failure(f"nothing was dropped: write {name} into confirm as well", allow_retries=False)
        with as_failures(), _open(deployment, context, spark=False) as project:
            names = to_drop(deployment.catalog, name, with_dependants=config.with_dependants)
            known = [each for each in names if each in project.store.views()]
            if known:
                why = f"dropped by Dagster run {context.run.run_id[:8]}"
                project.manager.drop(known[0], why, dependants=known[1:])
            garbage = Garbage(project.store, project.manager, project.warehouse)
            for each in known:
                _log(context, garbage.collect(each))
            context.instance.wipe_assets([dg.AssetKey(each) for each in names])
            context.log.info("%s is dropped", ", ".join(names))

    return drop


def _audit(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class AuditView(dg.Config):
        view: views = Field(description="The view.")
        sample: int = Field(
            10, ge=0, description="How many buckets: the newest and others by chance; 0: all."
        )

    @dg.op(name="mv_assets_audit", required_resource_keys={SPARK}, pool=POOL)
    def audit_view(context: dg.OpExecutionContext, config: AuditView) -> None:
        view = deployment.catalog.view(config.view.value)
        with as_failures(), _open(deployment, context) as project:
            alive = SignsOfLife(context.log)
            observed: list[Observed] = []
            found = audit(
                project, view, config.sample or None, observer=alive.observer, looked=observed.append
            )
            verdict = checks.matches_base(view, found)
        context.instance.report_runless_asset_event(verdict.evaluation(view))
        if not verdict.passed:
            raise dg.Failure(verdict.says, metadata=dict(verdict.metadata), allow_retries=False)
        context.log.info(verdict.says)
        wrong = [line for each in observed for line in each.wrong.sentences(view.name, view.buckets)]
        if wrong:
            raise dg.Failure("\n".join(wrong), allow_retries=False)

    return audit_view


def _collect(deployment: Deployment, names: Any) -> dg.OpDefinition:
    class CollectGarbage(dg.Config):
        views: list[names] = Field([], description="Some views; left out: all that the state knows.")
        dry_run: bool = Field(default=False, description="Only say what would be deleted and compacted.")

    @dg.op(name="mv_assets_collect")
    def collect(context: dg.OpExecutionContext, config: CollectGarbage) -> None:
        asked = [view.value for view in config.views]
        with as_failures(), _open(deployment, context, spark=False) as project:
            garbage = Garbage(project.store, project.manager, project.warehouse)
            known = [name for name in project.store.views() if not asked or name in asked]
            reports = [garbage.would(name) if config.dry_run else garbage.gc(name) for name in known]
        for report in reports:
            _log(context, report)
        errors = [str(error) for report in reports for error in report.errors]
        if errors:
            raise dg.Failure("\n".join(errors), allow_retries=False)

    return collect


def _log(context: dg.OpExecutionContext, report: GcReport) -> None:
    size, copies = sum(report.deleted.values()), len(report.compacted)
    said = "%s: %s generations deleted, %s bytes; %s made by compaction"
    context.log.info(said, report.view, len(report.deleted), size, copies)


def _open(deployment: Deployment, context: dg.OpExecutionContext, *, spark: bool = True) -> Any:
    resource = getattr(context.resources, SPARK) if spark else None
    return deployment.open(f"Dagster run {context.run.run_id[:8]}", resource)
