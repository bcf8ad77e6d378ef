"""Tables and views as data frames for one query: base files by their paths, stored buckets by the map."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import NamedTuple, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from mv_assets.query.errors import OtherColumns
from mv_assets.query.match.spans import AFTER, BEFORE, Spans
from mv_assets.query.route.pinned import Pinned
from mv_assets.query.route.schema_cache import Schemas
from mv_assets.run.body import prepared, refuse_shared, rows_of_bucket
from mv_assets.run.opened import OpenProject
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.names import TemporaryNames
from mv_assets.spark.read.columns import Types
from mv_assets.spark.read.files import as_text, quoted, union
from mv_assets.spark.read.readers import once, reader_of
from mv_assets.spark.read.windows import refuse_other_days, within
from mv_assets.spark.session import in_zone
from mv_assets.spark.types import widest
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets.state.model import BUCKET, PartitionRow
from mv_assets.tables.listing import Listing
from mv_assets.tables.times import TimeColumn
from mv_assets.views.view import View


class Relations:
    """Makes the frames of one try of a query. The names that they have in Spark last as long as the block."""

    def __init__(self, project: OpenProject, pinned: Pinned, spark: SparkSession, schemas: Schemas) -> None:
        self._project = project
        self._schemas = schemas
        self._pinned = pinned
        self._spark = spark
        self._held, self._prepared = ExitStack(), set[str]()
        self._names = self._held.enter_context(TemporaryNames(spark))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.__exit__(kind, error, trace)

    def setting(self, key: str) -> str:
        """What the session has set."""
        return str(self._spark.conf.get(key))

    def prepare(self, view: View) -> None:
        """Have the code of a view at hand while the block runs."""
        if view.name not in self._prepared:
            self._prepared.add(view.name)
            self._held.enter_context(prepared(self._project.catalog, view, self._names))

    def bucket(self, view: View, bucket: int, frames: Mapping[str, DataFrame]) -> DataFrame:
        """What a view gives in one bucket of the rows of its windows; one outside of them ends the query."""
        rows = rows_of_bucket(self._spark, view, bucket, frames, self._names)
        what = f"view {view.name} gave a row outside of what bucket {view.buckets.key(bucket)} is made of"
        return rows.where(f"coalesce({BUCKET}, raise_error('{what}')) = {bucket}L").drop(BUCKET)

    def together(self, view: View, parts: Sequence[DataFrame]) -> DataFrame:
        """Rows of a view, stored or computed, with their columns in the order of the first.

        Raises:
            OtherColumns: they don't go together.

        """
        refuse_shared(view, parts, self._names)
        columns = parts[0].columns
        if any(set(part.columns) != set(columns) for part in parts):
            raise OtherColumns(view.name)
        try:
            return alike([part.select(*map(quoted, columns)) for part in parts])
        except NotPlain:
            raise OtherColumns(view.name) from None

    def sql(self, text: str) -> DataFrame:
        return self._spark.sql(text)

    @contextmanager
    def zone_of(self, view: View) -> Iterator[None]:
        """While the block runs, have the time zone that a view is computed in, whatever the session's is."""
        with in_zone(self._spark, view.buckets.zone or "UTC"), spark_errors():
            yield

    def fixed(self, frame: DataFrame) -> DataFrame:
        """A frame that means what it does now: a Connect server judges one without a name when read."""
        return self._spark.table(self.name(frame))

    def schema(self, text: str, key: tuple[str, str]) -> StructType:
        """What a query gives, which for the same key is always the same."""
        return self._schemas.get(key, lambda: self._spark.sql(text).schema)

    def types(self, kinds: Mapping[str, str | None]) -> dict[str, DataType]:
        """Types by their names, as far as those are known."""
        types = Types(self._spark)
        return {name: types.of(kind) for name, kind in kinds.items() if kind is not None}

    def values(self, expressions: Sequence[str]) -> list[tuple[str, str | None]]:
        """The type and the text of constants, all at one moment."""
        columns = (f"typeof({each}), CAST({each} AS STRING)" for each in expressions)
        [row] = self._spark.sql(f"SELECT {', '.join(columns)}").collect()
        return [(row[at], row[at + 1]) for at in range(0, len(row), 2)]

    def name(self, frame: DataFrame) -> str:
        """A name for the frame in SQL."""
        return self._names.of(frame)

    def reads(self, table: str, spans: Spans, *, nulls: bool) -> bool:
        """Whether any file would be read for some time of a table."""
        if not spans and not nulls and not self._pinned.unread(table):
            return False
        listing = self._pinned.tables.listing(table)
        return bool(listing.unread) or bool(_reached(listing, spans, nulls=nulls))

    def base(
        self,
        table: str,
        columns: Mapping[str, str | None] | None,
        spans: Spans | None,
        *,
        nulls: bool,
        mentioned: Iterable[str] = (),
        zone: str | None = None,
    ) -> tuple[DataFrame, Files]:
        """Rows of a base table: all, or those in some time; with `nulls`, also those whose time is null.

        For a view in a zone, their times have to be moments.

        Columns, or all, come with the types that they have in the whole table, as far as that is known; those
        that are only `mentioned` come if these files have them.

        Raises:
            Unreadable: a file is broken, or there is none to tell the columns by.

        """
        listing = self._pinned.tables.listing(table)
        declared = self._project.catalog.tables[table]
        time = declared.time_column
        timed = [time] if time is not None and spans is not None else []
        wanted = None if columns is None else dict.fromkeys([*columns, *timed])
        reader = reader_of(self._spark, self._project.tables[table], listing, wanted, mentioned)
        files = _reached(listing, spans, nulls=nulls)
        unread = sorted(listing.unread) if spans is not None else []
        # Before anything is opened: what is gone by then has changed under the query.
        self._pinned.note(table, {*files, *unread})
        learned = [*files, *unread] or _newest(listing)
        reader.learn(learned)
        if time is not None:
            refuse_other_days(table, TimeColumn(time), zone, map(reader.schema, ([name] for name in learned)))
        schema = self._widened(reader.schema(learned), columns or {})
        if not schema.fields:
            raise Unreadable(f"table {table} has no files yet, so its columns are not known")
        rows = reader.frame(files, schema)
        if spans is not None and time is not None:
            rows = rows.where(_times(schema, TimeColumn(time, declared.time_unit), spans, nulls=nulls))
        if unread:
            rows = rows.unionAll(reader.frame(unread, schema))
        sizes = dict(zip(listing.names, listing.sizes, strict=True))
        known = {name.lower() for name in schema.fieldNames()}
        asked = schema.fieldNames() if columns is None else [*columns, *mentioned]
        chosen = [name for name in once(asked) if name.lower() in known]
        return rows.selectExpr(*map(quoted, chosen)), Files(
            len(files) + len(unread), sum(sizes.get(name, 0) for name in files)
        )

    def _widened(self, schema: StructType, columns: Mapping[str, str | None]) -> StructType:
        """The types of some files, no narrower than the table's."""
        types = Types(self._spark)
        given = {name.lower(): types.of(kind) for name, kind in columns.items() if kind is not None}
        return StructType(
            [
                StructField(field.name, widest(field.dataType, given[field.name.lower()]) or field.dataType)
                if field.name.lower() in given
                else field
                for field in schema
            ]
        )

    def empty(self, columns: Mapping[str, str]) -> DataFrame:
        """No rows, of columns of those types."""
        nothing = (f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns.items())
        return self._spark.sql(f"SELECT {', '.join(nothing)} WHERE false")

    def within(self, frame: DataFrame, time: TimeColumn, spans: Spans) -> DataFrame:
        """The rows of a view that lie in some time."""
        return frame.where(_times(frame.schema, time, spans, nulls=False))

    def stored(
        self,
        view: View,
        rows: Mapping[int, PartitionRow],
        columns: Iterable[str] | None,
        cut: Spans | None,
        time: str,
    ) -> Stored | None:
        """Rows of a view as stored, of some buckets, or of some time in them; None: there are none."""
        # A generation may hold nothing of a bucket, and even no file.
        filled = {str(bucket): row for bucket, row in sorted(rows.items()) if row.generation and row.rows}
        if not filled:
            return None
        names, asked = list(filled), None if columns is None else [*dict.fromkeys(columns)]
        needed = None if asked is None else {*asked, time}
        reader = self._project.sources.stored(self._spark, view.name, filled, needed)
        reader.learn(names)
        schema = reader.schema(names)
        wanted = schema.names if asked is None else asked
        found = reader.with_buckets(names, schema)
        if cut is not None:
            found = found.where(_times(schema, TimeColumn(time), cut, nulls=False))
        kept = StructType([schema[name] for name in wanted])
        return Stored(found.selectExpr(*map(quoted, wanted)), kept)


class Stored(NamedTuple):
    """Rows of a view, and their types, which need not be asked for."""

    frame: DataFrame
    schema: StructType


class Files(NamedTuple):
    """How many files are read of a table, and how many bytes they have."""

    number: int
    bytes: int


def alike(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of frames with the same columns, in types that hold all their values.

    Raises:
        NotPlain: there are no such types.

    """
    schemas = [frame.schema for frame in frames]
    kinds = [
        _widest(schema.fields[at].dataType for schema in schemas) for at in range(len(schemas[0].fields))
    ]
    return union([cast(frame, schema, kinds) for frame, schema in zip(frames, schemas, strict=True)])


def _widest(kinds: Iterable[DataType]) -> DataType:
    first, *others = kinds
    for kind in others:
        wider = widest(first, kind)
        if wider is None:
            raise NotPlain("its columns have other types than the base table's")
        first = wider
    return first


def cast(frame: DataFrame, schema: StructType, kinds: Sequence[DataType]) -> DataFrame:
    """The frame's columns in other types."""
    if [field.dataType for field in schema] == list(kinds):
        return frame
    return frame.selectExpr(*map(as_text, schema.fieldNames(), [f.dataType for f in schema], kinds))


def _reached(listing: Listing, spans: Spans | None, *, nulls: bool) -> list[str]:
    """The files to read: those that reach into the time, and those with rows of no time."""
    if spans is None:
        return sorted({*listing.names, *listing.timeless, *listing.unread})
    found = {
        name
        for name, start, end in zip(listing.names, listing.starts, listing.ends, strict=True)
        if _overlaps(spans, start, end)
    }
    if nulls:
        found |= listing.nulls.keys() | listing.timeless
    return sorted(found - listing.unread)


def _overlaps(spans: Spans, start: int, end: int) -> bool:
    at = bisect_right(spans, (end, AFTER)) - 1
    return at >= 0 and spans[at][1] > start


def _newest(listing: Listing) -> list[str]:
    """One file that tells the columns where none has to be read."""
    if not listing.names:
        return sorted(listing.timeless - listing.unread)[:1]
    usable = [at for at, name in enumerate(listing.names) if name not in listing.broken]
    return [listing.names[max(usable, key=listing.ends.__getitem__)]] if usable else []


def _times(schema: StructType, column: TimeColumn, spans: Spans, *, nulls: bool) -> str:
    """The condition that a row's time lies in one of the spans."""
    field = next((part for part in schema if part.name.lower() == column.name.lower()), None)
    if field is None:
        # Where no file has the column, every time is null.
        return "true" if nulls else "false"
    time, kind = quoted(field.name), field.dataType
    bounds = ((None if start == BEFORE else start, None if end == AFTER else end) for start, end in spans)
    conditions = [within(time, kind, column.unit, *each, column.zone) for each in bounds]
    if nulls:
        conditions.append(f"{time} IS NULL")
    return " OR ".join(conditions) or "false"
