"""Audit: stored buckets against a recomputation from the same inputs; what differs is quarantined."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mv_assets.errors import MvError
from mv_assets.maintain.arrow_check import Rereading
from mv_assets.maintain.damage import Damage, damaged
from mv_assets.maintain.recomputation import Finding, Recomputation, Verdict
from mv_assets.observe.inputs import BucketInputs
from mv_assets.observe.maps import ImaginedMaps
from mv_assets.observe.observation import Observation, Observed, Unchanged
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.run.opened import OpenProject
from mv_assets.state import rules
from mv_assets.state.errors import NotInForce
from mv_assets.state.model import PartitionRow, Snapshot
from mv_assets.views.view import View

_CHANGED = "its inputs changed while it was audited"
_MOVED = "it was computed again or marked while it was audited"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Buckets to compare, and those that can't be, with why."""

    comparable: tuple[int, ...]
    others: Mapping[int, str]


def audit(
    project: OpenProject,
    view: View,
    most: int | None,
    *,
    chance: random.Random | None = None,
    progress: Progress = NO_PROGRESS,
    looked: Callable[[Observed], None] = lambda _observe: None,
) -> list[Finding]:
    """Audit a sample of `most` buckets, or (None) all; quarantine those that are wrong.

    A generation that turns out to be damaged is so for all its buckets, in the sample or not. What its look
    saw of the view goes to `looked`.

    Raises:
        NotInForce: the project declares another definition than the map has.
        LeaseExpired: the lease on the view was lost, so nothing was concluded.

    """
    if view.name not in project.store.views():
        return []
    header = project.store.summary(view.name).header
    if header.definition != view.definition:
        raise NotInForce(view.name, view.definition, header.definition)
    watch = project.watch(progress, maps=ImaginedMaps(project.store, project.clock))
    observed = watch.round([view.name], whole=True)[view.name]
    if isinstance(observed, MvError):
        raise observed
    looked(observed)
    # By the clock, so that audits of a view at rest come by all its buckets in time.
    chance = chance or random.Random(project.clock())  # noqa: S311 - a sample, no secret
    return (
        [] if isinstance(observed, Unchanged) else _Audit(project, view, observed, progress).run(most, chance)
    )


class _Audit:
    def __init__(
        self, project: OpenProject, view: View, observation: Observation, progress: Progress
    ) -> None:
        self._project = project
        self._view = view
        self._observation = observation
        self._progress = progress

    def run(self, most: int | None, chance: random.Random) -> list[Finding]:
        # What is found under a lease counts only once it turned out to have lasted.
        with self._project.leases.pin(self._view.name) as pinned:
            rows = _with_data(pinned.snapshot)
            asked = chosen(self._view, rows, self._observation.buckets, most, chance)
            compared, damage = self._found(rows, asked, chance)
        sound = [each for each in compared if rows[each.bucket].generation not in damage]
        findings = self._unmoved(rows, [*self._unchanged(sound), *_of_damage(rows.values(), damage)])
        self._quarantine(rows, findings)
        return sorted(findings, key=lambda finding: finding.bucket)

    def _found(
        self, rows: Mapping[int, PartitionRow], asked: Chosen, chance: random.Random
    ) -> tuple[list[Finding], dict[str, Damage]]:
        """What comparing says, and which generations are damaged."""
        named = {name for bucket in (*asked.comparable, *asked.others) if (name := rows[bucket].generation)}
        files = self._project.store.files(self._view.name, named)
        damage = damaged(self._project.warehouse, sorted(named), files)
        sound = [bucket for bucket in asked.comparable if rows[bucket].generation not in damage]
        seen = {bucket: self._observation.buckets[bucket] for bucket in sound}
        recomputed = Recomputation(self._project, self._observation.view_inputs, seen, rows, files)
        found = list[Finding]()
        self._progress.plans(len(sound), 0)
        self._progress.begins(f"auditing {self._view.name}")
        for findings in recomputed.findings():
            found += findings
            self._progress.ends(len(findings), 0)
        found = Rereading(self._project, self._observation.view_inputs, seen, rows).findings(found, chance)
        found += [
            Finding(bucket, Verdict.NOT_COMPARABLE, rows[bucket].rows, why)
            for bucket, why in asked.others.items()
        ]
        return found, damage | recomputed.damage

    def _unchanged(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings, without verdicts on buckets whose files or inputs changed since they were listed."""
        judged = [
            each.bucket for each in findings if each.verdict is not Verdict.NOT_COMPARABLE or each.failed
        ]
        if not judged:
            return list(findings)
        seen = {bucket: self._observation.buckets[bucket] for bucket in judged}
        look = self._project.second_looks(self._observation.view_inputs).look(seen)
        same = {
            bucket
            for bucket, each in seen.items()
            if look.current_inputs[bucket].inputs == each.current.inputs and bucket not in look.changed
        }
        changed = set(judged) - same
        return [_dropped(each, _CHANGED) if each.bucket in changed else each for each in findings]

    def _unmoved(self, rows: Mapping[int, PartitionRow], findings: Sequence[Finding]) -> list[Finding]:
        """The findings, without verdicts on what a bucket no longer holds."""
        now = self._project.store.snapshot(self._view.name).rows
        return [
            each
            if each.bucket in now and now[each.bucket].token == rows[each.bucket].token
            else _dropped(each, _MOVED)
            for each in findings
        ]

    def _quarantine(self, rows: Mapping[int, PartitionRow], findings: Iterable[Finding]) -> None:
        """Buckets that are forced already wait for what a quarantine would ask for."""
        reasons: dict[str, list[int]] = {}
        for each in findings:
            if each.wrong and not rows[each.bucket].forced:
                reasons.setdefault(f"audit: {each.reason}", []).append(each.bucket)
        for reason, buckets in reasons.items():
            self._project.manager.force(self._view.declaration, buckets, reason)


def chosen(
    view: View,
    rows: Mapping[int, PartitionRow],
    seen: Mapping[int, BucketInputs],
    most: int | None,
    chance: random.Random,
) -> Chosen:
    """Which buckets to audit: the newest that can be compared, and others by chance."""
    reasons = {bucket: _hindrance(view, row, seen.get(bucket)) for bucket, row in rows.items()}
    others = {bucket: why for bucket, why in reasons.items() if why is not None}
    comparable = sorted(rows.keys() - others.keys())
    if most is not None and len(comparable) > most:
        comparable = sorted([*chance.sample(comparable[:-1], most - 1), comparable[-1]])
    left = len(others) if most is None else most - len(comparable)
    return Chosen(tuple(comparable), {b: others[b] for b in sorted(others, reverse=True)[:left]})


def _hindrance(view: View, row: PartitionRow, seen: BucketInputs | None) -> str | None:
    """Why a bucket can't be computed again from what its row records."""
    if view.body.columns is not None and view.body.approximate.issuperset(view.body.columns):
        return "an approximate function of its SQL decides which rows there are"
    if seen is None:
        return "it was computed after this audit began"
    if seen.current.inputs is None:
        return f"waits for {seen.current.waiting_for}"
    if row.frozen:
        return "it is frozen: files that it was computed from are gone"
    if seen.current.inputs != row.inputs:
        return "its inputs changed"
    return "; ".join(seen.errors) or None


def _with_data(snapshot: Snapshot) -> dict[int, PartitionRow]:
    """Rows that have something to compare, of the definition that could compute it."""
    header = snapshot.header
    return {bucket: row for bucket, row in snapshot.rows.items() if rules.has_current_data(row, header)}


def _of_damage(rows: Iterable[PartitionRow], damage: Mapping[str, Damage]) -> Iterator[Finding]:
    for row in rows:
        if row.generation is not None and row.generation in damage:
            found = damage[row.generation]
            verdict = Verdict.MISSING if found.missing else Verdict.DIFFERENT
            yield Finding(row.bucket, verdict, row.rows, found.what)


def _dropped(finding: Finding, why: str) -> Finding:
    return Finding(finding.bucket, Verdict.NOT_COMPARABLE, finding.rows, why)
