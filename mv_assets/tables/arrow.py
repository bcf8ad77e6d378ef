"""Rows of files as Arrow reads them: what a table deleted of them is left out.

Columns are found where the table has them, whatever the file calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import types

from mv_assets.tables.lakehouse import short
from mv_assets.tables.listing import EqualityDelete, Listing, RowDeletes
from mv_assets.tables.parquet.footer import Unusable, in_old_calendar
from mv_assets.tables.places import Place
from mv_assets.tables.types import id_of
from mv_assets.text import printable

_ROWS_AT_ONCE = 16_384
_EXACT_IN_DOUBLE = 32
_UUIDS = ("fixed_size_binary[16]", "extension<arrow.uuid>")

_Is = Callable[[pa.DataType], bool]
Open = Callable[[str], pa.NativeFile]
# The places of a file's deleted rows, ascending.
Deleted = Callable[[str], pa.Int64Array]


class ArrowRows:
    """The rows of a listing's files.

    Which are deleted is told by their places, and by what `open_delete` finds at a path; `kind_of` is the
    Arrow type of one of Spark's.
    """

    def __init__(
        self,
        listing: Listing,
        open_file: Open,
        kind_of: Callable[[str], pa.DataType],
        deleted: Deleted | None = None,
        open_delete: Open | None = None,
    ) -> None:
        self._listing = listing
        self._open = open_file
        self._kind_of = kind_of
        self._deleted = deleted
        self._open_delete = open_delete or open_file
        # Files have most of them in common.
        self._rows_of = cache(self._deleted_rows)

    def batches(self, name: str, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a file that are in the table.

        Raises:
            Unusable: Arrow can't read them, or has them in types that are not surely the same.

        """
        try:
            gone = self._gone(name)
            with self._open(name) as source:
                rows = _read(pq.ParquetFile(source), _with_compared(wanted, gone), self._columns(name))
                kept = _kept(rows, self._places(name), gone)
                yield from (batch.select(wanted.names) for batch in kept)
        except Unusable as error:
            raise Unusable(f"file {printable(name)}: {error}") from error
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Unusable(f"file {printable(name)} can't be read ({short(error)})") from error

    def _columns(self, name: str) -> _Columns:
        details = self._listing.details
        given = {column.lower(): value for column, value in details.partitions.get(name, {}).items()}
        names = {place.field_id: column for column, place in details.columns.items()}
        compared = {number for each in self._deletes(name).equal for number, _ in each.columns}
        given |= {
            _compared(n): given[names[n].lower()]
            for n in compared & names.keys()
            if names[n].lower() in given
        }
        places = {_compared(n): details.columns[names[n]] if n in names else _dropped(n) for n in compared}
        return _Columns(given, {**details.columns, **places})

    def _deletes(self, name: str) -> RowDeletes:
        found = self._listing.details.deletes.get(name, RowDeletes())
        if found.refused is not None:
            raise Unusable(found.refused)
        return found

    def _places(self, name: str) -> pa.Int64Array:
        if not self._deletes(name).places:
            return pa.array([], pa.int64())
        if self._deleted is None:
            raise Unusable("it has deleted rows, and nobody knows which")
        return self._deleted(name)

    def _gone(self, name: str) -> list[_Gone]:
        """What is deleted by its values."""
        found: dict[pa.Schema, set[tuple[Any, ...]]] = {}
        for each in self._deletes(name).equal:
            schema, rows = self._rows_of(each)
            found.setdefault(schema, set()).update(rows)
        return [_Gone(schema, rows) for schema, rows in found.items()]

    def _deleted_rows(self, delete: EqualityDelete) -> tuple[pa.Schema, list[tuple[Any, ...]]]:
        schema = pa.schema([(_compared(number), self._kind_of(kind)) for number, kind in delete.columns])
        if not all(_exact(part.type) for part in schema):
            raise Unusable("rows are deleted from it by values that Arrow may compare otherwise")
        columns = _Columns({}, {_compared(number): _dropped(number) for number, _ in delete.columns})
        try:
            with self._open_delete(delete.path) as source:
                batches = _read(pq.ParquetFile(source), schema, columns)
                return schema, [row for batch in batches for row in _tuples(batch)]
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Unusable(f"delete file {printable(delete.path)} can't be read ({short(error)})") from error


class _Gone(NamedTuple):
    """Rows that are deleted wherever they are, by the columns that are compared."""

    schema: pa.Schema
    rows: set[tuple[Any, ...]]


def _compared(field_id: int) -> str:
    return f"_mv_compared_{field_id}"


def _dropped(field_id: int) -> Place:
    """Where a column is that a table need not have any more."""
    return Place(_compared(field_id), field_id)


def _with_compared(wanted: pa.Schema, gone: Iterable[_Gone]) -> pa.Schema:
    further = {part.name: part for each in gone for part in each.schema}
    return pa.schema([*wanted, *further.values()])


def _exact(kind: pa.DataType) -> bool:
    """Whether values are equal in Python exactly where they are in a table."""
    return not (types.is_floating(kind) or types.is_nested(kind))


def _tuples(rows: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


def _kept(
    batches: Iterable[pa.RecordBatch], places: pa.Int64Array, gone: Sequence[_Gone]
) -> Iterator[pa.RecordBatch]:
    """The rows of a whole file, which come in their order, without those that are deleted."""
    first = 0
    for batch in batches:
        at = pa.array(range(first, first + batch.num_rows), pa.int64())
        first += batch.num_rows
        kept = pc.invert(pc.is_in(at, places))
        for each in gone:
            rows = _tuples(batch.select(each.schema.names))
            kept = pc.and_(kept, pa.array([row not in each.rows for row in rows], pa.bool_()))
        yield batch.filter(kept)


class _Columns:
    """Where the columns of one file are, and what is given for all its rows."""

    def __init__(self, given: Mapping[str, str | None], places: Mapping[str, Place]) -> None:
        self.given = dict(given)
        self._places = places

    def of(self, column: str) -> Place:
        return self._places.get(column, Place(column))

    def inside(self, wanted: pa.Schema, file: pa.Schema) -> dict[str, pa.Field]:
        """The wanted columns that the file has; where it has none but the table a default, that is given."""
        found, by_id = {}, _numbered(file)
        for part in wanted:
            place = self.of(part.name)
            if part.name.lower() in self.given:
                continue
            at = _place(place, list(file), by_id=by_id)
            if at is not None:
                found[part.name] = file.field(at)
            elif place.default is not None:
                self.given[part.name.lower()] = place.default
        return found


def _numbered(fields: Iterable[pa.Field]) -> bool:
    """Whether any of the fields, or of what is inside of them, has an id."""
    return any(
        id_of(part) is not None or _numbered(part.type.field(at) for at in range(part.type.num_fields))
        for part in fields
    )


def _place(place: Place, fields: Sequence[pa.Field], *, by_id: bool) -> int | None:
    """Where a field is among others; None: nowhere."""
    if place.field_id is not None and by_id:
        found = [at for at, part in enumerate(fields) if id_of(part) == place.field_id]
    elif place.field_id is not None:
        if place.names is None:
            raise Unusable("it has no field ids to find columns by")
        found = [at for at, part in enumerate(fields) if part.name in place.names]
    else:
        found = [at for at, part in enumerate(fields) if part.name.lower() == place.name.lower()]
    if len(found) > 1:
        raise Unusable(f"it has column {place.name} more than once")
    if not found and place.needed:
        raise Unusable(f"it lacks column {place.name}")
    return found[0] if found else None


def _read(file: pq.ParquetFile, wanted: pa.Schema, columns: _Columns) -> Iterator[pa.RecordBatch]:
    inside, by_id = columns.inside(wanted, file.schema_arrow), _numbered(file.schema_arrow)
    if in_old_calendar(file.metadata.metadata or {}) and any(
        _has_times(part.type) for part in inside.values()
    ):
        raise Unusable("its times are in Spark's old calendar, which only Spark moves")
    for column, part in inside.items():
        # Of a file without rows too.
        _made(pa.nulls(0, part.type), columns.of(column), wanted.field(column), by_id=by_id)
    for rows, batch in _stored(file, sorted({part.name for part in inside.values()})):
        yield pa.RecordBatch.from_arrays(
            [
                _constant(columns.given.get(part.name.lower()), part.type, rows)
                if part.name not in inside or batch is None
                else _made(batch.column(inside[part.name].name), columns.of(part.name), part, by_id=by_id)
                for part in wanted
            ],
            schema=wanted,
        )


def _made(values: pa.Array, place: Place, wanted: pa.Field, *, by_id: bool) -> pa.Array:
    """A column, or what is inside of one, in the wanted type; its fields are where the table has them."""
    own, kind = values.type, wanted.type
    if place.uuid and types.is_string(kind) and str(own) in _UUIDS:
        texts = (None if value is None else str(UUID(bytes=value)) for value in _bytes(values))
        return pa.array(texts, kind)
    if not place.parts or not types.is_nested(kind) or own.id != kind.id:
        if not _alike(own, kind):
            raise Unusable(
                f"column {wanted.name} is {own} to Arrow, which is not surely what Spark takes it for"
            )
        return values.cast(kind)
    # Without an offset, so that its parts are as long as it is.
    values = pa.concat_arrays([values])
    if types.is_struct(kind):
        fields = [_field(values, place.part(part.name), part, by_id=by_id) for part in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=values.is_null())
    if types.is_map(kind):
        keys = _made(values.keys, place.part("key"), kind.key_field, by_id=by_id)
        items = _made(values.items, place.part("value"), kind.item_field, by_id=by_id)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=kind, mask=values.is_null())
    elements = _made(values.values, place.part("element"), kind.value_field, by_id=by_id)
    return pa.ListArray.from_arrays(values.offsets, elements, type=kind, mask=values.is_null())


def _field(struct: pa.StructArray, place: Place, wanted: pa.Field, *, by_id: bool) -> pa.Array:
    at = _place(place, list(struct.type), by_id=by_id)
    if at is None:
        return _constant(place.default, wanted.type, len(struct))
    return _made(struct.field(at), place, wanted, by_id=by_id)


def _bytes(values: pa.Array) -> list[bytes | None]:
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    return list(stored.to_pylist())


def _stored(file: pq.ParquetFile, names: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """Rows in pieces, with how many they are; there may be rows without any column."""
    if not names:
        whole, rest = divmod(file.metadata.num_rows, _ROWS_AT_ONCE)
        yield from ((count, None) for count in (*[_ROWS_AT_ONCE] * whole, rest) if count)
        return
    for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names):
        yield batch.num_rows, batch


def _constant(text: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """The value that a table gives all rows of a file, or nulls."""
    if text is None:
        return pa.nulls(rows, kind)
    return pa.repeat(pa.scalar(text).cast(kind), rows)


def _without_zone(kind: pa.DataType) -> bool:
    return types.is_timestamp(kind) and kind.unit != "ns" and kind.tz is None


def _with_zone(kind: pa.DataType) -> bool:
    return types.is_timestamp(kind) and kind.unit != "ns" and kind.tz is not None


# What holds every value of a type unchanged, whatever zone a session has. INT96 is nanoseconds to Arrow, of
# which it has less.
_WIDER: tuple[tuple[_Is, _Is], ...] = (
    (types.is_null, lambda _: True),
    (types.is_integer, types.is_signed_integer),
    (types.is_integer, types.is_decimal),
    (lambda kind: types.is_integer(kind) and kind.bit_width <= _EXACT_IN_DOUBLE, types.is_float64),
    (types.is_float32, types.is_float64),
    (types.is_decimal, types.is_decimal),
    (types.is_date, _without_zone),
    (_without_zone, _without_zone),
    (_with_zone, _with_zone),
    (lambda kind: str(kind) in ("string", "large_string", "string_view"), types.is_string),
    (lambda kind: str(kind) in ("binary", "large_binary", "binary_view"), types.is_binary),
    (types.is_fixed_size_binary, types.is_binary),
)


def _alike(own: pa.DataType, wanted: pa.DataType) -> bool:
    if types.is_dictionary(own):
        return _alike(own.value_type, wanted)
    if types.is_struct(own) and types.is_struct(wanted):
        return all(_alike_inside(own, part) for part in wanted)
    if types.is_map(own) and types.is_map(wanted):
        return _alike(own.key_type, wanted.key_type) and _alike(own.item_type, wanted.item_type)
    if types.is_list(wanted) and (
        types.is_list(own) or types.is_large_list(own) or types.is_fixed_size_list(own)
    ):
        return _alike(own.value_type, wanted.value_type)
    return own == wanted or any(here(own) and there(wanted) for here, there in _WIDER)


def _alike_inside(own: pa.StructType, wanted: pa.Field) -> bool:
    """Whether a field is there under exactly its name, as Arrow's cast needs it, or not at all."""
    same = [part for part in own if part.name.lower() == wanted.name.lower()]
    if not same:
        return True
    return len(same) == 1 and same[0].name == wanted.name and _alike(same[0].type, wanted.type)


def _has_times(kind: pa.DataType) -> bool:
    return (
        types.is_date(kind)
        or types.is_timestamp(kind)
        or any(_has_times(kind.field(at).type) for at in range(kind.num_fields))
    )
