"""Buckets computed once more from files as Arrow reads them: what Spark reads wrong, it reads wrong twice."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from mv_assets.errors import JobFailed, TableRefused, TableUnreadable, Unreadable
from mv_assets.maintain.recomputation import NO_ROWS, Finding, Verdict, against_stored, differing
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.opened import OpenProject
from mv_assets.spark.comparing import Compared
from mv_assets.spark.types import has_floats
from mv_assets.state.model import BUCKET, PartitionRow
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
        equal = [
            each.bucket for each in found if each.verdict is Verdict.EQUAL and self._members(each.bucket)
        ]
        chosen, large = self._chosen(equal, chance)
        reread: dict[int, Compared | str] = dict.fromkeys(large, f"more than {LARGEST >> 20} MB of files")
        if chosen:
            with self.project.engine.session() as spark:
                reread |= self._reread(spark, chosen)
        return [_reread(each, reread[each.bucket]) if each.bucket in reread else each for each in found]

    def _members(self, bucket: int) -> Sequence[int]:
        return self.seen[bucket].members if bucket in self.seen else ()

    def _chosen(self, buckets: Sequence[int], chance: random.Random) -> tuple[list[int], list[int]]:
        """The newest and others by chance; and those of them that are too large."""
        ordered = sorted(buckets, reverse=True)
        ordered[1:] = chance.sample(ordered[1:], min(MOST - 1, len(ordered[1:])))
        sizes = self.view_inputs.base.sizes
        whole = left = LARGEST - sum(sum(listing.sizes) for listing in self.view_inputs.dimensions.values())
        chosen, large = list[int](), list[int]()
        for bucket in ordered:
            size = sum(sizes[at] for at in self._members(bucket))
            if size > whole:
                large.append(bucket)
            elif size <= left:
                chosen.append(bucket)
                left -= size
        return chosen, large

    def _reread(self, spark: SparkSession, buckets: Sequence[int]) -> _Reread:
        with ExitStack() as held:
            # Inside, so that the rows that Arrow read do not stay behind.
            try:
                return self._compared(held, spark, buckets)
            except (JobFailed, Unreadable, TableRefused, TableUnreadable) as error:
                why = str(error)
        if len(buckets) == 1:
            return dict.fromkeys(buckets, why)
        return {bucket: said for one in buckets for bucket, said in self._reread(spark, [one]).items()}

    def _compared(self, held: ExitStack, spark: SparkSession, buckets: Sequence[int]) -> _Reread:
        view, sources = self.view_inputs.view, self.project.sources
        seen = {bucket: self.seen[bucket] for bucket in buckets}
        computation = sources.computation(held, spark, self.view_inputs, seen, by_arrow=True)
        groups = computation.groups(buckets)
        keyed = {view.buckets.key(bucket): self.rows[bucket] for bucket in buckets}
        stored = sources.stored(spark, view.name, keyed, view.sql.columns)
        found: dict[int, Compared | str] = dict(groups.failing)
        for group in groups.alike:
            loosely = partial(_summed_floats, view, group.schema)
            compared = against_stored(view, computation, stored, group.schema, group.buckets, loosely)
            found |= {bucket: compared.get(bucket, NO_ROWS) for bucket in group.buckets}
        return found


def _summed_floats(view: View, base: StructType, columns: StructType) -> set[str]:
    """Output columns that floating point was aggregated for.

    Rows that come another way are added up in another order, and where they cancel out, or a variance is made
    of them, no digit need be the same: only whether there is a value.
    """
    if not view.sql.aggregates:
        return set()
    floats = {part.name.lower() for part in base if has_floats(part.dataType)}
    return {
        part.name
        for part in columns
        if part.name != BUCKET
        and (
            has_floats(part.dataType)
            or any(column.lower() in floats for _, column in view.sql.lineage.get(part.name, ()))
        )
    }


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
