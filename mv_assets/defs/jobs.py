"""Jobs for people, in the launchpad: what the commands do, for those without a shell.

Dagster reads the types of configs that are made here, so annotations can't be left for later.
"""

import hashlib
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import dagster as dg
from pydantic import Field

from mv_assets.defs import checks, events
from mv_assets.defs.deployment import Deployment, as_failures, identity
from mv_assets.defs.names import POOL, PROJECT_TAG
from mv_assets.defs.signs_of_life import SignsOfLife
from mv_assets.defs.tick.reporting import provenance
from mv_assets.maintain.garbage import GcReport
from mv_assets.project import Project
from mv_assets.reports.refresh import Refreshed
from mv_assets.reports.shown import Shown
from mv_assets.run.refresher import Report
from mv_assets.state.store import Store
from mv_assets.views.view import View

_WHICH = "The view; it may be left out where there is one only."
_FIRST = "First bucket, as 2024-01-31 or 2024-01-31T15:00; left out: all."
_LAST = "Last bucket, included; left out: the first one alone."
# Now and then in a working day.
_EVERY_SIX_HOURS = "0 */6 * * *"


def garbage_schedules(
    deployment: Deployment, jobs: Sequence[dg.JobDefinition], *, running: bool
) -> list[dg.ScheduleDefinition]:
    """When garbage is collected, if that is switched on."""
    named = deployment.naming.of
    status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED
    return [
        dg.ScheduleDefinition(
            name=named("collect_garbage_schedule"),
            job=job,
            cron_schedule=_EVERY_SIX_HOURS,
            default_status=status,
            description="Deletes view data that nobody needs, every six hours.",
        )
        for job in jobs
        if job.name == named("collect_garbage")
    ]


def maintenance_jobs(deployment: Deployment) -> list[dg.JobDefinition]:
    """The jobs of a project that has views."""
    if not deployment.catalog.views:
        return []
    views = _names(list(deployment.catalog.views))
    whose, named = {PROJECT_TAG: identity(deployment.catalog.project)}, deployment.naming.of
    return [
        _job(
            named("refresh_view"),
            "Compute what is missing or STALE of a view: all of it, a range, or one bucket.",
            _refresh(deployment, views),
            whose,
        ),
        _job(
            named("drop_view"),
            "Forget a view's buckets and delete its data, and if asked that of the views based on it. "
            "Its sensor then asks for all of them again.",
            _drop(deployment, views),
        ),
        _job(
            named("audit_view"),
            "Compute stored buckets once more and compare; what differs is STALE afterwards.",
            _audit(deployment, views),
            whose,
        ),
        _job(
            named("collect_garbage"),
            "Delete view data that no bucket and no reader needs, and rewrite what is mostly dead.",
            _collect(deployment, views),
        ),
        _job(
            named("mark_view"),
            "Mark a view STALE, all of it, a range or one bucket: it is computed again, changed or not.",
            _mark(deployment, views),
        ),
        _job(
            named("adopt_view"),
            "Put an earlier definition of a view in force again, as after a rollback of its SQL.",
            _adopt(deployment, views),
        ),
        _job(
            named("publish_view"),
            "Show a view as a table to other tools, and replace what somebody else has written there.",
            _publish(deployment, views),
        ),
        _job(
            named("plan_view"),
            "Say what a refresh of a view would do, why, and how many bytes it would read.",
            _plan(deployment, views),
        ),
        _job(
            named("explain_bucket"),
            "Say why a bucket is what it is: its files then and now, its last events and errors.",
            _explain(deployment, views),
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
        view: views | None = Field(None, description=_WHICH)
        first: str | None = Field(None, description=_FIRST)
        last: str | None = Field(None, description=_LAST)
        force: bool = Field(default=False, description="Compute again what is VALID, too.")
        extend: bool = Field(default=False, description="Let the view cover buckets before its start.")
        max_bytes: int | None = Field(None, ge=0, description="Read no more than that of the base tables.")

    @dg.op(
        name=deployment.naming.of("mv_assets_refresh"),
        required_resource_keys={deployment.naming.spark},
        pool=POOL,
    )
    def refresh(context: dg.OpExecutionContext, config: RefreshView) -> None:
        view = _chosen(deployment, config.view)
        _refuse_without_first(config.first, config.last, extend=config.extend)
        with as_failures(), _project(deployment, context) as project:
            found = project.refresh(
                view.name,
                buckets=_keys(config),
                force=config.force,
                extend=config.extend,
                max_bytes=config.max_bytes,
            )
            for report in found.reports:
                _tell(context, deployment, project.store, report)
        _raise_if_wrong(found)

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


def _tell(context: dg.OpExecutionContext, deployment: Deployment, store: Store, report: Report) -> None:
    """Report what a refresh committed as materializations of its view's asset."""
    view, key = report.view, report.view.buckets.key
    rows = store.snapshot(view.name).rows if report.results else {}
    for bucket, result in sorted(report.results.items()):
        context.log.info("%s %s: %s", view.name, key(bucket), result.outcome.value)
        if result.outcome.wrote and bucket in rows:
            metadata = events.of_result(rows[bucket], result)
            read = provenance(context.instance, deployment, view)
            context.log_event(
                events.materialization(deployment.key_of(view.name), view, rows[bucket], metadata, read)
            )
    for waiting in report.waiting:
        context.log.info("%s %s waits: %s", view.name, key(waiting.bucket), waiting.reason)


def _raise_if_wrong(found: Refreshed) -> None:
    wrong = [
        line
        for report in found.reports
        for line in report.wrong.sentences(report.view.name, report.view.buckets)
    ]
    wrong += [str(each.error) for each in found.published if each.error is not None]
    if wrong:
        raise dg.Failure("\n".join(wrong), allow_retries=False)


def _drop(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class DropView(dg.Config):
        view: views | None = Field(None, description=_WHICH)
        confirm: str = Field("", description="Write the view's name here as well: its data will be deleted.")
        with_dependants: bool = Field(
            default=False, description="Drop the views that are based on it, too; they would wait for it."
        )

    @dg.op(name=deployment.naming.of("mv_assets_drop"))
    def drop(context: dg.OpExecutionContext, config: DropView) -> None:
        name = _chosen(deployment, config.view).name
        if config.confirm != name:
            raise dg.Failure(f"nothing was dropped: write {name} into confirm as well", allow_retries=False)
        with as_failures(), _project(deployment, context, spark=False) as project:
            why = f"dropped by {_who(context)}"
            dropped = project.drop(name, with_dependants=config.with_dependants, reason=why)
        names = [each.view for each in dropped.views]
        for each in dropped.views:
            _log(context, each.gone)
            for error in each.errors:
                context.log.error(error)
        context.instance.wipe_assets([deployment.key_of(each) for each in names])
        context.log.info("%s is dropped", ", ".join(names))

    return drop


def _audit(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class AuditView(dg.Config):
        view: views | None = Field(None, description=_WHICH)
        sample: int = Field(
            10, ge=0, description="How many buckets: the newest and others by chance; 0: all."
        )

    @dg.op(
        name=deployment.naming.of("mv_assets_audit"),
        required_resource_keys={deployment.naming.spark},
        pool=POOL,
    )
    def audit_view(context: dg.OpExecutionContext, config: AuditView) -> None:
        view = _chosen(deployment, config.view)
        with as_failures(), _project(deployment, context) as project:
            found = project.audit(view.name, sample=config.sample or None)
        verdict = checks.matches_base(view, found.findings)
        context.instance.report_runless_asset_event(verdict.evaluation(deployment.key_of(view.name)))
        if not verdict.passed:
            raise dg.Failure(verdict.says, metadata=dict(verdict.metadata), allow_retries=False)
        context.log.info(verdict.says)
        wrong = found.wrong.sentences(view.name, view.buckets)
        if wrong:
            raise dg.Failure("\n".join(wrong), allow_retries=False)

    return audit_view


def _collect(deployment: Deployment, names: Any) -> dg.OpDefinition:
    class CollectGarbage(dg.Config):
        views: list[names] = Field([], description="Some views; left out: all that the state knows.")
        dry_run: bool = Field(default=False, description="Only say what would be deleted and compacted.")

    @dg.op(name=deployment.naming.of("mv_assets_collect"))
    def collect(context: dg.OpExecutionContext, config: CollectGarbage) -> None:
        asked = [view.value for view in config.views]
        with as_failures(), _project(deployment, context, spark=False) as project:
            found = project.gc(*asked, dry_run=config.dry_run)
        for report in found.reports:
            _log(context, report)
        errors = [str(error) for report in found.reports for error in report.errors]
        errors += [str(each.error) for each in found.published if each.error is not None]
        if errors:
            raise dg.Failure("\n".join(errors), allow_retries=False)

    return collect


def _mark(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class MarkView(dg.Config):
        view: views | None = Field(None, description=_WHICH)
        first: str | None = Field(None, description=_FIRST)
        last: str | None = Field(None, description=_LAST)
        reason: str = Field("marked by hand", description="For the event log, and where STALE is shown.")

    @dg.op(name=deployment.naming.of("mv_assets_mark"))
    def mark(context: dg.OpExecutionContext, config: MarkView) -> None:
        view = _chosen(deployment, config.view)
        _refuse_without_first(config.first, config.last, extend=False)
        with as_failures(), _project(deployment, context, spark=False) as project:
            _say(context, project.mark(view.name, buckets=_keys(config), reason=config.reason))

    return mark


def _adopt(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class AdoptView(dg.Config):
        view: views | None = Field(None, description=_WHICH)
        definition: str | None = Field(
            None, description="The hash that the check or the error names; left out: what is declared now."
        )

    @dg.op(name=deployment.naming.of("mv_assets_adopt"))
    def adopt(context: dg.OpExecutionContext, config: AdoptView) -> None:
        view = _chosen(deployment, config.view)
        with as_failures(), _project(deployment, context, spark=False) as project:
            _say(context, project.adopt(view.name, config.definition or None))

    return adopt


def _publish(deployment: Deployment, views: Any) -> dg.OpDefinition:
    which = "The view; left out: all that are published."
    return _of_some(deployment, views, "mv_assets_publish", which, Project.publish)


def _plan(deployment: Deployment, views: Any) -> dg.OpDefinition:
    return _of_some(deployment, views, "mv_assets_plan", "The view; left out: all.", Project.plan)


def _of_some(
    deployment: Deployment, views: Any, name: str, which: str, ask: Callable[..., Shown]
) -> dg.OpDefinition:
    """What a method gives of one view, or of all."""

    class OfView(dg.Config):
        view: views | None = Field(None, description=which)

    @dg.op(name=deployment.naming.of(name))
    def asked(context: dg.OpExecutionContext, config: OfView) -> None:
        names = [] if config.view is None else [config.view.value]
        with as_failures(), _project(deployment, context, spark=False) as project:
            _say(context, ask(project, *names))

    return asked


def _explain(deployment: Deployment, views: Any) -> dg.OpDefinition:
    class ExplainBucket(dg.Config):
        view: views | None = Field(None, description=_WHICH)
        bucket: str = Field("", description="The bucket, as 2024-01-31 or 2024-01-31T15:00.")

    @dg.op(name=deployment.naming.of("mv_assets_explain"))
    def explain(context: dg.OpExecutionContext, config: ExplainBucket) -> None:
        view = _chosen(deployment, config.view)
        if not config.bucket:
            raise dg.Failure("name the `bucket`, as 2024-01-31 or 2024-01-31T15:00", allow_retries=False)
        with as_failures(), _project(deployment, context, spark=False) as project:
            _say(context, project.explain(view.name, config.bucket))

    return explain


def _chosen(deployment: Deployment, given: Any) -> View:
    """The view that was named. A launchpad opens without one, and should not open with an error."""
    views = deployment.catalog.views
    if given is None and len(views) > 1:
        raise dg.Failure(f"name the `view`: {', '.join(views)}", allow_retries=False)
    return deployment.catalog.view(next(iter(views)) if given is None else given.value)


def _keys(config: Any) -> str | tuple[str, str] | None:
    first, last = config.first or None, config.last or None
    return first if first is None or last is None else (first, last)


def _say(context: dg.OpExecutionContext, found: Shown) -> None:
    """What the command prints, in the run's log; what is wrong fails the run."""
    if found.is_wrong:
        raise dg.Failure(str(found), allow_retries=False)
    context.log.info(str(found))


def _log(context: dg.OpExecutionContext, report: GcReport) -> None:
    size, copies = sum(report.deleted.values()), len(report.compacted)
    said = "%s: %s generations deleted, %s bytes; %s made by compaction"
    context.log.info(said, report.view, len(report.deleted), size, copies)


def _project(deployment: Deployment, context: dg.OpExecutionContext, *, spark: bool = True) -> Project:
    resource = getattr(context.resources, deployment.naming.spark) if spark else None
    return deployment.project(_who(context), resource, SignsOfLife(context.log))


def _who(context: dg.OpExecutionContext) -> str:
    return f"Dagster run {context.run.run_id[:8]}"
