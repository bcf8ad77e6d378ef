"""The frames of a routed query: each part aggregated where it is read, then merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DecimalType, StructType
from sqlglot import exp

from mv_assets.engine.files import quoted, union
from mv_assets.engine.types import widest
from mv_assets.query.aggregation import EXTRA, KEY, PART, Aggregation, Kind
from mv_assets.query.asking import Asked
from mv_assets.query.canonical import NotPlain
from mv_assets.query.relations import Relations, cast
from mv_assets.query.splitting import Part


def of_base(
    relations: Relations, asked: Asked, aggregation: Aggregation, names: Mapping[str, str]
) -> DataFrame:
    """The aggregates of the base's own part. `names` are the relations of its tables."""
    grouped = [each.sql("spark") for each in (*aggregation.keys, *aggregation.extras)]
    columns = [
        *_named(KEY, aggregation.keys),
        *_named(EXTRA, aggregation.extras),
        *(f"{each.sql} AS {PART}{at}" for at, each in enumerate(aggregation.partials)),
    ]
    source = f"`{names[asked.source.base]}` AS `{asked.source.base}`"
    for join in asked.source.joins:
        source += " " + join.sql.replace(
            f"JOIN `{join.table}`", f"JOIN `{names[join.table]}` AS `{join.table}`", 1
        )
    text = f"SELECT {', '.join(columns)} FROM {source}" + _where(
        [each.sql("spark") for each in asked.conditions.values()]
    )
    return relations.sql(text + (f" GROUP BY {', '.join(grouped)}" if grouped else ""))


def of_view(relations: Relations, part: Part, schema: StructType) -> DataFrame | None:
    """A view's rows as partial aggregates in the types of the base's; None if it has no rows."""
    match, offer = part.match, part.match.offer
    cut = part.spans if part.cuts else None
    rows = relations.stored(offer.view, part.rows, sorted(match.columns), cut, offer.time.column)
    if rows is None:
        return None
    columns = [*_named(KEY, match.keys), *_named(EXTRA, match.extras), *_named(PART, match.values)]
    where = _where([each.sql("spark") for each in match.filters])
    # Without an alias, Spark would take WHERE for one if a column in parentheses follows.
    source = f"`{relations.name(rows)}` AS _mv_rows"
    frame = relations.sql(f"SELECT {', '.join(columns) or '1'} FROM {source}{where}")
    return _in_types(frame, schema)


def single_rows(relations: Relations, part: Part) -> DataFrame | None:
    """A view's rows as those of the base, under the base's names."""
    match, offer = part.match, part.match.offer
    cut = part.spans if part.cuts else None
    frame = relations.stored(offer.view, part.rows, sorted(match.columns), cut, offer.time.column)
    if frame is None:
        return None
    return frame.selectExpr(*(f"{quoted(held)} AS {quoted(column)}" for column, held in match.rows or ()))


def merged(
    relations: Relations,
    aggregation: Aggregation,
    parts: Sequence[DataFrame],
    schema: StructType,
    expected: StructType,
) -> DataFrame:
    """All parts put together, under the names and in the types that the base table's answer has.

    Raises:
        NotPlain: the types differ.

    """
    first = len(aggregation.keys) + len(aggregation.extras)
    kinds = [field.dataType for field in schema.fields[first:]]
    text = aggregation.merging(f"`{relations.name(union(parts))}`", kinds)
    frame = relations.sql(aggregation.finishing(text, expected.fieldNames()))
    for found, wanted in zip(frame.schema, expected, strict=True):
        if found.dataType != wanted.dataType:
            mine, theirs = found.dataType.simpleString(), wanted.dataType.simpleString()
            raise NotPlain(f"{wanted.name} would be {mine} instead of {theirs}")
    return frame


def refuse_without_ansi(aggregation: Aggregation, schema: StructType) -> None:
    """Without ANSI a decimal sum that overflows is null, which in a view looks like no value at all."""
    kinds = {field.name: field.dataType for field in schema}
    for at, partial in enumerate(aggregation.partials):
        if partial.kind is Kind.SUM and isinstance(kinds[f"{PART}{at}"], DecimalType):
            raise NotPlain("without ANSI mode, sums of decimals are answered by the base table only")


def _in_types(frame: DataFrame, schema: StructType) -> DataFrame:
    own = frame.schema
    for field, wanted in zip(own, schema, strict=True):
        if not _castable(field.dataType, wanted.dataType):
            mine, theirs = field.dataType.simpleString(), wanted.dataType.simpleString()
            raise NotPlain(f"its {mine} does not go with the base's {theirs}")
    return cast(frame, own, [field.dataType for field in schema])


def _castable(kind: DataType, wanted: DataType) -> bool:
    """Whether every value stays what it is; a sum of sums has more digits than it needs."""
    sums = isinstance(kind, DecimalType) and isinstance(wanted, DecimalType) and kind.scale == wanted.scale
    return sums or widest(kind, wanted) == wanted


def _named(prefix: str, expressions: Sequence[exp.Expr]) -> list[str]:
    return [f"{each.sql('spark')} AS {prefix}{at}" for at, each in enumerate(expressions)]


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
