"""Every name in the SQL, resolved as Spark would: tables, then the columns of each SELECT."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from mv_assets.spark_sql.functions import BARE, refusal
from mv_assets.spark_sql.scope import Cte, Found, Output, Outputs, Relation, Scope, Source, missing_field
from mv_assets.spark_sql.spark_functions import generates
from mv_assets.spark_sql.text import closest, listed

Aliases = Mapping[str, exp.Expr]
_AFTER_SELECT = ("group", "having", "qualify", "order", "sort", "cluster", "distribute", "windows")
_ORDERS = ("order", "sort", "cluster", "distribute")
_ALIAS_FIRST = ("having", *_ORDERS)


@dataclass(slots=True)
class Resolver:
    """Walks a query; collects what it reads and each sentence about a name that means nothing."""

    base: Source
    # What else may be read.
    others: Sequence[Source]
    # Tables read, names of CTEs left out; and the ids of all Table nodes that were come by.
    tables: list[exp.Table] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    complaints: dict[str, None] = field(default_factory=dict)
    # By table: the columns in use, their names in lower case to one spelling; and, whatever the schema, every
    # name that may mean one of its columns, though an output or a table closer by may have that name too.
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    mentioned: dict[str, set[str]] = field(default_factory=dict)
    # By id of the Column node: what it means.
    meaning: dict[int, Found | exp.Expr] = field(default_factory=dict)
    # Those that mean an output unless a table of unknown schema has a column of the name, which comes first.
    unsure: set[int] = field(default_factory=set)
    # By id of a query: what it gives; by id of a Table node that names a CTE: its query.
    outputs: dict[int, Outputs] = field(default_factory=dict)
    ctes: dict[int, exp.Expr | None] = field(default_factory=dict)
    # The ids of each Star whose columns are known by name; and the columns that stand for those.
    expanded: set[int] = field(default_factory=set)
    _made: list[exp.Column] = field(default_factory=list)

    def query(self, node: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Outputs:
        """Resolve a query and return the columns it gives."""
        self.outputs[id(node)] = given = self._query(node, self._with(node, ctes, outer), outer)
        return given

    def _query(self, node: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Outputs:
        if isinstance(node, exp.Select):
            return self._select(node, Scope(ctes, outer))
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.left, ctes, outer), self.query(node.right, ctes, outer)
            return self._ordered(node, self._beside(node, left, right), Scope(ctes, outer))
        if isinstance(node, exp.Subquery):
            return self._ordered(node, self.query(node.this, ctes, outer), Scope(ctes, outer))
        scope = Scope(ctes, outer)
        self._relation(node, scope)
        if scope.relations[0].source is not None:
            self._complain(f"{scope.relations[0].name} is taken whole; name its columns in a SELECT")
        return scope.relations[0].outputs

    def _with(self, node: exp.Expr, ctes: Mapping[str, Cte], outer: Scope | None) -> Mapping[str, Cte]:
        clause = node.args.get("with_") or exp.With()
        known = dict(ctes)
        for cte in clause.expressions:
            inside = {**known, cte.alias.lower(): Cte()} if clause.args.get("recursive") else known
            known[cte.alias.lower()] = Cte(cte.this, _renamed(cte, self.query(cte.this, inside, outer)))
        return known

    def _beside(self, node: exp.SetOperation, left: Outputs, right: Outputs) -> Outputs:
        """What a set operation gives: columns by their place, with the names of its first part."""
        if left is None or right is None:
            return None if left is None else tuple(Output(each.name) for each in left)
        if len(left) != len(right):
            what = f"the parts of {node.key.upper()} give {len(left)} and {len(right)} columns"
            self._complain(f"{what}; give both the same")
        known = ((one.name, one.items, other.items) for one, other in zip(left, right, strict=False))
        return tuple(Output(name, (*one, *other) if one and other else ()) for name, one, other in known)

    def _ordered(self, node: exp.Expr, given: Outputs, scope: Scope) -> Outputs:
        """Resolve what stands behind a query in parentheses or a set operation."""
        scope.relations.append(Relation("", given))
        for key in _ORDERS:
            self._expressions(node.args.get(key), scope, {})
        return given

    def _select(self, select: exp.Select, scope: Scope) -> Outputs:
        clause = select.args.get("from_")
        if clause is not None:
            self._relation(clause.this, scope)
        self._extend(select, scope)
        self._expressions(select.args.get("where"), scope, {})
        aliases: dict[str, exp.Expr] = {}
        for item in select.expressions:
            self._expressions(item, scope, aliases)
            # The first of two equal names is the one that Spark takes, or it refuses both.
            aliases = {name.lower(): item for name in output_names(item)} | aliases
        for key in _AFTER_SELECT:
            self._expressions(select.args.get(key), scope, aliases, aliases_first=key in _ALIAS_FIRST)
        given = [self._given(item, scope) for item in select.expressions]
        return None if None in given else tuple(each for some in given for each in some or ())

    def _given(self, item: exp.Expr, scope: Scope) -> Outputs:
        if item.is_star:
            return self._star(item, scope)
        names = output_names(item)
        if not names and any(map(generates, item.walk())):
            # It gives as many columns as it likes.
            return None
        return tuple(Output(name, (item,)) for name in names or [""])

    def _star(self, item: exp.Expr, scope: Scope) -> Outputs:
        """The columns of queries inside of this one: those of a table may become more."""
        star, of = (item.this, item.parts[:-1]) if isinstance(item, exp.Column) else (item, [])
        meant = scope.named(of[0].name) if len(of) == 1 else scope.relations
        known = meant and all(each.source is None and _all_named(each.outputs) for each in meant)
        if not known or len(of) > 1 or scope.merged or any(star.args.values()):
            return None
        self.expanded.add(id(star))
        return tuple(self._starred(each, given) for each in meant for given in each.outputs or ())

    def _starred(self, relation: Relation, given: Output) -> Output:
        column = exp.column(given.name)
        self._made.append(column)
        self.meaning[id(column)] = Found(relation, given.name, (), sure=True)
        return Output(given.name, (column,))

    def _extend(self, node: exp.Expr, scope: Scope) -> None:
        for join in node.args.get("joins") or ():
            self._join(join, scope)
        for lateral in node.args.get("laterals") or ():
            self._relation(lateral, scope)

    def _join(self, join: exp.Join, scope: Scope) -> None:
        before = len(scope.relations)
        self._relation(join.this, scope)
        left, right = scope.relations[:before], scope.relations[before:]
        if join.method == "NATURAL":
            # Refused as such, so its columns need not be called ambiguous too.
            scope.merged.add(None)
        for identifier in join.args.get("using") or ():
            scope.merged.add(identifier.name.lower())
            self._merge(identifier.name, left, right)
            # Its left side is the first of those that have it; an earlier USING has made one of them.
            having = [relation for relation in left if relation.might_have(identifier.name)]
            if having and having[0].column(identifier.name) is not None:
                column = having[0].column(identifier.name) or identifier.name
                self.meaning[id(identifier)] = Found(having[0], column, (), sure=True)
        self._expressions(join.args.get("on"), scope, {})
        if join.kind in ("SEMI", "ANTI"):
            del scope.relations[before:]

    def _merge(self, name: str, *sides: list[Relation]) -> None:
        for side in sides:
            self._note(name, side)
            having = [relation for relation in side if relation.might_have(name)]
            for relation in having:
                self._use(relation, relation.column(name) or name)
            if not having and side:
                self._complain(f"USING ({name}): {_no_column(name, side)}")

    def _relation(self, node: exp.Expr, scope: Scope) -> None:
        before = len(scope.relations)
        if isinstance(node, exp.Table):
            scope.relations.append(self._table(node, scope))
        elif isinstance(node, exp.Subquery) and is_table(node.this):
            self._relation(node.this, scope)
            inner = scope.relations[before:]
            if node.alias:
                source = inner[0].source if len(inner) == 1 else None
                given = inner[0].outputs if len(inner) == 1 else None
                scope.relations[before:] = [Relation(node.alias, _renamed(node, given), source)]
        elif isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Query):
            self._expressions(node.this, scope, {})
            scope.relations.append(Relation(node.alias, _renamed(node, None, node.this)))
        elif isinstance(node, (exp.Subquery, exp.Lateral)):
            # A derived table does not see its neighbours; a lateral one does.
            around = scope if isinstance(node, exp.Lateral) else scope.outer
            scope.relations.append(
                Relation(node.alias, _renamed(node, self.query(node.this, scope.ctes, around)))
            )
        else:
            self._expressions(node, scope, {})
            scope.relations.append(Relation(node.alias, _renamed(node, _values(node))))
        self._extend(node, scope)

    def _table(self, table: exp.Table, scope: Scope) -> Relation:
        self.seen.add(id(table))
        name = table.name.lower()
        plain = isinstance(table.this, exp.Identifier) and not table.db
        if plain and name in scope.ctes:
            self.ctes[id(table)] = scope.ctes[name].query
            return Relation(table.alias_or_name, _renamed(table, scope.ctes[name].outputs))
        self.tables.append(table)
        source = self._source(name) if plain else None
        if source is None or table.alias_column_names:
            return Relation(table.alias_or_name, _renamed(table, None))
        self.used.setdefault(source.name, {})
        return Relation.of(table.alias_or_name, source)

    def _source(self, name: str) -> Source | None:
        sources = (self.base, *self.others)
        return next((source for source in sources if source.name.lower() == name), None)

    def _expressions(
        self, node: object, scope: Scope, aliases: Aliases, *, aliases_first: bool = False
    ) -> None:
        if isinstance(node, list):
            for one in node:
                self._expressions(one, scope, aliases, aliases_first=aliases_first)
        elif isinstance(node, exp.Column):
            if not isinstance(node.this, exp.Star):
                self._column(node, scope, aliases, aliases_first=aliases_first)
        elif isinstance(node, exp.Query):
            self.query(node, scope.ctes, scope)
        elif isinstance(node, exp.Expr):
            for child in node.iter_expressions():
                self._expressions(child, scope, aliases, aliases_first=aliases_first)

    def _column(self, column: exp.Column, scope: Scope, aliases: Aliases, *, aliases_first: bool) -> None:
        parts = [part.name for part in column.parts]
        self._mention(parts, scope)
        alias = aliases.get(parts[0].lower())
        if not aliases_first and _is_qualified(parts, scope):
            # Before fields of an output Spark takes columns of a table; in HAVING and ORDER BY it depends.
            alias = None
        around: Scope | None = scope
        found = [] if alias is not None and aliases_first else scope.find(parts)
        if alias is not None and not any(one.sure for one in found):
            self.meaning[id(column)] = alias
            self.unsure |= {id(column)} if found else set()
            return
        while not found and around is not None:
            found = around.find(parts)
            around = around.outer if not found else around
        if not found or around is None:
            self._unknown(parts, scope)
            return
        if len(found) > 1 and found[0].sure and not around.is_merged(found[0].column):
            owners = listed(one.relation.name for one in found)
            right = f"{found[0].relation.name}.{parts[0]}"
            self._complain(f"column {'.'.join(parts)} is ambiguous, {owners} have it; write {right}")
        for one in found if alias is None else ():
            self._use(one.relation, one.column)
        # Of columns that USING made one, the base's is the one that is never NULL.
        meant = min(found, key=lambda one: one.relation.source is not self.base)
        self.meaning[id(column)] = meant
        problem = missing_field(meant.relation.type_of(meant.column), meant.fields)
        if problem:
            self._complain(f"column {meant.column} {problem}")

    def _mention(self, parts: Sequence[str], scope: Scope) -> None:
        around: Scope | None = scope
        while around is not None:
            named = around.named(parts[0]) if len(parts) > 1 else []
            self._note(parts[1] if named else parts[0], named or around.relations)
            around = None if named else around.outer

    def _note(self, name: str, relations: Iterable[Relation]) -> None:
        for relation in relations:
            if relation.source is not None:
                self.mentioned.setdefault(relation.source.name, set()).add(name.lower())

    def _use(self, relation: Relation, column: str) -> None:
        if relation.source is not None:
            self.used.setdefault(relation.source.name, {}).setdefault(column.lower(), column)
            if column.lower() == "_metadata" and column not in (relation.source.columns or {}):
                self._complain(
                    "_metadata tells where rows are stored, which changes; use a column of the table"
                )

    def _unknown(self, parts: list[str], scope: Scope) -> None:
        if len(parts) == 1 and parts[0].lower() in BARE:
            self._complain(refusal(parts[0].lower()).what)
            return
        named = scope.named(parts[0]) if len(parts) > 1 else []
        name = parts[1] if named else parts[0]
        self._complain(
            f"column {'.'.join(parts)} does not exist; {_no_column(name, named or scope.relations)}"
        )

    def _complain(self, sentence: str) -> None:
        self.complaints.setdefault(sentence)


def is_table(node: exp.Expr) -> bool:
    """Whether a relation is a table, or tables joined, in parentheses or not."""
    return isinstance(node, exp.Table) or (isinstance(node, exp.Subquery) and is_table(node.this))


def _all_named(outputs: Outputs) -> bool:
    return outputs is not None and all(each.name for each in outputs)


def _is_qualified(parts: Sequence[str], scope: Scope) -> bool:
    """Whether a name may be a table's and its column's."""
    return len(parts) > 1 and any(relation.might_have(parts[1]) for relation in scope.named(parts[0]))


def output_names(item: exp.Expr) -> list[str]:
    """The names an item of a SELECT gives its columns; none where Spark would make one up."""
    if isinstance(item, exp.Aliases):
        return [identifier.name for identifier in item.expressions]
    if isinstance(item, exp.Dot):
        inner = item
        while isinstance(inner, exp.Dot):
            inner = inner.this
        return [item.expression.name] if isinstance(inner, exp.Column) else []
    named = isinstance(item, (exp.Alias, exp.Column)) and not item.is_star
    return [item.alias_or_name] if named and item.alias_or_name else []


def _renamed(node: exp.Expr, given: Outputs, *items: exp.Expr) -> Outputs:
    """What is given, by the names that an alias lists; what nobody knows is made by `items`."""
    alias = node.args.get("alias")
    names = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    if not names:
        return given
    known = given if given is not None and len(given) == len(names) else [Output("", items)] * len(names)
    return tuple(Output(name.name, each.items) for name, each in zip(names, known, strict=True))


def _values(node: exp.Expr) -> Outputs:
    """The columns of VALUES, which Spark calls col1, col2, ..."""
    if not isinstance(node, exp.Values):
        return None
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    places = range(min(map(len, rows), default=0))
    return tuple(Output(f"col{place + 1}", tuple(row[place] for row in rows)) for place in places)


def _no_column(name: str, relations: Iterable[Relation]) -> str:
    known = [given.name for relation in relations for given in relation.outputs or () if given.name]
    owners = " and ".join(
        dict.fromkeys(relation.name for relation in relations if relation.columns is not None)
    )
    meant = closest(name, known)
    question = f"did you mean {meant}? " if meant else ""
    has = "have" if " and " in owners else "has"
    return f"{question}{owners or 'the SELECT'} {has} {listed(dict.fromkeys(known))}"
