"""Mistakes with windows, tables and days that could be made, each put in place of the real thing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame

from mv_assets.buckets import DAY, _LocalBuckets
from mv_assets.observe import consistency
from mv_assets.observe.inputs import BucketInputs, Ending, ViewInputs
from mv_assets.observe.second_look import SecondLooks
from mv_assets.run.body import rows_of_bucket
from mv_assets.run.compute import Computation, Schemas
from mv_assets.state.model import EMPTY, SecondLook, Segment

Mutant = Callable[[pytest.MonkeyPatch], None]


def _own(inputs: ViewInputs, bucket: int, segments: Sequence[Segment]) -> set[Segment]:
    """Of a bucket's files, those that reach into the bucket itself."""
    end = inputs.view.buckets.next(bucket)
    return {each for each in segments if each.start_ms < end and each.end_ms >= bucket}


def windows_are_ignored_by_marks(patch: pytest.MonkeyPatch) -> None:
    real = consistency._marks

    def marks(snapshot: Any, inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Any) -> Any:
        changed = [
            each
            for each in found
            if _own(inputs, each.bucket, recorded.get(each.bucket, ()))
            != _own(inputs, each.bucket, inputs.segments(each))
        ]
        return real(snapshot, inputs, changed, recorded)

    patch.setattr(consistency, "_marks", marks)


def windows_are_ignored_by_the_second_look(patch: pytest.MonkeyPatch) -> None:
    real = SecondLooks.look

    def look(self: Any, seen: Mapping[int, BucketInputs]) -> SecondLook:
        found = real(self, seen)
        now = {each.bucket: each for each in self._last.over(min(seen), max(seen) + 1)}
        same = [
            bucket
            for bucket, each in seen.items()
            if _own(self._before, bucket, self._before.segments(each))
            == _own(self._last, bucket, self._last.segments(now[bucket]))
        ]
        own = {b: {s.name for s in _own(self._before, b, self._before.segments(seen[b]))} for b in seen}
        return SecondLook(
            {**found.current_inputs, **{bucket: seen[bucket].current for bucket in same}},
            {b: file for b, file in found.changed.items() if file.rpartition(": ")[2] in own[b]},
        )

    patch.setattr(SecondLooks, "look", look)


def further_tables_are_no_inputs(patch: pytest.MonkeyPatch) -> None:
    real = ViewInputs.over

    def over(self: ViewInputs, first: int, end: int) -> Iterator[BucketInputs]:
        for each in real(self, first, end):
            inputs = each.current.inputs
            if inputs is not None:
                inputs = replace(inputs, further=tuple((name, EMPTY) for name, _ in inputs.further))
            yield replace(each, current=replace(each.current, inputs=inputs))

    patch.setattr(ViewInputs, "over", over)


def further_tables_do_not_hold_w(patch: pytest.MonkeyPatch) -> None:
    def ending(self: ViewInputs, now: int) -> Ending:
        found = self._end(self._windows[0], self.listings[0], now)
        return Ending(found.source_end, None, found.window.table, found.data_end)

    patch.setattr(ViewInputs, "ending", ending)


def days_have_24_hours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_LocalBuckets, "next", lambda _self, start: start + DAY)


def days_of_windows_have_24_hours(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_LocalBuckets, "shifted", lambda _self, time, duration: time + duration)


def buckets_see_each_other(patch: pytest.MonkeyPatch) -> None:
    def see_all(self: Computation, schemas: Schemas, bucket: int) -> DataFrame:
        frames = {
            table.window.table: table.reader.frame(sorted(set().union(*table.files.values())), schema)
            for table, schema in zip(self._tables, schemas, strict=True)
        }
        return rows_of_bucket(self._spark, self._view, bucket, {**frames, **self._joined}, self._names)

    patch.setattr(Computation, "_rows_of", see_all)


MUTANTS: dict[str, Mutant] = {
    "the window is ignored when marking": windows_are_ignored_by_marks,
    "the window is ignored in the second look": windows_are_ignored_by_the_second_look,
    "the second table is left out of the inputs": further_tables_are_no_inputs,
    "W is capped by the base alone": further_tables_do_not_hold_w,
    "a day of 24 hours": days_have_24_hours,
    "windows of days of 24 hours": days_of_windows_have_24_hours,
    "buckets see each other's rows": buckets_see_each_other,
}
