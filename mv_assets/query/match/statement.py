"""The text of a query: one SELECT over the project's tables and views, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.query.errors import QueryRefused
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.canonical import means_rows
from mv_assets.spark_sql.functions import reads_outside
from mv_assets.spark_sql.parse import SQLGLOT_ERRORS, parse
from mv_assets.spark_sql.resolve import Resolver
from mv_assets.spark_sql.scope import Source
from mv_assets.spark_sql.spark_functions import BUILT_IN, GENERATORS
from mv_assets.spark_sql.text import closest, did_you_mean, short

# What makes rows of its arguments alone.
_TABLE_FUNCTIONS = GENERATORS | {"range"}
_VALUES = (TokenType.STRING, TokenType.NUMBER)
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Command, exp.DDL, exp.DML, exp.Into), "it changes something; a query only reads"),
    ((exp.QueryTransform,), "TRANSFORM ... USING runs a script"),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter),
        "a parameter has no value here; write the value itself",
    ),
    ((exp.Version,), "time travel reads another version of a table than the one that is looked at"),
    ((exp.TableSample,), "it takes other rows each time; filter with WHERE"),
    ((exp.Lock,), "FOR UPDATE locks rows of a database"),
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A query that reads declared tables and views only."""

    text: str
    tree: exp.Query
    tokens: tuple[Token, ...]
    tables: tuple[exp.Table, ...]

    @property
    def names(self) -> list[str]:
        """The tables and views that are read, each once."""
        return list(dict.fromkeys(table.name.lower() for table in self.tables))

    @property
    def takes_all(self) -> bool:
        """Whether columns are used that are not named."""
        return any(map(_takes_all, self.tree.walk()))

    @property
    def mentioned(self) -> frozenset[str]:
        """Every word that may be a column's name, in lower case; of some, sqlglot makes no names."""
        words = (token.text for token in self.tokens if token.token_type not in _VALUES)
        names = (identifier.name for identifier in self.tree.find_all(exp.Identifier))
        return frozenset(map(str.lower, chain(words, names)))

    def reading(self, relations: Mapping[str, str]) -> str:
        """The text with other relations in place of the tables, which keep their names inside of it."""
        made, at = [], 0
        for table in sorted(self.tables, key=lambda table: place_of(table)[0]):
            start, end = place_of(table)
            alias = "" if table.alias else f" AS `{table.name}`"
            made += [self.text[at:start], f"`{relations[table.name.lower()]}`{alias}"]
            at = end
        return "".join([*made, self.text[at:]])


def statement_of(text: str, known: Collection[str], functions: Collection[str] = ()) -> Statement:
    """Read a query over tables and views of those names, in a project that declares some functions.

    Raises:
        QueryRefused: it is no single SELECT, or reads something else.

    """
    parsed = parse(text)
    if isinstance(parsed, Refusal):
        raise QueryRefused(f"the query {parsed}")
    tree = parsed.statement
    if not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery)):
        first = short(parsed.tokens[0].text)
        raise QueryRefused(f"the query is not a SELECT, it starts with {first}; only SELECT is answered")
    try:
        _refuse(tree, parsed.tokens, functions)
        tables = tuple(_tables(tree, {name.lower() for name in known}))
    except SQLGLOT_ERRORS:
        raise QueryRefused("the query can't be understood; write it with fewer levels") from None
    if not tables:
        raise QueryRefused(f"the query reads no table; the project has {', '.join(sorted(known))}")
    return Statement(parsed.bare, tree, parsed.tokens, tables)


def over(sql: str, relations: Mapping[str, str]) -> str:
    """A view's SQL with other relations in place of its tables; what may be in it, the analysis has said.

    Raises:
        QueryRefused: it reads a table that is not among them.

    """
    parsed = parse(sql)
    if isinstance(parsed, Refusal) or not isinstance(parsed.statement, exp.Query):
        raise QueryRefused(
            f"the view's SQL {parsed}" if isinstance(parsed, Refusal) else "the view is no query"
        )
    tables = tuple(_tables(parsed.statement, relations))
    return Statement(parsed.bare, parsed.statement, parsed.tokens, tables).reading(relations)


def _refuse(tree: exp.Expr, tokens: tuple[Token, ...], functions: Collection[str]) -> None:
    for node in tree.walk():
        for kinds, why in _REFUSED:
            if isinstance(node, kinds):
                raise QueryRefused(f"the query has `{short(node.sql('spark'))}`: {why}")
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            raise QueryRefused(
                "the query calls a function by a qualified name; call Spark's own by their plain names"
            )
        # A hint looks like a call; what stands in FROM is looked at with the tables.
        if isinstance(node, exp.Anonymous) and not isinstance(node.parent, (exp.Hint, exp.Table)):
            name = str(node.name)
            if name.lower() in functions:
                raise QueryRefused(
                    f"{name} is a function that the SQL of views may call, and no query; "
                    "ask a view that calls it by the view's name"
                )
            if name.lower() not in BUILT_IN and name.lower() != "identifier":
                raise QueryRefused(f"{name} is not a function of Spark, {did_you_mean(name, BUILT_IN)}")
    for outside in reads_outside(tokens):
        raise QueryRefused(f"the query calls {outside.what}")


def _tables(tree: exp.Expr, known: Collection[str]) -> list[exp.Table]:
    resolver, found = Resolver(Source(""), []), []
    resolver.query(tree, {}, None)
    for table in tree.find_all(exp.Table):
        if id(table) not in resolver.seen and not table.find_ancestor(exp.Hint):
            raise QueryRefused(f"{short(table.sql('spark'))} is read in a place where no table belongs")
    # Those that a WITH defines are not among them.
    for table in resolver.tables:
        if not isinstance(table.this, exp.Identifier):
            if _function(table.this) not in _TABLE_FUNCTIONS:
                raise QueryRefused(f"{short(table.sql('spark'))} is not a table of the project")
            continue
        if table.db or table.catalog:
            raise QueryRefused(
                f"{short(table.sql('spark'))} names something outside the project; "
                f"ask its tables and views by their plain names: {', '.join(sorted(known))}"
            )
        name = table.name.lower()
        if name not in known:
            meant = closest(name, known)
            question = f"did you mean {meant}? " if meant else ""
            raise QueryRefused(
                f"there is no table {table.name}; {question}the project has {', '.join(sorted(known))}"
            )
        place_of(table)
        found.append(table)
    return found


def _function(node: exp.Expr) -> str:
    """What is called in place of a table; nothing where that is no call."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def place_of(table: exp.Table) -> tuple[int, int]:
    """Where the table's name stands in the text."""
    place = table.this.meta
    if "start" not in place or "end" not in place:
        raise QueryRefused(
            f"table {table.name} can't be found in the query; write it as plain FROM {table.name}"
        )
    return int(place["start"]), int(place["end"]) + 1


def _takes_all(node: exp.Expr) -> bool:
    """Whether a part of a query uses columns without naming them."""
    match node:
        case exp.Star():
            return not means_rows(node)
        case exp.Join():
            return node.method == "NATURAL"
        case exp.TableAlias():
            return bool(node.args.get("columns"))
    return isinstance(node, exp.Pivot)
