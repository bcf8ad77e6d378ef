"""What tells the rows of a SELECT apart: keys of GROUP BY and ORDER BY, and what follows from them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from sqlglot import exp

from mv_assets.spark_sql.aggregates import aggregates, is_aggregate
from mv_assets.spark_sql.canonical import Meaning, NotPlain
from mv_assets.spark_sql.scope import Found
from mv_assets.spark_sql.spark_functions import generates

_ROLLED_UP = (exp.Rollup, exp.Cube, exp.GroupingSets)


def rolls_up(group: exp.Expr) -> bool:
    """Whether a GROUP BY leaves out some of its keys in some of its rows."""
    return any(group.args.get(key) for key in ("rollup", "cube", "grouping_sets")) or any(
        isinstance(key, _ROLLED_UP) for key in group.expressions
    )


def group_keys(select: exp.Select) -> list[exp.Expr]:
    """What GROUP BY tells rows apart by, an item in place of its number.

    Raises:
        NotPlain: it has no such item, or leaves keys out.

    """
    items, group = select.expressions, select.args.get("group") or exp.Group()
    if rolls_up(group):
        raise NotPlain("GROUPING SETS, CUBE and ROLLUP leave out keys")
    if group.args.get("all"):
        return [unnamed(item) for item in items if not aggregates(item)]
    return [unnamed(placed(key, items)) for key in group.expressions]


def placed(key: exp.Expr, items: Sequence[exp.Expr]) -> exp.Expr:
    """A key, or the item whose number it is.

    Raises:
        NotPlain: there is no such item.

    """
    if not isinstance(key, exp.Literal) or not key.is_int:
        return key
    place = int(key.name) - 1
    if not 0 <= place < len(items):
        raise NotPlain(f"there is no item {key.name}")
    return items[place]


def follows(item: exp.Expr, keys: Container[str], meaning: Meaning, columns: Container[str] = ()) -> bool:
    """Whether rows that are equal in some keys have the same value: made of those and of literals only.

    `keys` are spelled; `columns` count as keys whatever their table.
    """

    def is_key(part: exp.Expr) -> bool:
        return spelled(unnamed(part), meaning) in keys

    def is_fixed(part: exp.Expr) -> bool:
        if not isinstance(part, exp.Column):
            return not (isinstance(part, (exp.Query, exp.Window)) or is_aggregate(part) or generates(part))
        match meaning.get(id(part)):
            case Found(column=column):
                return column.lower() in columns
            case exp.Expr() as meant:
                return follows(meant, keys, meaning, columns)
        return False

    return all(is_fixed(part) or is_key(part) for part in item.walk(prune=is_key))


def outputs_named(key: exp.Expr, meaning: Meaning) -> Iterator[tuple[str, exp.Expr]]:
    """The items that a key is made of by name, but for a column that goes by its own name."""
    for column in key.find_all(exp.Column):
        item, name = meaning.get(id(column)), column.parts[0].name.lower()
        if isinstance(item, exp.Expr):
            meant = meaning.get(id(unnamed(item)))
            if not isinstance(meant, Found) or meant.fields or meant.column.lower() != name:
                yield name, unnamed(item)


def two_meanings(keys: Sequence[exp.Expr], meaning: Meaning, used: Container[str]) -> list[exp.Expr]:
    """The keys of a GROUP BY that may mean an output or a column of the same name.

    Spark takes the column, if there is one; and refuses to, unless the output has other keys. `used` are the
    columns of tables that the SQL mentions, in lower case.
    """
    named: Mapping[str, exp.Expr] = {name: item for key in keys for name, item in outputs_named(key, meaning)}
    found = []
    for key in keys:
        others = {spelled(other, meaning) for other in keys if other is not key}
        outputs = outputs_named(key, meaning)
        if any(name in used or follows(item, others, meaning, named) for name, item in outputs):
            found.append(key)
    return found


def spelled(node: exp.Expr, meaning: Meaning) -> str:
    """Equal for the same expression over the same columns; a name that stands for an item is that item."""
    copy = node.copy()
    for here, there in zip(list(node.find_all(exp.Column)), list(copy.find_all(exp.Column)), strict=True):
        meant = meaning.get(id(here))
        if isinstance(meant, Found):
            name = repr((meant.relation.name.lower(), meant.column.lower(), meant.fields))
        elif meant is not None:
            fields = [part.name.lower() for part in here.parts[1:]]
            name = ".".join([spelled(unnamed(meant), meaning), *map(repr, fields)])
        else:
            continue
        if there is copy:
            return name
        there.replace(exp.to_identifier(name, quoted=True))
    # Some formats sqlglot does not write.
    formats = [str(each.args["format"]) for each in copy.walk() if each.args.get("format")]
    return " ".join([copy.sql("spark", comments=False), *formats])


def unnamed(item: exp.Expr) -> exp.Expr:
    """An expression without its alias and the parentheses around it."""
    while isinstance(item, (exp.Alias, exp.Paren)):
        item = item.this
    return item
