"""Whether conditions that a row meets make it meet another one: what a query asks for, a view must have kept.

A condition is met where it is true; where it is null it is not. What can't be told apart is taken as it is
spelled, so whatever is proved here holds, and much that holds is not proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from sqlglot import exp

from mv_assets.query.match.implication.constants import COMPARISONS, is_usual, kept, listed, possible
from mv_assets.query.match.implication.value_sets import ANYTHING, NULL, SOMETHING, ValueSet
from mv_assets.spark_sql.canonical import bare, spelled

# By table.column: the column's Spark type.
Kinds = Mapping[str, str | None]
_FLIPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
# What is null where anything in it is.
_NULL_OF_NULL = (
    exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs, exp.Mod, exp.Length, exp.Lower, exp.Upper,
    exp.Substring,
)  # fmt: skip
# More ways in which a row can meet the conditions are not gone through.
_MOST_CASES = 64


@dataclass(frozen=True, slots=True)
class Only:
    """A column has one of these values."""

    column: str
    values: ValueSet


@dataclass(frozen=True, slots=True)
class Same:
    """Two columns of one type have the same value, and not null."""

    columns: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """A condition by its spelling, met or, with `denied`, found false."""

    text: str
    denied: bool = False


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Any:
    parts: tuple[Fact, ...]


Fact = Only | Same | Said | All | Any
_Atom = Only | Same | Said


class Known:
    """Rows of which some conditions are true."""

    def __init__(self, conditions: Iterable[exp.Expr], kinds: Kinds) -> None:
        self.kinds = kinds
        self._cases = _cases([fact_of(each, kinds) for each in conditions])

    def proves(self, condition: exp.Expr) -> bool:
        """Whether the condition is true of every such row."""
        return self.proves_fact(fact_of(condition, self.kinds))

    def proves_fact(self, fact: Fact) -> bool:
        return all(case.proves(fact) for case in self._cases)


def fact_of(condition: exp.Expr, kinds: Kinds, *, denied: bool = False) -> Fact:
    """What it means that a condition is true, or, with `denied`, that it is false."""
    condition = bare(condition)
    match condition:
        case exp.Not():
            return fact_of(condition.this, kinds, denied=not denied)
        case exp.And() | exp.Or():
            parts = tuple(
                fact_of(each, kinds, denied=denied) for each in (condition.this, condition.expression)
            )
            return All(parts) if isinstance(condition, exp.And) is not denied else Any(parts)
    found = _said_of_column(condition, kinds)
    if found is not None:
        return _within(found.column, found.values.others(), kinds) if denied else found
    return (
        _of_nulls(condition, denied=denied)
        or _of_truths(condition, kinds, denied=denied)
        or _of_columns(condition, kinds, denied=denied)
    )


def _within(column: str, values: ValueSet, kinds: Kinds) -> Only:
    return Only(column, values.and_(possible(kinds.get(column))))


def _of_columns(condition: exp.Expr, kinds: Kinds, *, denied: bool) -> Fact:
    if isinstance(condition, exp.EQ) and not denied:
        left, right = (bare(each) for each in (condition.this, condition.expression))
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            names = spelled(left), spelled(right)
            kind = kinds.get(names[0])
            if kind is not None and kind == kinds.get(names[1]):
                # What is compared with itself is only not null.
                return Same(names) if names[0] != names[1] else Only(names[0], SOMETHING)
    said = Said(spelled(condition), denied)
    known = {spelled(column): Only(spelled(column), SOMETHING) for column in _not_null(condition)}
    return All((said, *known.values())) if known else said


def _not_null(condition: exp.Expr) -> Iterator[exp.Column]:
    """The columns that are not null where the condition is true or false: else it would be null."""
    # Beyond all BIGINTs, Spark may take a comparison for true or false, of a NULL too.
    if not all(map(is_usual, condition.find_all(exp.Literal))):
        return
    match condition:
        case exp.Column():
            yield condition
        case exp.In() if not condition.expressions:
            # Of a query without rows it is false, of NULL too.
            return
        case exp.In() | exp.Between() | exp.Like():
            # What is compared with it may be null, and still it is false.
            yield from _deciding(condition.this)
        case exp.Binary() if type(condition) in COMPARISONS:
            yield from _deciding(condition.this)
            yield from _deciding(condition.expression)


def _deciding(value: exp.Expr) -> Iterator[exp.Column]:
    """The columns of which none may be null, if the value is not to be."""
    if isinstance(value, exp.Column):
        yield value
    elif isinstance(value, _NULL_OF_NULL):
        for each in value.iter_expressions():
            yield from _deciding(each)


def _of_nulls(condition: exp.Expr, *, denied: bool) -> Fact | None:
    """IS NULL is never null itself: if it is not true, it is false."""
    if isinstance(condition, exp.Is) and isinstance(bare(condition.expression), exp.Null):
        column = bare(condition.this)
        if isinstance(column, exp.Column):
            return Only(spelled(column), SOMETHING if denied else NULL)
    return None


def _of_truths(condition: exp.Expr, kinds: Kinds, *, denied: bool) -> Fact | None:
    """IS TRUE and IS FALSE are never null themselves; they are false of what is null."""
    if not isinstance(condition, exp.Is) or not isinstance(bare(condition.expression), exp.Boolean):
        return None
    found = fact_of(condition.this, kinds, denied=not bare(condition.expression).this)
    if not denied:
        return found
    return _within(found.column, found.values.rest(), kinds) if isinstance(found, Only) else None


def _said_of_column(condition: exp.Expr, kinds: Kinds) -> Only | None:
    """What a comparison with constants keeps of one column; it is false of all its other values."""
    match condition:
        case exp.Column():
            name = spelled(condition)
            return Only(name, ValueSet.whole(1)) if kinds.get(name) == "boolean" else None
        case exp.Between() if not condition.args.get("symmetric"):
            low = _compared(exp.GTE, condition.this, condition.args["low"], kinds)
            high = _compared(exp.LTE, condition.this, condition.args["high"], kinds)
            return None if low is None or high is None else Only(low.column, low.values.and_(high.values))
        case exp.In() if condition.expressions:
            column = bare(condition.this)
            name = spelled(column)
            values = (
                listed(kinds.get(name), condition.expressions) if isinstance(column, exp.Column) else None
            )
            return None if values is None else Only(name, values)
    if type(condition) not in COMPARISONS:
        return None
    left, right = condition.this, condition.expression
    return _compared(type(condition), left, right, kinds) or _compared(
        _FLIPPED[type(condition)], right, left, kinds
    )


def _compared(operator: type[exp.Expr], left: exp.Expr, right: exp.Expr, kinds: Kinds) -> Only | None:
    column = bare(left)
    if not isinstance(column, exp.Column):
        return None
    name = spelled(column)
    values = kept(operator, kinds.get(name), right)
    return None if values is None else Only(name, values)


@dataclass(slots=True)
class _Case:
    """One way in which a row meets all conditions."""

    values: dict[str, ValueSet] = field(default_factory=dict)
    said: set[Said] = field(default_factory=set)
    same: list[tuple[str, str]] = field(default_factory=list)

    def add(self, atom: _Atom) -> None:
        match atom:
            case Only():
                self._narrow(atom.column, atom.values)
            case Same():
                self.same.append(atom.columns)
                for column in atom.columns:
                    self._narrow(column, SOMETHING)
            case Said():
                self.said.add(atom)

    def _narrow(self, column: str, values: ValueSet) -> None:
        self.values[column] = self.values.get(column, ANYTHING).and_(values)

    def settle(self) -> None:
        """What holds of a column holds of those with the same value, from one to the next."""
        for _ in self.same:
            for one, other in self.same:
                both = self.values[one].and_(self.values[other])
                self.values[one] = self.values[other] = both

    @property
    def impossible(self) -> bool:
        return any(values.empty for values in self.values.values()) or any(
            Said(each.text, not each.denied) in self.said for each in self.said
        )

    def proves(self, goal: Fact) -> bool:
        if self.impossible:
            return True
        match goal:
            case Only():
                return self.values.get(goal.column, ANYTHING).within(goal.values)
            case Same():
                return self._are_same(*goal.columns)
            case Said():
                return goal in self.said
            case All():
                return all(map(self.proves, goal.parts))
        one = _of_one_column(goal)
        return any(map(self.proves, goal.parts)) or (one is not None and self.proves(one))

    def _are_same(self, one: str, other: str) -> bool:
        found = {one}
        for _ in self.same:
            found |= {name for pair in self.same if found & set(pair) for name in pair}
        values = self.values.get(one, ANYTHING)
        return other in found or (values.single and values == self.values.get(other))


def _of_one_column(fact: Fact) -> Only | None:
    """A condition as the values that it leaves to one column, where it speaks of no other."""
    if isinstance(fact, Only):
        return fact
    if not isinstance(fact, (All, Any)):
        return None
    parts = [_of_one_column(each) for each in fact.parts]
    found = [each for each in parts if each is not None]
    if len(found) < len(parts) or len({each.column for each in found}) > 1:
        return None
    together = ValueSet.all_of if isinstance(fact, All) else ValueSet.any_of
    return Only(found[0].column, together([each.values for each in found]))


def _cases(facts: list[Fact]) -> list[_Case]:
    """The ways in which all of it can hold; what has too many is left out, so that less is proved."""
    ways: list[list[_Atom]] = [[]]
    for fact in facts:
        found = _ways(fact)
        if found is not None and len(ways) * len(found) <= _MOST_CASES:
            ways = [[*one, *other] for one, other in product(ways, found)]
    return [_case(atoms) for atoms in ways]


def _ways(fact: Fact) -> list[list[_Atom]] | None:
    one = _of_one_column(fact)
    if one is not None:
        return [[one]]
    match fact:
        case Only() | Same() | Said():
            return [[fact]]
        case Any():
            parts = [_ways(each) for each in fact.parts]
            found = [way for part in parts if part is not None for way in part]
            return found if None not in parts and len(found) <= _MOST_CASES else None
    return _all_ways([_ways(each) for each in fact.parts])


def _all_ways(parts: list[list[list[_Atom]] | None]) -> list[list[_Atom]] | None:
    ways: list[list[_Atom]] = [[]]
    for part in parts:
        if part is None or len(ways) * len(part) > _MOST_CASES:
            return None
        ways = [[*one, *other] for one, other in product(ways, part)]
    return ways


def _case(atoms: Iterable[_Atom]) -> _Case:
    made = _Case()
    for atom in atoms:
        made.add(atom)
    made.settle()
    return made


def unproved(conditions: Mapping[str, exp.Expr], known: Known) -> Iterator[exp.Expr]:
    """Those of the conditions that need not be true of such rows."""
    return (each for each in conditions.values() if not known.proves(each))
