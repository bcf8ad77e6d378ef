"""Parquet files as one data frame, read by their paths, whatever each of them calls and types its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from posixpath import basename, normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from mv_assets.config import Storage
from mv_assets.spark import stores
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.job_size import list_at_once, read_whole_columns
from mv_assets.spark.stores import spark_path
from mv_assets.spark.types import completed
from mv_assets.spark.versions import keeps_structs
from mv_assets.text import printable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

# What Spark takes for a pattern.
_PATTERN = re.compile(r"([\\*?\[\]{}])")
_URI = re.compile(r"(?:[a-zA-Z][\w+.-]*:)?(?://([^/]*))?(.*)", re.DOTALL)
_FIELD_ID = "parquet.field.id"
_PATH, _KNOWN = "_mv_path", "_mv_known"
# A date or time without a zone, as a listing reads it.
_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+)?")
# Spark writes a path on this machine now with one slash, now with three.
_LOCAL = re.compile("^file:/+")
# Hadoop's local files have checksums beside them, and it can't build the name of one with a colon in it.
_WITHOUT_CHECKSUMS = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(frozen=True, slots=True)
class Held:
    """A column inside a file: under a name, or, where it has an id, under whatever name has that."""

    name: str
    kind: DataType
    field_id: int | None = None

    @property
    def asked(self) -> str:
        """The name that Spark is asked for.

        Where it finds a column by id it still skips rows by the statistics of the column of that name, which
        in an older file may be another one.
        """
        return self.name if self.field_id is None else f"_mv_field_{self.field_id}"


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read alike: each holds the same of the wanted columns, and is given the same others.

    What is given is one value for all rows of a file, as text; by the file's path, in the order of `given`.
    Wanted columns that are neither held nor given are null.
    """

    held: Mapping[str, Held]
    given: tuple[str, ...]
    files: Mapping[str, tuple[str | None, ...]]


def frame(
    spark: SparkSession, parts: Sequence[Part], columns: StructType, storage: Storage | None = None
) -> DataFrame:
    """All rows of the files, under the wanted names and types.

    Raises:
        Unreadable: Spark does not find a file.

    """
    if _loses_parts(spark, parts):
        # Here, so that no session that reads such files could do without.
        read_whole_columns(spark)
    frames = [_read(spark, part, columns, storage) for part in parts]
    # Not createDataFrame([]): to read that, Spark starts Python.
    return union(frames) if frames else _under_names(spark.range(0), Part({}, (), {}), columns)


def _loses_parts(spark: SparkSession, parts: Sequence[Part]) -> bool:
    """Whether Spark, where it reads some fields of a column only, gives nulls for what is there.

    It loses the id of a column that is found by it; and not every Spark sees that a struct is there.
    """
    nested = [source for part in parts for source in part.held.values() if _nested(source.kind)]
    by_id = any(source.field_id is not None for source in nested)
    return by_id or (bool(nested) and not keeps_structs(spark))


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows of several frames. In halves: a chain of unions would be as deep as it is long."""
    if len(frames) == 1:
        return frames[0]
    half = len(frames) // 2
    return union(frames[:half]).unionAll(union(frames[half:]))


def _read(spark: SparkSession, part: Part, columns: StructType, storage: Storage | None) -> DataFrame:
    from pyspark.sql import functions as sql  # noqa: PLC0415 - Spark is loaded by those who use it
    from pyspark.sql.types import StructType  # noqa: PLC0415

    held = [_field(part.held[column.name], column) for column in columns if column.name in part.held]
    rows, found = _found(spark, part, StructType(held), storage)
    if not part.given:
        return _under_names(rows, part, columns)
    path = sql.regexp_replace(rows.metadataColumn("_metadata")["file_path"], _LOCAL.pattern, "/").alias(_PATH)
    inside = rows.select(
        *(_column(part.held.get(column.name), column) for column in columns if column.name not in part.given),
        path,
    )
    joined = inside.join(sql.broadcast(_given(spark, part, found, columns)), _PATH, "left")
    # Rows of a file that is not in the list must not be lost, should Spark write a path in yet another way.
    stray = sql.raise_error(sql.concat(sql.lit("nothing is given for file "), joined[_PATH]))
    return joined.select(
        *(
            (sql.when(joined[_KNOWN], inner).otherwise(stray) if column.name in part.given else inner).alias(
                column.name
            )
            for column in columns
            for inner in [joined[quoted(column.name)].cast(column.dataType)]
        )
    )


def _found(
    spark: SparkSession, part: Part, schema: StructType, storage: Storage | None
) -> tuple[DataFrame, dict[str, str]]:
    """The rows of the files, and each file's path as Spark writes it.

    Spark overlooks files that it takes for hidden, and those that go while it looks for them.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    for path in part.files:
        # Escaped or not, Hadoop takes such a path apart, and a part with a colon for a store.
        if _PATTERN.search(path) and ":" in _split(path)[1]:
            raise Unreadable(
                f"file {printable(path)} has a colon and one of \\ * ? [ ] {{ }} in its path, which Spark "
                "can't read together; rename it"
            )
    reader = spark.read.options(**stores.options(part.files, storage)).schema(schema)
    if any(":" in basename(path) for path in part.files):
        reader = reader.options(**_WITHOUT_CHECKSUMS)
    list_at_once(spark, map(spark_path, part.files))
    try:
        rows = reader.parquet(*map(_literally, part.files))
        uris = rows.inputFiles()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        path = str((error.getMessageParameters() or {}).get("path"))
        raise Unreadable(f"file {printable(path)} is not there") from error
    found: dict[tuple[str, str], str] = {}
    for uri in uris:
        store, path = _split(unquote(uri))
        # Spark adds its own store where a path names none.
        found[store, path] = found["", path] = uri
    for path in part.files:
        if _split(path) not in found:
            raise Unreadable(
                f"file {printable(path)} is not there, or hidden from Spark by a name that begins with "
                ". or _; rename it"
            )
    return rows, {path: found[_split(path)] for path in part.files}


def _given(spark: SparkSession, part: Part, found: Mapping[str, str], columns: StructType) -> DataFrame:
    """What is given to each file, by its path as Spark writes it.

    As an Arrow table: of rows Spark would have a Python of its own make columns, wherever it finds one.
    """
    paths = [_LOCAL.sub("/", found[path]) for path in part.files]
    texts = dict(zip((_PATH, *part.given), (paths, *zip(*part.files.values(), strict=True)), strict=True))
    times = {column.name for column in columns if column.dataType.typeName() == "timestamp"}
    arrays = {
        name: pa.array(map(_in_utc, values) if name in times else values, pa.string())
        for name, values in texts.items()
    }
    return spark.createDataFrame(pa.table({**arrays, _KNOWN: pa.array([True] * len(paths))}))


def _in_utc(text: str | None) -> str | None:
    """A time that does not say where is UTC's, as it was listed, whatever zone the session has."""
    if text is None or not _CLOCK.fullmatch(text):
        return text
    with suppress(ValueError):
        return f"{datetime.fromisoformat(text).isoformat(' ', 'microseconds')}Z"
    return text


def _field(source: Held, column: StructField) -> StructField:
    from pyspark.sql.types import StructField  # noqa: PLC0415

    metadata = {} if source.field_id is None else {_FIELD_ID: source.field_id}
    return StructField(source.asked, completed(source.kind, column.dataType), metadata=metadata)


def _under_names(rows: DataFrame, part: Part, columns: StructType) -> DataFrame:
    """The rows under the wanted names, with as few calls to Spark as can be."""
    if [part.held[c.name].asked for c in columns if c.name in part.held] == columns.fieldNames() and all(
        part.held[c.name].kind == c.dataType for c in columns
    ):
        return rows
    if any(_nested(column.dataType) for column in columns):
        return rows.select(*(_column(part.held.get(column.name), column) for column in columns))
    texts = []
    for column in columns:
        source = part.held.get(column.name)
        inside = "NULL" if source is None else quoted(source.asked)
        texts.append(f"CAST({inside} AS {column.dataType.simpleString()}) AS {quoted(column.name)}")
    return rows.selectExpr(*texts)


def _nested(kind: DataType) -> bool:
    """Whether a type has parts, whose names can't always be written in SQL."""
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415

    return isinstance(kind, (ArrayType, MapType, StructType))


def _column(source: Held | None, wanted: StructField) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    inside = sql.lit(None) if source is None else sql.col(quoted(source.asked))
    return inside.cast(wanted.dataType).alias(wanted.name)


def quoted(name: str) -> str:
    """A column's name, whatever characters it has."""
    return f"`{name.replace('`', '``')}`"


def as_text(name: str, kind: DataType, wanted: DataType) -> str:
    """A column in another type, as SQL; what has the type already stays as it is."""
    return (
        quoted(name)
        if kind == wanted
        else f"CAST({quoted(name)} AS {wanted.simpleString()}) AS {quoted(name)}"
    )


def _literally(path: str) -> str:
    """A path to be read, which Spark must not take for a pattern."""
    return _PATTERN.sub(r"\\\1", spark_path(path))


def _split(path: str) -> tuple[str, str]:
    """The store and the path there, in the one way of writing it."""
    found = _URI.fullmatch(path)
    store, rest = (found[1], found[2]) if found else (None, path)
    return store or "", normpath(rest)
