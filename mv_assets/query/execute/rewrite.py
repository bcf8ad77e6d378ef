"""The frames of a routed query: each part aggregated where it is read, then merged."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, DecimalType, IntegralType, LongType, StructField, StructType
from sqlglot import exp

from mv_assets.query.execute.relations import Relations, Stored, cast
from mv_assets.query.match.aggregation import EXTRA, KEY, MOST_DIGITS, PART, Aggregation, Average
from mv_assets.query.match.matches import ROWS, Match, own_columns
from mv_assets.query.match.request import Request
from mv_assets.query.match.simpler import Likeness
from mv_assets.query.route.assignment import Part
from mv_assets.spark.read.files import as_text, quoted
from mv_assets.spark.types import widest
from mv_assets.spark_sql.aggregates import Kind
from mv_assets.spark_sql.canonical import NotPlain

_WRAPS = "without ANSI mode, integers that are computed are answered by the base table only"
# The base's and the joined tables' types, by table.column.
Types = Mapping[str, DataType]


def of_base(asked: Request, aggregation: Aggregation, names: Mapping[str, str]) -> str:
    """The aggregates of the base's own part. `names` are the relations of its tables."""
    grouped = [each.sql("spark") for each in (*aggregation.keys, *aggregation.extras)]
    columns = [
        *_named(KEY, aggregation.keys),
        *_named(EXTRA, aggregation.extras),
        *(f"{each.sql} AS {PART}{at}" for at, each in enumerate(aggregation.partials)),
    ]
    source = f"`{names[asked.source.base]}` AS `{asked.source.base}`"
    for join in asked.source.joins:
        source += f" {join.reading(names[join.table])}"
    where = _where([each.sql("spark") for each in asked.conditions])
    by = f" GROUP BY {', '.join(grouped)}" if grouped else ""
    return f"SELECT {', '.join(columns)} FROM {source}{where}{by}"


def of_view(
    relations: Relations,
    aggregation: Aggregation,
    part: Part,
    schema: StructType,
    base: Types,
    names: Mapping[str, str],
    *,
    ansi: bool,
) -> str | None:
    """A view's rows as partial aggregates in the types of the base's; None if it has no rows.

    `names` are the relations of what is joined.
    """
    match = part.match
    rows = _stored(relations, part)
    if rows is None:
        return None
    _refuse_rounded(rows.schema, match, base, ansi=ansi)
    rows = _as_in_base(rows, match.view_columns.columns, base)
    columns = [*_named(KEY, match.keys), *_named(EXTRA, match.extras), *_named(PART, match.values)]
    where = _where([each.sql("spark") for each in match.filters])

    def reading(source: str, joined: Mapping[str, str]) -> str:
        joins = "".join(f" {join.reading(joined[join.table])}" for join in match.joins)
        return f"SELECT {', '.join(columns) or '1'} FROM {source} AS {ROWS}{joins}{where}"

    text = reading(f"`{relations.name(rows.frame)}`", names)
    kinds = {name: base[name].simpleString() for name in sorted(base)} if match.joins else {}
    alike = reading("", dict.fromkeys(names, "")), f"{rows.schema.simpleString()} {kinds or ''}"
    own = relations.schema(text, alike)
    return _in_types(text, own, schema, _of_plain_columns(aggregation))


def _refuse_rounded(stored: StructType, match: Match, base: Types, *, ansi: bool) -> None:
    """Refuse to go on computing with what a view computed: in wider types it has more digits, or no overflow.

    Whole keys and values are compared with the base's types later.
    """
    rounded = DecimalType if ansi else (DecimalType, IntegralType)
    kinds = {each.name: each.dataType for each in stored}
    computed = {column for name, column in match.view_columns.columns.items() if name not in base}
    whole = (*match.keys, *match.extras, *match.values)
    inner = (*match.filters, *(each for each in whole if not isinstance(each, exp.Column)))
    for column in (column.name for each in inner for column in own_columns(each)):
        if column in computed and isinstance(kinds.get(column), rounded):
            raise NotPlain(f"its {column} is rounded to {kinds[column].simpleString()}")


def _as_in_base(rows: Stored, columns: Mapping[str, str], base: Types) -> Stored:
    """Columns that the view has of the base, in the base's types, before anything is made of them."""
    wanted = {column: base[name] for name, column in columns.items() if name in base}
    fields = [StructField(each.name, wanted.get(each.name, each.dataType)) for each in rows.schema]
    for own, each in zip(rows.schema, fields, strict=True):
        if widest(own.dataType, each.dataType) != each.dataType:
            kinds = own.dataType.simpleString(), each.dataType.simpleString()
            raise NotPlain(f"its {each.name} is {kinds[0]}, the base's {kinds[1]}")
    return Stored(cast(rows.frame, rows.schema, [each.dataType for each in fields]), StructType(fields))


def single_rows(relations: Relations, part: Part) -> DataFrame | None:
    """A view's rows as those of the base, under the base's names."""
    rows, held = _stored(relations, part), part.match.rows or ()
    if rows is None:
        return None
    return rows.frame.selectExpr(*(f"{quoted(column)} AS {quoted(name)}" for name, column in held))


def _stored(relations: Relations, part: Part) -> Stored | None:
    match, view_columns = part.match, part.match.view_columns
    cut = part.spans if part.cuts else None
    return relations.stored(
        view_columns.view, part.rows, sorted(match.columns), cut, view_columns.time.column
    )


def merged(
    relations: Relations,
    aggregation: Aggregation,
    parts: Sequence[str],
    schema: StructType,
    expected: StructType,
) -> DataFrame:
    """All parts put together, under the names and in the types that the base table's answer has.

    Raises:
        NotPlain: the types differ.

    """
    first = len(aggregation.keys) + len(aggregation.extras)
    kinds = [field.dataType for field in schema.fields[first:]]

    casts: dict[int, str] = {}

    def merging(source: str) -> str:
        return aggregation.finishing(aggregation.merging(source, kinds), expected.fieldNames(), casts)

    whole = f"({' UNION ALL '.join(f'({part})' for part in parts)})"
    found = relations.schema(merging(whole), (merging(""), schema.simpleString()))
    for at, (own, wanted) in enumerate(zip(found, expected, strict=True)):
        likeness = aggregation.simpler.get(at)
        if likeness is Likeness.LINEAR and not _adds_exactly(wanted.dataType):
            raise NotPlain(f"{wanted.name} would be rounded otherwise")
        if own.dataType == wanted.dataType:
            continue
        if likeness is None or not _castable(own.dataType, wanted.dataType):
            mine, theirs = own.dataType.simpleString(), wanted.dataType.simpleString()
            raise NotPlain(f"{wanted.name} would be {mine} instead of {theirs}")
        casts[at] = wanted.dataType.simpleString()
    return relations.sql(merging(whole))


def _adds_exactly(kind: DataType) -> bool:
    """Whether a sum of that type was made of exact values: those of very many digits Spark rounds, each."""
    return isinstance(kind, LongType) or (isinstance(kind, DecimalType) and kind.precision < MOST_DIGITS)


def refuse_without_ansi(aggregation: Aggregation, schema: StructType) -> None:
    """Without ANSI a decimal sum that overflows is null, which in a view looks like no value at all.

    And a number that overflows while it is computed is another one, in each type another.
    """
    if aggregation.simpler:
        raise NotPlain(_WRAPS)
    kinds = {field.name: field.dataType for field in schema}
    for merge in aggregation.merges:
        # Spark's own mean adds up doubles.
        if isinstance(merge, Average) and isinstance(kinds[f"{PART}{merge.total}"], LongType):
            raise NotPlain("without ANSI mode, means of integers are answered by the base table only")
    for at, partial in enumerate(aggregation.partials):
        if partial.kind is Kind.SUM and isinstance(kinds[f"{PART}{at}"], DecimalType):
            raise NotPlain("without ANSI mode, sums of decimals are answered by the base table only")
        if isinstance(kinds[f"{PART}{at}"], IntegralType) and _computes(partial.argument):
            raise NotPlain(_WRAPS)
    for prefix, keys in ((KEY, aggregation.keys), (EXTRA, aggregation.extras)):
        for at, key in enumerate(keys):
            if isinstance(kinds[f"{prefix}{at}"], IntegralType) and _computes(key):
                raise NotPlain(_WRAPS)


def _computes(expression: exp.Expr | None) -> bool:
    return (
        expression is not None and expression.find(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Cast) is not None
    )


def _of_plain_columns(aggregation: Aggregation) -> set[str]:
    """The partials of columns as they are: in a wider type they would have the same value."""
    return {
        f"{PART}{at}"
        for at, each in enumerate(aggregation.partials)
        if each.argument is None or isinstance(each.argument, exp.Column)
    }


def _in_types(text: str, own: StructType, wanted: StructType, plain: Container[str]) -> str:
    """A part in other types, as long as its values stay what they are."""
    for mine, theirs in zip(own, wanted, strict=True):
        castable = _castable if mine.name in plain else _exact
        if not castable(mine.dataType, theirs.dataType):
            kinds = mine.dataType.simpleString(), theirs.dataType.simpleString()
            raise NotPlain(f"its {kinds[0]} does not go with the base's {kinds[1]}")
    if [field.dataType for field in own] == [field.dataType for field in wanted]:
        return text
    columns = (
        as_text(mine.name, mine.dataType, theirs.dataType) for mine, theirs in zip(own, wanted, strict=True)
    )
    return f"SELECT {', '.join(columns)} FROM ({text}) AS _mv_typed"


def _castable(kind: DataType, wanted: DataType) -> bool:
    """Whether every value stays what it is; a sum of sums has more digits than it needs."""
    sums = isinstance(kind, DecimalType) and isinstance(wanted, DecimalType) and kind.scale == wanted.scale
    return sums or widest(kind, wanted) == wanted


def _exact(kind: DataType, wanted: DataType) -> bool:
    """Whether an expression over wider columns has the same value: not where it was rounded to its type."""
    if isinstance(kind, IntegralType) and isinstance(wanted, IntegralType):
        return widest(kind, wanted) == wanted
    if isinstance(kind, DecimalType) and isinstance(wanted, DecimalType):
        return kind.scale == wanted.scale
    return kind == wanted


def _named(prefix: str, expressions: Sequence[exp.Expr]) -> list[str]:
    return [f"{each.sql('spark')} AS {prefix}{at}" for at, each in enumerate(expressions)]


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(f'({each})' for each in conditions)}" if conditions else ""
