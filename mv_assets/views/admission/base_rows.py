"""Which tables a view reads, and whether every row of it comes from a row of the base table."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from mv_assets.errors import Mistake
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.wording import closest


def table_mistakes(
    select: exp.Select, tables: Sequence[exp.Table], base: Source, dimensions: Sequence[Source]
) -> list[Mistake]:
    """`tables` are those that the SQL reads, names of CTEs left out."""
    known = {source.name.lower() for source in (base, *dimensions)}
    read = [table for table in tables if isinstance(table.this, exp.Identifier) and not table.db]
    names = {table.name.lower() for table in read}
    mistakes = [
        _odd_table(table) for table in tables if not isinstance(table.this, exp.Identifier) or table.db
    ]
    mistakes += [_listed_columns(table) for table in read if _lists_columns(table)]
    for name in sorted(names - known):
        meant = closest(name, known)
        question = f"did you mean {meant}? Otherwise add" if meant else "add"
        mistakes.append(
            Mistake(
                "sql",
                f"{name} is neither the base {base.name} nor a dimension; {question} it to `dimensions`",
            )
        )
    mistakes += [
        Mistake(
            "dimensions",
            f"{dimension.name} is not used by the SQL; join it there, or remove it from `dimensions`",
        )
        for dimension in dimensions
        if dimension.name.lower() not in names
    ]
    return mistakes + _base_mistakes(
        select, [table for table in read if table.name.lower() == base.name.lower()], base
    )


def _odd_table(table: exp.Table) -> Mistake:
    text = table.sql("spark")
    if isinstance(table.this, exp.Identifier):
        right = "write the plain name of the base or of a dimension"
        return Mistake("sql", f"{text} names a table outside the project; {right}")
    return Mistake(
        "sql", f"{text} is a table function, not a table of the project; declare a table and join it"
    )


def _lists_columns(table: exp.Table) -> bool:
    node: exp.Expr | None = table
    while isinstance(node, (exp.Table, exp.Subquery)):
        if node.alias_column_names:
            return True
        node = node.parent
    return False


def _listed_columns(table: exp.Table) -> Mistake:
    what = f"the columns of {table.name} are renamed by their place, which changes when it gets another"
    return Mistake("sql", f"{what}; use its own names, with AS in a SELECT")


def _base_mistakes(select: exp.Select, found: Sequence[exp.Table], base: Source) -> list[Mistake]:
    if not found:
        return [Mistake("sql", f"the base {base.name} is not read; write FROM {base.name}")]
    if len(found) > 1:
        what = (
            f"the base {base.name} is read {len(found)} times, but only one of them is limited to the bucket"
        )
        return [Mistake("sql", f"{what}; read it once")]
    clause = select.args.get("from_")
    lost: list[str] = []
    if clause is None or not _holds(clause.this, _joins(clause.this) + _joins(select), found[0], lost):
        what = f"the base {base.name} is read inside a subquery or CTE"
        return [Mistake("sql", f"{what}; read it in the FROM of the view's own SELECT")]
    return [
        Mistake(
            "sql",
            f"{join} gives rows that come from no row of {base.name}; write FROM {base.name} LEFT JOIN ...",
        )
        for join in lost
    ]


def _holds(node: exp.Expr, joins: Sequence[exp.Join], base: exp.Table, lost: list[str]) -> bool:
    """Whether the base is among the joined relations; notes in `lost` the joins that make rows without it."""
    inside = node.this if isinstance(node, exp.Subquery) else None
    held = node is base or (isinstance(inside, exp.Table) and _holds(inside, _joins(inside), base, lost))
    for join in joins:
        joined = _holds(join.this, _joins(join.this), base, lost)
        drops_right = join.side in {"LEFT", "FULL"} or join.kind in {"SEMI", "ANTI"}
        if (joined and drops_right) or (held and join.side in {"RIGHT", "FULL"}):
            words = (join.side, join.kind, "JOIN", join.this.alias_or_name)
            lost.append(" ".join(word for word in words if word))
        held = held or joined
    return held


def _joins(node: exp.Expr) -> list[exp.Join]:
    return node.args.get("joins") or []
