"""Asset checks: what is wrong with a view, where people look for it.

Dagster reads the type of a check's context, so annotations can't be left for later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg

from mv_assets.buckets import MINUTE, Buckets, duration, iso
from mv_assets.defs.deployment import Deployment, as_failures
from mv_assets.defs.names import POOL
from mv_assets.defs.signs_of_life import SignsOfLife
from mv_assets.maintain.recomputation import Finding
from mv_assets.reports.publication import behind, plain_line
from mv_assets.reports.status import ViewStatus
from mv_assets.state import health
from mv_assets.state.health import Wrong
from mv_assets.state.model import Doing, Header, Snapshot
from mv_assets.views.view import View

_MOST = 20
_SAMPLE = 5
_GRACE_MS = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says."""

    name: str
    passed: bool
    says: str
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def result(self) -> dg.AssetCheckResult:
        """For a run that makes the check."""
        return dg.AssetCheckResult(
            passed=self.passed, description=self.says, severity=self.severity, metadata=dict(self.metadata)
        )

    def evaluation(self, asset: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """For whoever found it out by the way."""
        return dg.AssetCheckEvaluation(
            asset_key=asset,
            check_name=self.name,
            passed=self.passed,
            description=self.says,
            severity=self.severity,
            metadata=self.metadata,
        )


def no_failed_buckets(view: View, wrong: Wrong) -> Verdict:
    """All that is wrong, but a stall, which `fresh` tells, and what `published` does."""
    failed, others = wrong.failed, replace(wrong, stalled=None).without(Doing.PUBLISH).of_view()
    says = [_says(view.buckets, failed, "failed")] if failed else []
    says += others[:_MOST]
    says += [f"and {len(others) - _MOST} more"] if len(others) > _MOST else []
    metadata = {"failed": _table(view.buckets, failed)} if failed else {}
    return Verdict("no_failed_buckets", not says, "; ".join(says) or "no bucket failed", metadata=metadata)


def no_stale_buckets(view: View, stale: Mapping[int, str], *, overdue: bool) -> Verdict:
    """By the buckets that are STALE, and why."""
    says = _says(view.buckets, stale, "STALE") if stale else "no bucket is STALE"
    metadata = {"stale": _table(view.buckets, stale)} if stale else {}
    good = not stale or not overdue
    says += f"; it is computed again within {duration(_GRACE_MS)}" if stale and good else ""
    return Verdict("no_stale_buckets", good, says, dg.AssetCheckSeverity.WARN, metadata)


def is_overdue(snapshot: Snapshot, now: int) -> bool:
    """Whether a STALE bucket failed, or waits longer than a late file takes in a view that is well."""
    waiting = None if snapshot.look is None else snapshot.look.oldest_waiting
    # Only what was attempted can have failed.
    if any(bucket in snapshot.rows for bucket in health.failures(snapshot)):
        return True
    return waiting is not None and now - waiting.since > _GRACE_MS


def fresh(view: View, header: Header, now: int, stall: str | None) -> Verdict:
    lag, most = health.lag(header, now), view.declared.max_staleness
    late = most is not None and lag > most
    allowed = "no max_staleness is declared" if most is None else f"{duration(most)} are allowed"
    says = f"complete through {iso(header.watermark)}, {duration(lag)} behind; {allowed}"
    if stall is not None:
        says = f"{stall}; {says}"
    good = not late and stall is None
    return Verdict("fresh", good, says, dg.AssetCheckSeverity.WARN, {"lag_seconds": lag / 1_000})


def published(status: ViewStatus, now: int) -> Verdict:
    """What other tools see of a view, and how far that is behind."""
    version = 0 if status.snapshot is None else status.snapshot.header.version
    troubles = [each for each in status.wrong.troubles if each.doing is Doing.PUBLISH]
    says = [health.trouble_line(each) for each in troubles]
    late = not status.publications or any(behind(each, version) for each in status.publications)
    says += [plain_line(each, version) for each in status.publications] or ["it is not published yet"]
    metadata: dict[str, Any] = {}
    for each in status.publications:
        metadata |= {"table": each.table or "", "version": each.version or 0, "snapshot": each.snapshot or ""}
        if each.at is not None:
            metadata["age_seconds"] = (now - each.at) / 1_000
    severity = dg.AssetCheckSeverity.ERROR if troubles else dg.AssetCheckSeverity.WARN
    return Verdict("published", not late and not troubles, "; ".join(says), severity, metadata)


def matches_base(view: View, findings: Sequence[Finding]) -> Verdict:
    wrong = {finding.bucket: finding.reason or "" for finding in findings if finding.wrong}
    failed = {finding.bucket: finding.reason or "" for finding in findings if finding.failed}
    others = {f.bucket: f.reason or "" for f in findings if not f.wrong and not f.failed and f.reason}
    equal = len(findings) - len(wrong | failed | others)
    reread = sum(finding.reread for finding in findings)
    says = (
        f"{equal} of {len(findings)} sampled buckets equal a recomputation; {reread} were read by Arrow too"
    )
    if wrong:
        says = f"{_says(view.buckets, wrong, 'wrong')}; they are STALE now and will be computed again"
    elif failed:
        says = _says(view.buckets, failed, "not comparable")
    noted = {**others, **failed, **wrong}
    metadata = {"buckets": _table(view.buckets, noted)} if noted else {}
    return Verdict("matches_base", not wrong and not failed, says, metadata=metadata)


def view_checks(deployment: Deployment, view: View) -> list[dg.AssetChecksDefinition]:
    """The checks of one view, for people to make."""
    by_map: dict[str, Callable[[Snapshot, Wrong, int], Verdict]] = {
        "no_stale_buckets": lambda snapshot, _wrong, now: no_stale_buckets(
            view, health.stale(snapshot), overdue=is_overdue(snapshot, now)
        ),
        "no_failed_buckets": lambda _snapshot, wrong, _now: no_failed_buckets(view, wrong),
        "fresh": lambda snapshot, wrong, now: fresh(view, snapshot.header, now, wrong.stalled),
    }
    publishes = deployment.catalog.target(view.name) is not None
    return [
        *(_of_map(deployment, view, name, verdict) for name, verdict in by_map.items()),
        *([_of_publication(deployment, view)] if publishes else []),
        _audit(deployment, view),
    ]


_ABOUT = {
    "no_stale_buckets": "Every bucket was computed from what its base table holds now, or a few minutes ago.",
    "no_failed_buckets": "No bucket, and no file of its tables, waits for a person.",
    "fresh": "The view is complete up to its `max_staleness`, and nothing waits longer than `stall_after`.",
    "published": "Other tools see the view as it is now.",
    "matches_base": f"{_SAMPLE} buckets, computed once more, have the rows that are stored.",
}


def _of_map(
    deployment: Deployment, view: View, name: str, verdict: Callable[[Snapshot, Wrong, int], Verdict]
) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=deployment.key_of(view.name), name=name, description=_ABOUT[name])
    def check() -> dg.AssetCheckResult:
        with as_failures(), deployment.project("Dagster") as project:
            status = project.status(view.name)
        found = status[view.name]
        if found.snapshot is None:
            return dg.AssetCheckResult(passed=True, description="nothing was computed yet")
        return verdict(found.snapshot, found.wrong, status.now).result()

    return check


def _of_publication(deployment: Deployment, view: View) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=deployment.key_of(view.name), name="published", description=_ABOUT["published"])
    def check() -> dg.AssetCheckResult:
        with as_failures(), deployment.project("Dagster") as project:
            # To look is to mend: what somebody else has written there is replaced.
            project.publish(view.name)
            status = project.status(view.name)
        return published(status[view.name], status.now).result()

    return check


def _audit(deployment: Deployment, view: View) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=deployment.key_of(view.name),
        name="matches_base",
        description=_ABOUT["matches_base"],
        required_resource_keys={deployment.naming.spark},
        pool=POOL,
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        spark = getattr(context.resources, deployment.naming.spark)
        who, alive = f"Dagster run {context.run.run_id[:8]}", SignsOfLife(context.log)
        # Beside a materialization it is made by the way, and should not cost more than that.
        sample = 1 if context.run.asset_selection else _SAMPLE
        with as_failures(), deployment.project(who, spark, alive) as project:
            return matches_base(view, project.audit(view.name, sample=sample).findings).result()

    return check


def _says(buckets: Buckets, found: Mapping[int, str], what: str) -> str:
    bucket, why = next(iter(found.items()))
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{buckets.key(bucket)}{more} {what}: {why}"


def _table(buckets: Buckets, found: Mapping[int, str]) -> dg.TableMetadataValue:
    rows = [{"bucket": buckets.key(bucket), "why": why} for bucket, why in found.items()]
    shown = [dg.TableRecord(row) for row in rows[:_MOST]]
    schema = dg.TableSchema([dg.TableColumn("bucket"), dg.TableColumn("why")])
    return dg.MetadataValue.table(shown, schema)
