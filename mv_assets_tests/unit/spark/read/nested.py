"""Rows with something nested of every kind and depth, in tables that find their columns in different ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import assign_fresh_schema_ids
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform

from mv_assets_tests.support.lake import day
from mv_assets_tests.unit.spark.unchecked_lake import rows_at
from mv_assets_tests.unit.tables.delta import log

PAIR = pa.struct({"x": pa.int64(), "y": pa.string()})
KINDS = {
    "s": pa.struct({"x": pa.int64(), "y": pa.string(), "deep": pa.struct({"a": pa.int64(), "b": PAIR})}),
    "l": pa.list_(PAIR),
    "ll": pa.list_(pa.list_(PAIR)),
    "m": pa.map_(pa.string(), PAIR),
    "k": pa.map_(PAIR, pa.int64()),
    "sl": pa.struct({"items": pa.list_(PAIR), "n": pa.int64()}),
    "ml": pa.map_(pa.string(), pa.list_(PAIR)),
    "lm": pa.list_(pa.map_(pa.string(), PAIR)),
}
SCHEMA = pa.schema({"at": pa.timestamp("us", "UTC"), "zone": pa.int32(), **KINDS})


def pair(number: int) -> dict[str, Any]:
    return {"x": number, "y": f"y{number}"}


def value(number: int) -> dict[str, Any]:
    """What a row has of each kind."""
    one, two = pair(number), pair(number + 100)
    return {
        "s": {**one, "deep": {"a": number * 10, "b": two}},
        "l": [one, two],
        "ll": [[one], [two, one]],
        "m": [("a", one), ("b", two)],
        "k": [(one, number), (two, None)],
        "sl": {"items": [two, one], "n": number},
        "ml": [("a", [one, two])],
        "lm": [[("a", one)], [("a", two)]],
    }


# Nulls and nothing, level by level.
HOLLOW: tuple[dict[str, Any], ...] = (
    dict.fromkeys(KINDS),
    {
        "s": {"x": None, "y": None, "deep": None},
        "l": [],
        "ll": [],
        "m": [],
        "k": [],
        "sl": {"items": None, "n": None},
        "ml": [],
        "lm": [],
    },
    {
        "s": {"x": 7, "y": None, "deep": {"a": None, "b": None}},
        "l": [None],
        "ll": [None, []],
        "m": [("a", None)],
        "k": [({"x": None, "y": "only"}, 1)],
        "sl": {"items": [None], "n": 1},
        "ml": [("a", None)],
        "lm": [None, []],
    },
    {
        "s": {"x": None, "y": "y", "deep": {"a": 1, "b": {"x": None, "y": "deep"}}},
        "l": [{"x": None, "y": "y"}],
        "ll": [[None, {"x": None, "y": None}]],
        "m": [("b", {"x": None, "y": None})],
        "k": [({"x": 5, "y": None}, None)],
        "sl": {"items": [], "n": None},
        "ml": [("a", [None, {"x": 3, "y": None}])],
        "lm": [[("a", None)]],
    },
)


def rows(number: int, zone: int = 0) -> pa.Table:
    """A day: something, nulls of every level, and something at the day's end."""
    values = [value(number * 10), *HOLLOW, value(number * 10 + 1)]
    times = [day(number, hour) for hour in range(len(values) - 1)]
    stamps = [*times, *rows_at([number])["at"].to_pylist()]
    listed = [{"at": at, "zone": zone, **each} for at, each in zip(stamps, values, strict=True)]
    return pa.Table.from_pylist(listed, SCHEMA)


# One field of every column, and then another one: Spark reads no more than is asked for. By what is asked of
# Spark: the same of DuckDB, which counts from 1.
FIELDS = {
    "s.x": "s.x",
    "l.x": "list_transform(l, lambda e: e.x)",
    "get(get(ll, 1), 0).x": "ll[2][1].x",
    "m['a'].x": "m['a'].x",
    "transform(map_keys(k), e -> e.x)": "list_transform(map_keys(k), lambda e: e.x)",
    "sl.items.x": "list_transform(sl.items, lambda e: e.x)",
    "get(ml['a'], 1).x": "ml['a'][2].x",
    "get(lm, 1)['a'].x": "lm[2]['a'].x",
}
OTHERS = {
    "s.deep.b.y": "s.deep.b.y",
    "get(l, 0).y": "l[1].y",
    "transform(ll, i -> transform(i, e -> e.y))": (
        "list_transform(ll, lambda i: list_transform(i, lambda e: e.y))"
    ),
    "map_values(m).y": "list_transform(map_values(m), lambda e: e.y)",
    "transform(map_entries(k), e -> e.key.y)": "list_transform(map_entries(k), lambda e: e.key.y)",
    "filter(sl.items, e -> e.y IS NOT NULL).y": (
        "list_transform(list_filter(sl.items, lambda e: e.y IS NOT NULL), lambda e: e.y)"
    ),
    "element_at(ml, 'a').y": "list_transform(ml['a'], lambda e: e.y)",
    "transform(lm, i -> i['a'].y)": "list_transform(lm, lambda i: i['a'].y)",
}
# Whole columns, and nothing but whether they are there.
WHOLE = {name: name for name in KINDS}
THERE = {f"{name} IS NULL": f"{name} IS NULL" for name in KINDS} | {
    "s.deep IS NULL": "s.deep IS NULL",
    "size(l)": "len(l)",
    "map_keys(m)": "map_keys(m)",
}
# With conditions on a field, and what is generated from columns; rows are counted by what they hold.
SELECTS = {
    "at, s.y AS v FROM events WHERE s.x >= 0": '"at", s.y AS v FROM events WHERE s.x >= 0',
    "at, s.x AS v FROM events WHERE s IS NOT NULL AND s.deep.a IS NULL": (
        '"at", s.x AS v FROM events WHERE s IS NOT NULL AND s.deep.a IS NULL'
    ),
    "at, e.x AS v FROM events LATERAL VIEW explode(l) t AS e": (
        '"at", e.x AS v FROM (SELECT "at", unnest(l) AS e FROM events)'
    ),
    "at, e.y AS v FROM events LATERAL VIEW explode(ll) i AS i LATERAL VIEW explode(i) t AS e": (
        '"at", e.y AS v FROM (SELECT "at", unnest(i) AS e FROM (SELECT "at", unnest(ll) AS i FROM events))'
    ),
    "at, y AS v FROM events LATERAL VIEW inline(l) t AS x, y": (
        '"at", e.y AS v FROM (SELECT "at", unnest(l) AS e FROM events)'
    ),
    "at, v.x AS v FROM events LATERAL VIEW explode(m) t AS k2, v": (
        '"at", e.value.x AS v FROM (SELECT "at", unnest(map_entries(m)) AS e FROM events)'
    ),
    "date_trunc('day', at) AS at, sum(s.x) AS v FROM events GROUP BY 1": (
        'date_trunc(\'day\', "at") AS "at", sum(s.x) AS v FROM events GROUP BY 1'
    ),
    "date_trunc('day', at) AS at, s.y AS v, count(*) AS n FROM events GROUP BY 1, 2": (
        'date_trunc(\'day\', "at") AS "at", s.y AS v, count(*) AS n FROM events GROUP BY 1, 2'
    ),
}


def listed(expressions: dict[str, str]) -> tuple[str, str]:
    """A SELECT of some expressions, for Spark and for DuckDB."""
    ours = ", ".join(f"{each} AS c{at}" for at, each in enumerate(expressions))
    theirs = ", ".join(f"{each} AS c{at}" for at, each in enumerate(expressions.values()))
    return f"SELECT at, {ours} FROM events", f'SELECT "at", {theirs} FROM events'


QUERIES = {
    "fields": listed(FIELDS),
    "others": listed(OTHERS),
    "whole": listed(WHOLE),
    "there": listed(THERE),
    **{
        f"select_{number}": (f"SELECT {ours}", f"SELECT {theirs}")
        for number, (ours, theirs) in enumerate(SELECTS.items())
    },
}


Put = Callable[[pa.Table], object]


@contextmanager
def catalog(folder: Path) -> Iterator[SqlCatalog]:
    opened = SqlCatalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    opened.create_namespace("db")
    try:
        yield opened
    finally:
        opened.close()


def iceberg(
    opened: SqlCatalog, root: Path, version: int, *, by: str | None = None, schema: pa.Schema = SCHEMA
) -> Table:
    """A table without rows."""
    numbered = assign_fresh_schema_ids(opened._convert_schema_if_needed(schema))
    spec = UNPARTITIONED_PARTITION_SPEC
    if by is not None:
        source = numbered.find_field(by).field_id
        spec = PartitionSpec(PartitionField(source, 1000, IdentityTransform(), by))
    properties = {"format-version": str(version)}
    return opened.create_table("db.events", numbered, f"file://{root}", spec, properties=properties)


def delta(root: Path, mode: str) -> Put:
    """A Delta table whose columns are found in the files by id, or by names that are not its own."""
    if mode == "none":
        return lambda given: write_deltalake(root, given, mode="append")
    physical = {name: f"col-{number}" for number, name in enumerate(SCHEMA.names, 1)}
    numbers = count(100)
    fields = [
        log.column(part.name, _logged(part.type, numbers), (number, physical[part.name]))
        for number, part in enumerate(SCHEMA, 1)
    ]
    settings: dict[str, Any] = {
        "delta__columnMapping__mode": mode,
        "delta__columnMapping__maxColumnId": "999",
    }
    log.commit(root, log.protocol("columnMapping"), log.metadata(*fields, **settings))
    written = count()

    def put(given: pa.Table) -> None:
        name = f"{next(written)}.parquet"
        pq.write_table(mapped(given, [*physical.values()]), root / name)
        first, *_, last = (f"{at:%Y-%m-%dT%H:%M:%S.%f}Z" for at in given["at"].to_pylist())
        log.commit(root, log.add(name, log.stats(physical["at"], first, last, len(given))))

    return put


def mapped(given: pa.Table, names: Sequence[str]) -> pa.Table:
    """The rows as a writer stores them that maps columns: under other names, with ids from 1 and from 100."""
    numbers = count(100)
    fields = [
        numbered(part.with_name(name), number, numbers)
        for number, (name, part) in enumerate(zip(names, given.schema, strict=True), 1)
    ]
    return given.rename_columns(list(names)).cast(pa.schema(fields))


def numbered(part: pa.Field, number: int | None, numbers: Iterator[int]) -> pa.Field:
    """A field with its id, and those of all fields inside of it; elements, keys and values have none."""
    kind = part.type
    if pa.types.is_struct(kind):
        kind = pa.struct([numbered(inner, next(numbers), numbers) for inner in kind])
    elif pa.types.is_map(kind):
        key, item = (numbered(inner, None, numbers) for inner in (kind.key_field, kind.item_field))
        kind = pa.map_(key, item)
    elif pa.types.is_list(kind):
        kind = pa.list_(numbered(kind.value_field, None, numbers))
    found = part.with_type(kind)
    return found if number is None else found.with_metadata({"PARQUET:field_id": str(number)})


_PLAIN = {"int64": "long", "int32": "integer", "string": "string", "timestamp[us, tz=UTC]": "timestamp"}


def _logged(kind: pa.DataType, numbers: Iterator[int]) -> Any:
    """A type as a Delta log writes it; what is nested has ids too, but its own names."""
    if pa.types.is_struct(kind):
        parts = ((part, next(numbers)) for part in kind)
        return log.struct_of(
            *(log.column(part.name, _logged(part.type, numbers), (at, part.name)) for part, at in parts)
        )
    if pa.types.is_map(kind):
        key, item = _logged(kind.key_type, numbers), _logged(kind.item_type, numbers)
        return {"type": "map", "keyType": key, "valueType": item, "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _logged(kind.value_type, numbers), "containsNull": True}
    return _PLAIN[str(kind)]
