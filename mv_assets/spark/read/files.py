"""Parquet files as one data frame, read by their paths, whatever each of them calls and types its columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import basename, normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from mv_assets.config import Storage
from mv_assets.spark import stores
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.job_size import list_at_once, read_whole_columns
from mv_assets.spark.read.conversion import Conversion, converted
from mv_assets.spark.read.deletes import Bits, as_lists, is_kept
from mv_assets.spark.read.scans import Scan, Values, in_utc, scans
from mv_assets.spark.stores import spark_path
from mv_assets.spark.types import completed
from mv_assets.spark.versions import keeps_structs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

# What Spark takes for a pattern.
_PATTERN = re.compile(r"([\\*?\[\]{}])")
_URI = re.compile(r"(?:[a-zA-Z][\w+.-]*:)?(?://([^/]*))?(.*)", re.DOTALL)
FIELD_ID = "parquet.field.id"
_KEY, _KNOWN, _ROW, _DELETED, _GIVEN = "_mv_file", "_mv_known", "_mv_row", "_mv_deleted", "_mv_given_"
_BEFORE_FOLDERS = "_mv_before_folders"
# Spark writes a path on this machine now with one slash, now with three.
_LOCAL = re.compile("^file:/+")
_SPELLINGS = ("file:/", "file:///")
# Hadoop's local files have checksums beside them, and it can't build the name of one with a colon in it.
_WITHOUT_CHECKSUMS = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}


@dataclass(frozen=True, slots=True)
class Held:
    """A column inside a file: under a name, or, where it has an id, under whatever name has that.

    `kind` is what Spark is asked for, and `how` what is made of it, where that is told.
    """

    name: str
    kind: DataType
    field_id: int | None = None
    how: Conversion | None = None

    @property
    def asked(self) -> str:
        """The name that Spark is asked for."""
        return self.name if self.field_id is None else asked_by_id(self.field_id)


def asked_by_id(field_id: int) -> str:
    """A name that no file has.

    Where Spark finds a column by id it still skips rows by the statistics of the column whose name it is
    asked for, which in an older file may be another one; inside a column it takes that one for it.
    """
    return f"_mv_field_{field_id}"


@dataclass(frozen=True, slots=True)
class Part:
    """Files that are read alike: each holds the same of the wanted columns, and is given the same others.

    What is given is one value for all rows of a file, as text; by the file's path, in the order of `given`.
    Wanted columns that are neither held nor given are null. Some rows of a file may be deleted.
    """

    held: Mapping[str, Held]
    given: tuple[str, ...]
    files: Mapping[str, Values]
    deleted: Mapping[str, Bits] = field(default_factory=dict)


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
    frames = [_read(spark, part, scan, columns, storage) for part in parts for scan in _scans(part, columns)]
    # Not createDataFrame([]): to read that, Spark starts Python.
    return union(frames) if frames else _under_names(spark.range(0), {}, columns)


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


def _scans(part: Part, columns: StructType) -> Iterable[Scan]:
    kinds = {column.name: column.dataType.simpleString() for column in columns}
    asked = [source.asked for source in part.held.values()]
    return scans(part.files, part.given, kinds, asked, part.deleted)


def _read(
    spark: SparkSession, part: Part, scan: Scan, columns: StructType, storage: Storage | None
) -> DataFrame:
    from pyspark.sql.types import (  # noqa: PLC0415 - Spark is loaded by those who use it
        BooleanType,
        StructField,
        StructType,
    )

    held = [_field(part.held[column.name], column) for column in columns if column.name in part.held]
    inside = {name: _inside(source) for name, source in part.held.items()}
    if scan.folders is not None:
        spelled = {name.lower(): name for name in scan.folders.columns}
        inside |= {name: quoted(spelled[name.lower()]) for name in part.given}
        said = [StructField(spelled[name.lower()], columns[name].dataType) for name in part.given]
        held = [*said, StructField(_BEFORE_FOLDERS, BooleanType()), *held]
    rows, found = _found(spark, scan, StructType(held), storage)
    if scan.folders is not None:
        _refuse_untold(rows, [part.name for part in said])
    if not (part.given or scan.keyed) and _types(held) == _types(columns):
        return rows
    if scan.keyed:
        deleted = {path: part.deleted[path] for path in scan.files if path in part.deleted}
        rows = _with_given(rows, _by_file(spark, part, deleted, found, columns), partly=bool(deleted))
        inside |= {name: f"{_GIVEN}{at}" for at, name in enumerate(part.given)}
    elif scan.folders is None and part.given:
        values = zip(part.given, part.files[scan.files[0]], strict=True)
        inside |= {name: _literal(text, columns[name]) for name, text in values}
    return _under_names(rows, inside, columns)


def _refuse_untold(rows: DataFrame, given: Sequence[str]) -> None:
    """What Spark finds in folders' names it puts behind all that it takes for the files' own."""
    columns = rows.columns
    behind = columns[columns.index(_BEFORE_FOLDERS) :]
    missing = [name for name in given if name not in behind]
    if missing:
        raise Unreadable(f"Spark does not find {', '.join(missing)} in the folders' names; please report it")


def _types(fields: Iterable[StructField]) -> list[tuple[str, DataType]]:
    return [(each.name, each.dataType) for each in fields]


def _literal(text: str | None, column: StructField) -> str:
    """A text as SQL, whatever characters it has."""
    text = in_utc(text) if column.dataType.typeName() == "timestamp" else text
    return "NULL" if text is None else f"CAST(X'{text.encode().hex()}' AS STRING)"


def _with_given(rows: DataFrame, by_file: DataFrame, *, partly: bool) -> DataFrame:
    """The rows, each with what its file is given; of files of which rows are deleted, the others.

    Files are told apart by a number: to compare their paths in every row takes longer than to read it.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415

    metadata = rows.metadataColumn("_metadata")
    keyed = rows.select(
        "*", sql.xxhash64(metadata["file_path"]).alias(_KEY), metadata["row_index"].alias(_ROW)
    )
    joined = keyed.join(sql.broadcast(by_file), _KEY, "left")
    # Rows of a file that is not in the list must not be lost, nor be taken for whole, should Spark write a
    # path in yet another way.
    kept = is_kept(_DELETED, _ROW) if partly else "true"
    stray = "raise_error('Spark read rows of a file that it does not name as it lists it; please report it')"
    return joined.where(f"CASE WHEN {_KNOWN} THEN {kept} ELSE {stray} END")


def _found(
    spark: SparkSession, scan: Scan, schema: StructType, storage: Storage | None
) -> tuple[DataFrame, dict[str, str]]:
    """The rows of the files, and each file's path as Spark writes it.

    Spark overlooks files that it takes for hidden, and those that go while it looks for them.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415

    for path in scan.files:
        # Escaped or not, Hadoop takes such a path apart, and a part with a colon for a store.
        if _PATTERN.search(path) and ":" in _split(path)[1]:
            raise Unreadable(
                f"file {path} has a colon and one of \\ * ? [ ] {{ }} in its path, which Spark "
                "can't read together; rename it"
            )
    reader = spark.read.options(**stores.options(scan.files, storage)).schema(schema)
    if any(":" in basename(path) for path in scan.files):
        reader = reader.options(**_WITHOUT_CHECKSUMS)
    if scan.folders is not None:
        reader = reader.option("basePath", spark_path(scan.folders.base))
    list_at_once(spark, map(spark_path, scan.files))
    try:
        rows = reader.parquet(*map(_literally, scan.files))
        uris = rows.inputFiles()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        path = str((error.getMessageParameters() or {}).get("path"))
        raise Unreadable(f"file {path} is not there") from error
    return rows, _named(scan.files, uris)


def _named(files: Iterable[str], uris: Iterable[str]) -> dict[str, str]:
    """Each file's path as Spark writes it."""
    found: dict[tuple[str, str], str] = {}
    for uri in uris:
        store, path = _split(unquote(uri))
        # Spark adds its own store where a path names none.
        found[store, path] = found["", path] = uri
    for path in files:
        if _split(path) not in found:
            raise Unreadable(
                f"file {path} is not there, or hidden from Spark by a name that begins with . or _; rename it"
            )
    named = {path: found[_split(path)] for path in files}
    if len(set(named.values())) < len(named):
        # Under two names its rows would count twice, or more often.
        twice, _ = Counter(named.values()).most_common(1)[0]
        raise Unreadable(f"file {twice} is listed under two names; rewrite its rows")
    return named


def _by_file(
    spark: SparkSession,
    part: Part,
    deleted: Mapping[str, Bits],
    found: Mapping[str, str],
    columns: StructType,
) -> DataFrame:
    """What is given to each file, and which of its rows are deleted, by a number of its path.

    As an Arrow table: of rows Spark would have a Python of its own make columns, wherever it finds one.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415

    spelled = [(path, text) for path, uri in found.items() for text in _spellings(uri)]
    times = [columns[name].dataType.typeName() == "timestamp" for name in part.given]
    texts = {
        f"{_GIVEN}{at}": pa.array(
            [in_utc(part.files[path][at]) if time else part.files[path][at] for path, _ in spelled],
            pa.string(),
        )
        for at, time in enumerate(times)
    }
    arrays = {_KEY: pa.array([text for _, text in spelled]), _KNOWN: pa.array([True] * len(spelled)), **texts}
    if deleted:
        arrays[_DELETED] = as_lists(deleted[path] for path, _ in spelled)
    rows = spark.createDataFrame(pa.table(arrays))
    typed = {f"{_GIVEN}{at}": columns[name].dataType for at, name in enumerate(part.given)}
    return rows.select(
        sql.xxhash64(_KEY).alias(_KEY),
        *(
            sql.col(name).cast(typed[name]).alias(name) if name in typed else name
            for name in arrays
            if name != _KEY
        ),
    )


def _spellings(uri: str) -> list[str]:
    return [_LOCAL.sub(each, uri) for each in _SPELLINGS] if _LOCAL.match(uri) else [uri]


def _field(source: Held, column: StructField) -> StructField:
    from pyspark.sql.types import StructField  # noqa: PLC0415

    metadata = {} if source.field_id is None else {FIELD_ID: source.field_id}
    kind = completed(source.kind, column.dataType) if source.how is None else source.kind
    return StructField(source.asked, kind, metadata=metadata)


def _inside(source: Held) -> str | Column:
    """A column of the file as SQL, or what is made of it."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    held = quoted(source.asked)
    return held if source.how is None else converted(sql.col(held), source.how)


def _under_names(rows: DataFrame, inside: Mapping[str, str | Column], columns: StructType) -> DataFrame:
    """The rows under the wanted names and types, with as few calls to Spark as can be."""
    told = all(isinstance(each, str) for each in inside.values())
    if not told or any(_nested(column.dataType) for column in columns):
        return rows.select(*(_column(inside.get(column.name, "NULL"), column) for column in columns))
    typed = (f"CAST({inside.get(c.name, 'NULL')} AS {c.dataType.simpleString()})" for c in columns)
    names = map(quoted, columns.fieldNames())
    return rows.selectExpr(*(f"{each} AS {name}" for each, name in zip(typed, names, strict=True)))


def _nested(kind: DataType) -> bool:
    """Whether a type has parts, whose names can't always be written in SQL."""
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415

    return isinstance(kind, (ArrayType, MapType, StructType))


def _column(inside: str | Column, wanted: StructField) -> Column:
    from pyspark.sql import functions as sql  # noqa: PLC0415

    column = sql.expr(inside) if isinstance(inside, str) else inside
    return column.cast(wanted.dataType).alias(wanted.name)


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
