"""Buckets computed once more from files as Arrow reads them: what Spark reads wrong, it reads wrong twice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from mv_assets.maintain.recomputation import NO_ROWS, Finding, Verdict, against_stored, differing
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.plan.planner import to_read
from mv_assets.run.attempt import Parts, halves, isolate
from mv_assets.run.compute import Schemas
from mv_assets.run.opened import OpenProject
from mv_assets.spark.comparison import Compared
from mv_assets.spark.errors import JobFailed, Unreadable
from mv_assets.spark.types import has_floats
from mv_assets.state.model import BUCKET, PartitionRow
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.views.view import View

# How many buckets of an audit at most, and how many bytes their files may have together.
MOST, LARGEST = 10, 64 << 20
# What is said of a bucket: how its rows compare, or why they were not read.
_Reread = Mapping[int, Compared | str]


@dataclass(frozen=True, slots=True)
class Rereading:
    """Looks at buckets that equal what Spark computes again, as `view_inputs` lists their files."""

    project: OpenProject
    view_inputs: ViewInputs
    seen: Mapping[int, BucketInputs]
    rows: Mapping[int, PartitionRow]

    def findings(self, found: Sequence[Finding], chance: random.Random) -> list[Finding]:
        """The findings, of some buckets with what came of reading them once more.

        What Arrow can't read, or only Spark's own reading can be computed from, is no difference.
        """
        equal = [each.bucket for each in found if each.verdict is Verdict.EQUAL and self._size(each.bucket)]
        chosen, large = self._chosen(equal, chance)
        reread: dict[int, Compared | str] = dict.fromkeys(large, f"more than {LARGEST >> 20} MB of files")
        if chosen:
            with self.project.engine.session() as spark:
                reread |= self._reread(spark, chosen)
        return [_reread(each, reread[each.bucket]) if each.bucket in reread else each for each in found]

    def _size(self, bucket: int) -> int:
        """The bytes of what a bucket is computed from; 0 if it has no files."""
        if bucket not in self.seen:
            return 0
        return to_read(self.view_inputs, {bucket: self.seen[bucket].reached})

    def _chosen(self, buckets: Sequence[int], chance: random.Random) -> tuple[list[int], list[int]]:
        """The newest and others by chance; and those of them that are too large."""
        ordered = sorted(buckets, reverse=True)
        ordered[1:] = chance.sample(ordered[1:], min(MOST - 1, len(ordered[1:])))
        whole = left = LARGEST - sum(sum(listing.sizes) for listing in self.view_inputs.dimensions.values())
        chosen, large = list[int](), list[int]()
        for bucket in ordered:
            size = self._size(bucket)
            if size > whole:
                large.append(bucket)
            elif size <= left:
                chosen.append(bucket)
                left -= size
        return chosen, large

    def _reread(self, spark: SparkSession, buckets: Sequence[int]) -> _Reread:
        found: dict[int, Compared | str] = {}

        def attempt(part: Sequence[int]) -> Parts:
            try:
                found.update(self._compared(spark, part))
            except (JobFailed, Unreadable, TableRefused, TableUnreadable) as error:
                # That it lies in the query would be so of files with the same columns only.
                parts = halves(part)
                if not parts:
                    found[part[0]] = str(error)
                return parts
            return ()

        isolate(buckets, attempt)
        return found

    def _compared(self, spark: SparkSession, buckets: Sequence[int]) -> _Reread:
        view, sources = self.view_inputs.view, self.project.sources
        seen = {bucket: self.seen[bucket] for bucket in buckets}
        keyed = {view.buckets.key(bucket): self.rows[bucket] for bucket in buckets}
        with sources.computation(spark, self.view_inputs, seen, by_arrow=True) as computation:
            groups = computation.groups(buckets)
            stored = sources.stored(spark, view.name, keyed, view.body.columns)
            found: dict[int, Compared | str] = dict(groups.failing)
            for group in groups.alike:
                loosely = partial(_summed_floats, view, group.schemas)
                compared = against_stored(view, computation, stored, group.schemas, group.buckets, loosely)
                found |= {bucket: compared.get(bucket, NO_ROWS) for bucket in group.buckets}
        return found


def _summed_floats(view: View, tables: Schemas, columns: StructType) -> set[str]:
    """Output columns that floating point was aggregated for.

    Rows that come another way are added up in another order, and where they cancel out, or a variance is made
    of them, no digit need be the same: only whether there is a value.
    """
    if not view.body.aggregates:
        return set()
    floats = {part.name.lower() for schema in tables for part in schema if has_floats(part.dataType)}
    lineage = view.body.lineage

    def may_sum(name: str) -> bool:
        # Where nobody can tell what a column is made of, it may be any.
        return bool(floats) and (
            name not in lineage or any(column.lower() in floats for _, column in lineage[name])
        )

    others = [part for part in columns if part.name != BUCKET]
    return {part.name for part in others if has_floats(part.dataType) or may_sum(part.name)}


def _reread(finding: Finding, said: Compared | str) -> Finding:
    if isinstance(said, str):
        return replace(finding, not_reread=said)
    if said.differing == 0:
        return replace(finding, reread=True)
    why = (
        f"{differing(said)} from a recomputation of what Arrow reads, though not of what Spark reads: they "
        "read its files differently, which a refresh does not mend; please report it"
    )
    return replace(finding, verdict=Verdict.DIFFERENT, reason=why, reread=True)
