"""The way of the base table's rows to the view's: whether each row of the view comes from one of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.resolve import Resolver, is_table
from mv_assets.spark_sql.scope import Source

_LIMIT = "keeps whichever rows come first; remove it, and use WHERE or HAVING"


def parts_of(tree: exp.Expr) -> list[exp.Select]:
    """The SELECTs whose rows are those of a query: one, or those of a set operation."""
    if isinstance(tree, exp.SetOperation):
        return [*parts_of(tree.left), *parts_of(tree.right)]
    if isinstance(tree, exp.Subquery):
        return parts_of(tree.this)
    return [tree] if isinstance(tree, exp.Select) else []


@dataclass(slots=True)
class BaseRows:
    """Every query that the base's rows pass, and what on their way may mix or make up rows.

    A query on the way takes them from one place of its FROM: from the table itself, a derived table or a CTE,
    which is on the way too.
    """

    resolver: Resolver
    base: Source
    selects: list[exp.Select] = field(default_factory=list)
    mistakes: list[Mistake] = field(default_factory=list)
    # By id: all queries on the way, where the base is named, and whether a CTE's query reads it.
    passed: set[int] = field(default_factory=set)
    _bases: frozenset[int] = field(init=False)
    _reading: dict[int, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = (table for table in self.resolver.tables if table.name.lower() == self.base.name.lower())
        self._bases = frozenset(id(table) for table in named if not table.db)

    def follow(self, query: exp.Expr) -> None:
        """Go the way from the query to the base table."""
        if id(query) in self.passed:
            return
        self.passed.add(id(query))
        for key in ("limit", "offset"):
            if query.args.get(key):
                self._refuse(f"{key.upper()} {_LIMIT}")
        if isinstance(query, exp.SetOperation):
            if not isinstance(query, exp.Union) or query.args.get("by_name"):
                what = f"{query.key.upper()} compares all rows of its parts, those of other buckets too"
                self._refuse(f"{what}; write one SELECT, or UNION ALL of several")
            self.follow(query.left)
            self.follow(query.right)
        elif isinstance(query, exp.Subquery):
            self.follow(query.this)
        elif isinstance(query, exp.Select):
            self._select(query)
        else:
            self._refuse_unread()

    def _select(self, select: exp.Select) -> None:
        self.selects.append(select)
        leaves = list(_leaves(select))
        reading = [leaf for leaf in leaves if self._reads(leaf)]
        times = len(reading) + self._reads_besides(select, leaves)
        if not times:
            self._refuse_unread()
        elif times > 1:
            what = f"the base {self.base.name} is read {times} times"
            self._refuse(f"{what}, but only one of them is limited to the bucket; read it once")
        elif not reading or not isinstance(reading[0], (exp.Table, exp.Subquery)):
            what = f"the base {self.base.name} is read inside an expression"
            self._refuse(f"{what}; read it in FROM")
        else:
            self._from(select, reading[0])

    def _from(self, select: exp.Select, leaf: exp.Expr) -> None:
        clause, lost = select.args["from_"], list[str]()
        _holds(clause.this, _joins(clause.this) + _joins(select), leaf, lost)
        for join in lost:
            what = f"{join} gives rows that come from no row of {self.base.name}"
            self._refuse(f"{what}; write FROM {self.base.name} LEFT JOIN ...")
        query = leaf if isinstance(leaf, exp.Subquery) else self.resolver.ctes.get(id(leaf))
        if query is not None:
            self.follow(query)

    def _reads(self, node: exp.Expr) -> bool:
        """Whether the base is read somewhere in it, or in a CTE that it names."""
        if isinstance(node, exp.Table):
            # What is joined to it in parentheses is a relation of its own.
            return self._is_base(node)
        return any(map(self._is_base, _tables(node.this if isinstance(node.this, exp.Expr) else node)))

    def _reads_besides(self, select: exp.Select, leaves: Sequence[exp.Expr]) -> int:
        """How often the base is read by other parts of a SELECT than what its FROM joins."""
        joined = {id(leaf) for leaf in leaves}
        inside = {id(leaf.this) for leaf in leaves if not isinstance(leaf, exp.Table)}
        return sum(self._is_base(table) for table in _tables(select, inside) if id(table) not in joined)

    def _is_base(self, table: exp.Table) -> bool:
        query = self.resolver.ctes.get(id(table))
        if query is None:
            return id(table) in self._bases
        if id(query) not in self._reading:
            self._reading[id(query)] = False
            self._reading[id(query)] = any(map(self._is_base, _tables(query)))
        return self._reading[id(query)]

    def _refuse_unread(self) -> None:
        self._refuse(f"the base {self.base.name} is not read; write FROM {self.base.name}")

    def _refuse(self, what: str) -> None:
        self.mistakes.append(Mistake("sql", what))


def _leaves(select: exp.Select) -> Iterator[exp.Expr]:
    """What FROM joins: tables, derived tables, and what else may stand there."""
    clause = select.args.get("from_")
    nodes = [] if clause is None else [clause.this]
    nodes += [join.this for join in _joins(select)]
    while nodes:
        node = nodes.pop(0)
        if isinstance(node, exp.Subquery) and is_table(node.this):
            nodes.append(node.this)
        else:
            yield node
        nodes += [join.this for join in _joins(node)]


def _tables(node: exp.Expr, but: Container[int] = ()) -> Iterator[exp.Table]:
    """The tables in a query, but for what its WITH defines: that is read where it is named."""
    for each in node.walk(prune=lambda inner: isinstance(inner, exp.With) or id(inner) in but):
        if isinstance(each, exp.Table) and id(each) not in but:
            yield each


def _holds(node: exp.Expr, joins: Sequence[exp.Join], base: exp.Expr, lost: list[str]) -> bool:
    """Whether the base is among the joined relations; notes in `lost` the joins that make rows without it."""
    inside = node.this if isinstance(node, exp.Subquery) and is_table(node.this) else None
    held = node is base or (inside is not None and _holds(inside, _joins(inside), base, lost))
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
