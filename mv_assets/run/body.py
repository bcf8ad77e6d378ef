"""What a view's SQL or function makes of frames: of all buckets at once, or of the windows of one bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType

from mv_assets.spark.errors import JobFailed
from mv_assets.spark.names import TemporaryNames
from mv_assets.spark.read.files import quoted, union
from mv_assets.spark.read.windows import bucket_of, refuse_without_zone
from mv_assets.spark.types import nullable
from mv_assets.spark.user_code import by_value, function_errors
from mv_assets.state.model import BUCKET
from mv_assets.views.catalog import Catalog
from mv_assets.views.python import Bucket, ViewFunction
from mv_assets.views.view import View

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_RESERVED = "_mv"


@contextmanager
def prepared(catalog: Catalog, view: View, names: TemporaryNames) -> Iterator[None]:
    """While a view is computed, have its code at hand, here and on the workers."""
    called = [catalog.functions[name] for name in sorted(view.body.calls)]
    own = [view.body.loaded] if isinstance(view.body, ViewFunction) else []
    with ExitStack() as held:
        if called or own:
            held.enter_context(by_value([*own, *(each.loaded for each in called)]))
        if own:
            names.notice_others()
        for each in called:
            names.register(each.declared.name, each.loaded.function, each.declared.returns)
        yield


def rows_of_all(
    spark: SparkSession, view: View, frames: Mapping[str, DataFrame], names: TemporaryNames
) -> DataFrame:
    """What the SQL gives on all these rows, each row with the start of its bucket."""
    for table, frame in frames.items():
        names.call(frame, table)
    rows = spark.sql(view.select.bare)
    _refuse_clocks(view, rows)
    return rows.withColumn(BUCKET, bucket_of(sql.col(quoted(view.declared.time_column)), view.buckets))


def rows_of_buckets(view: View, parts: Sequence[DataFrame], names: TemporaryNames) -> DataFrame:
    """All rows of several buckets, each made by itself.

    Raises:
        JobFailed: put together they would not be the rows that each of them has alone.

    """
    first, *others = parts
    refuse_shared(view, parts, names)
    if isinstance(view.body, ViewFunction) and others:
        _refuse_unlike(view.body, first, others)
        # A union goes by the places of columns, which may be others each time.
        others = [part.select(*map(quoted, first.columns)) for part in others]
    return union([first, *others])


def refuse_shared(view: View, parts: Sequence[DataFrame], names: TemporaryNames) -> None:
    """A Connect server looks names up late: what a function calls so for one bucket is the next one's.

    Raises:
        JobFailed: it can give the rows of one bucket only.

    """
    if isinstance(view.body, ViewFunction) and len(parts) > 1:
        for shared in names.of_others():
            raise JobFailed(
                f"{view.body.name} makes a temporary view ({shared}), which on a Connect server several "
                "buckets would share; use the DataFrame itself"
            )


def _refuse_unlike(body: ViewFunction, first: DataFrame, others: Sequence[DataFrame]) -> None:
    """A union would have one type for all, which the values of each would be cast to."""
    kinds = _kinds(first)
    unlike = next((each for each in map(_kinds, others) if each != kinds), None)
    if unlike is not None:
        one, other = (
            ", ".join(f"{name} {kind.simpleString()}" for name, kind in each.items())
            for each in (kinds, unlike)
        )
        raise JobFailed(f"{body.name} gives other columns for some buckets ({one}; {other})")


def _kinds(frame: DataFrame) -> dict[str, DataType]:
    return {part.name: nullable(part.dataType) for part in frame.schema if part.name != BUCKET}


def rows_of_bucket(
    spark: SparkSession,
    view: View,
    bucket: int,
    frames: Mapping[str, DataFrame],
    names: TemporaryNames,
) -> DataFrame:
    """What a view gives on the rows of a bucket's windows, as far as that lies in the bucket.

    A row that lies in none of the windows has no bucket: it must not become one of a neighbour's.
    """
    end = view.buckets.next(bucket)
    if isinstance(view.body, ViewFunction):
        rows = _called(view, view.body, bucket, frames)
    else:
        # Under names of its own: another bucket's rows must not be found in their place.
        tables = ", ".join(
            f"{quoted(table)} AS (SELECT * FROM {names.of(frame)})" for table, frame in frames.items()
        )
        rows = spark.sql(
            f"WITH {tables} SELECT * FROM (\n{view.select.bare}\n)",
            args={"bucket_start": _time(bucket), "bucket_end": _time(end)},
        )
    _refuse_clocks(view, rows)
    windows = [view.buckets.window(bucket, window.before, window.after) for window in view.windows]
    time = f"unix_micros(CAST({quoted(view.declared.time_column)} AS TIMESTAMP))"
    here = _between(time, bucket, end)
    around = _between(time, min(start for start, _ in windows), max(stop for _, stop in windows))
    kept = rows.where(f"coalesce({here}, false) OR NOT coalesce({around}, false)")
    return kept.withColumn(BUCKET, sql.expr(f"CASE WHEN {here} THEN {bucket}L END"))


def _called(view: View, body: ViewFunction, bucket: int, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What a function gives, which is a frame with names that can be kept."""
    given: dict[str, DataFrame | Bucket] = {**frames}
    if body.takes_bucket:
        zone = ZoneInfo(view.declared.timezone)
        start, end = (_time(edge).astimezone(zone) for edge in (bucket, view.buckets.next(bucket)))
        given["bucket"] = Bucket(start, end, view.buckets.key(bucket))
    with function_errors(body.loaded):
        made: object = body.function(**given)
        columns = made.columns if isinstance(made, DataFrame) else []
    if not isinstance(made, DataFrame):
        raise JobFailed(
            f"{body.name} gives a {type(made).__name__}, not a DataFrame; return the bucket's rows"
        )
    folded = [column.lower() for column in columns]
    wrong = next((name for name in folded if folded.count(name) > 1 or name.startswith(_RESERVED)), None)
    if wrong is not None:
        raise JobFailed(
            f"{body.name} gives a column {wrong} twice, or one that begins with {_RESERVED}; rename it"
        )
    if view.declared.time_column.lower() not in folded:
        raise JobFailed(
            f"{body.name} gives no column {view.declared.time_column}, which is the view's time_column; "
            f"it gives {', '.join(columns)}"
        )
    return made


def _refuse_clocks(view: View, rows: DataFrame) -> None:
    if view.buckets.zone is not None:
        refuse_without_zone(rows.schema, view.declared.time_column)


def _between(time: str, start: int, end: int) -> str:
    return f"({time} >= {start * 1_000}L AND {time} < {end * 1_000}L)"


def _time(when: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=when)
