"""Buckets computed once more and compared with what is stored of them, many in one Spark job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField, StructType

from mv_assets.maintain.damage import Damage, Files, unreadable
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.run.attempt import Parts, halves, isolate
from mv_assets.run.compute import Computation, Schemas
from mv_assets.run.opened import OpenProject
from mv_assets.spark.comparison import Compared, compared
from mv_assets.spark.errors import JobFailed, Unreadable
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.read.files import quoted
from mv_assets.spark.read.stored import StoredReader
from mv_assets.spark.types import nullable
from mv_assets.state.model import BUCKET, PartitionRow
from mv_assets.views.view import View

Compare = Callable[[Sequence[int]], Mapping[int, Compared]]
Read = Callable[[int], None]
NO_ROWS = Compared(0, 0, 0)


class Verdict(StrEnum):
    EQUAL = "equal"
    DIFFERENT = "different"
    MISSING = "missing"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit says of one bucket. `failed`: it can't say more, though nothing is in the way.

    `reread`: its files were read by Arrow too; or why they were not, if that was tried.
    """

    bucket: int
    verdict: Verdict
    rows: int
    reason: str | None = None
    failed: bool = False
    reread: bool = False
    not_reread: str | None = None

    @property
    def wrong(self) -> bool:
        """Whether what is stored can't be trusted."""
        return self.verdict in (Verdict.DIFFERENT, Verdict.MISSING)

    @property
    def misread(self) -> bool:
        """Whether Spark and Arrow read its files differently, which computing it again does not mend."""
        return self.wrong and self.reread


def against_stored(
    view: View,
    computation: Computation,
    stored: StoredReader,
    schemas: Schemas,
    buckets: Sequence[int],
    loosely: Callable[[StructType], Collection[str]] = lambda _columns: (),
) -> Mapping[int, Compared]:
    """Compute buckets, and compare them with what is stored; those without any rows are left out.

    Of columns that are compared `loosely`, only where they are null.
    """
    names = [view.buckets.key(bucket) for bucket in buckets]
    stored.learn(names)
    with spark_errors():
        computed = computation.rows(schemas, buckets)
        # What is stored may hold nulls by its type, wherever the SQL says that there are none.
        given = [part for part in computed.schema if part.name != BUCKET]
        columns = StructType([StructField(part.name, nullable(part.dataType)) for part in given])
        there, here = stored.with_buckets(names, columns), computed
        for column in loosely(computed.schema):
            there, here = _whether_null(there, column), _whether_null(here, column)
        return compared(there, here, view.body.approximate)


def _whether_null(rows: DataFrame, column: str) -> DataFrame:
    return rows.withColumn(column, sql.col(quoted(column)).isNull())


def differing(found: Compared) -> str:
    """How many rows differ."""
    most = max(found.stored, found.computed)
    return f"{found.differing} of {most} row{'s' * (most > 1)} differ{'s' * (found.differing == 1)}"


class Recomputation:
    """Compares buckets whose inputs are the recorded ones, as `view_inputs` lists them."""

    def __init__(
        self,
        project: OpenProject,
        view_inputs: ViewInputs,
        seen: Mapping[int, BucketInputs],
        rows: Mapping[int, PartitionRow],
        files: Files,
    ) -> None:
        self._project = project
        self._view_inputs = view_inputs
        self._seen = seen
        self._rows = rows
        self._files = files
        # Generations that turned out to be damaged on the way.
        self.damage: dict[str, Damage] = {}

    def findings(self) -> Iterator[list[Finding]]:
        """Job by job; buckets of damaged generations are left to those who ask for `damage`."""
        full = {bucket: each for bucket, each in self._seen.items() if each.has_files}
        empty = [bucket for bucket in self._seen if bucket not in full]
        if empty:
            yield [self._without_files(bucket) for bucket in empty]
        if full:
            yield from self._with_files(full)

    def _with_files(self, full: Mapping[int, BucketInputs]) -> Iterator[list[Finding]]:
        view, sources = self._view_inputs.view, self._project.sources
        keyed = {view.buckets.key(bucket): self._rows[bucket] for bucket in full}
        with (
            self._project.engine.session() as spark,
            sources.computation(spark, self._view_inputs, full) as computation,
        ):
            groups = computation.groups(list(full))
            yield [self._failed(bucket, why) for bucket, why in groups.failing.items()]
            yield [self._without_files(bucket) for bucket in groups.empty]
            stored = sources.stored(spark, view.name, keyed, view.body.columns)
            most = view.declared.max_buckets_per_run
            for group in groups.alike:
                compare = partial(against_stored, view, computation, stored, group.schemas)
                for at in range(0, len(group.buckets), most):
                    yield self._compared(group.buckets[at : at + most], compare, partial(self._read, stored))

    def _read(self, stored: StoredReader, bucket: int) -> None:
        """Read what is stored of a bucket to its end."""
        names = [self._view_inputs.view.buckets.key(bucket)]
        stored.learn(names)
        with spark_errors():
            rows = stored.with_buckets(names, stored.schema(names))
            compared(rows, rows.limit(0))

    def _compared(self, buckets: Sequence[int], compare: Compare, read: Read) -> list[Finding]:
        """Compare buckets; where that fails, with as few of them lost as can be."""
        found = list[Finding]()
        isolate(buckets, lambda part: self._attempt(part, compare, read, found))
        return found

    def _attempt(self, buckets: Sequence[int], compare: Compare, read: Read, found: list[Finding]) -> Parts:
        whole = [bucket for bucket in buckets if self._rows[bucket].generation not in self.damage]
        try:
            differences = compare(whole) if whole else {}
        except (JobFailed, Unreadable) as error:
            parts = self._parts(whole, read, error)
            if not parts:
                found += [self._failed(bucket, str(error)) for bucket in whole]
            return parts
        found += [self._finding(bucket, differences.get(bucket, NO_ROWS)) for bucket in whole]
        return ()

    def _parts(self, buckets: Sequence[int], read: Read, error: JobFailed | Unreadable) -> Parts:
        """What to try of buckets that failed: all but those whose generations turn out to be why."""
        damage = self._damage(buckets, read)
        self.damage |= damage
        if damage:
            return [buckets]
        return halves(buckets, everywhere=isinstance(error, JobFailed) and error.everywhere)

    def _damage(self, buckets: Sequence[int], read: Read) -> dict[str, Damage]:
        """Generations of buckets that could not be compared, as far as they are why."""
        named = {name for bucket in buckets if (name := self._rows[bucket].generation)}
        damage = unreadable(self._project.warehouse, sorted(named), self._files)
        if not damage and len(buckets) == 1:
            return self._unreadable_to_spark(buckets[0], read)
        return damage

    def _unreadable_to_spark(self, bucket: int, read: Read) -> dict[str, Damage]:
        """Spark knows checksums of local files that nobody else looks at."""
        generation = self._rows[bucket].generation
        if generation is not None:
            try:
                read(bucket)
            except (JobFailed, Unreadable) as error:
                what = f"generation {generation} can't be read ({error})"
                return {generation: Damage(what, missing=False)}
        return {}

    def _finding(self, bucket: int, found: Compared) -> Finding:
        if found.differing == 0:
            return Finding(bucket, Verdict.EQUAL, found.stored)
        return Finding(bucket, Verdict.DIFFERENT, found.stored, f"{differing(found)} from a recomputation")

    def _failed(self, bucket: int, error: str) -> Finding:
        why = f"it can't be computed again: {error}"
        return Finding(bucket, Verdict.NOT_COMPARABLE, self._rows[bucket].rows, why, failed=True)

    def _without_files(self, bucket: int) -> Finding:
        rows = self._rows[bucket].rows
        return self._finding(bucket, Compared(rows, 0, rows))
