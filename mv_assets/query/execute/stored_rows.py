"""A view's rows by its name: only of buckets that are VALID, pinned for as long as they are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

from pyspark.sql import DataFrame, SparkSession

from mv_assets.query.errors import NeverFilled, NotValid
from mv_assets.run.opened import OpenProject
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.read.files import quoted
from mv_assets.state import health, rules
from mv_assets.state.model import PartitionRow, Snapshot, State
from mv_assets.views.view import View


@contextmanager
def rows_of(project: OpenProject, view: View, window: tuple[int, int] | None = None) -> Iterator[DataFrame]:
    """The rows of a window of time, or (None) of all that is there, through W; to be read in the block.

    Raises:
        NotValid: a bucket of the window, or below W, can't be trusted now.
        NeverFilled: the view has never had a row, so that not even its types are known.
        LeaseExpired: at the end of the block, if the lease could not be kept; discard what was read.

    """
    spark = project.engine.shared()
    with project.leases.pin(view.name) as pinned:
        yield _frame(project, spark, view, pinned.snapshot, window)


def _frame(
    project: OpenProject, spark: SparkSession, view: View, snapshot: Snapshot, window: tuple[int, int] | None
) -> DataFrame:
    wanted = _wanted(view, snapshot, window)
    # Where no bucket has rows, another one still tells the types.
    filled = [row for row in wanted if row.rows] or _newest_filled(snapshot)
    if not filled:
        raise NeverFilled(view.name)
    key = view.buckets.key
    rows = {key(row.bucket): row for row in (*wanted, *filled)}
    reader = project.sources.stored(spark, view.name, rows, view.body.columns)
    with spark_errors():
        reader.learn([key(row.bucket) for row in filled])
        schema = reader.schema(key(row.bucket) for row in filled)
        columns = view.body.columns or schema.names
        return reader.frame([key(row.bucket) for row in wanted], schema).select(*map(quoted, columns))


def _wanted(view: View, snapshot: Snapshot, window: tuple[int, int] | None) -> list[PartitionRow]:
    """The rows of the map to read.

    Of a window that was asked for, every bucket must be there; of the whole view, those below W.
    """
    header = snapshot.header
    first, end = window or (header.start, header.watermark)
    found, untrusted = [], dict[int, str]()
    for bucket in view.buckets.between(first, end):
        row = snapshot.rows.get(bucket)
        if row is None:
            untrusted[bucket] = "never computed"
        elif rules.effective_state(row, header) is State.STALE:
            untrusted[bucket] = f"STALE: {health.stale_reason(row)}"
        else:
            found.append(row)
    if untrusted:
        bucket, why = next(iter(untrusted.items()))
        raise NotValid(view.name, view.buckets.key(bucket), why, len(untrusted) - 1)
    return found


def _newest_filled(snapshot: Snapshot) -> list[PartitionRow]:
    filled = (row for _, row in sorted(snapshot.rows.items(), reverse=True) if row.rows)
    return list(islice(filled, 1))
