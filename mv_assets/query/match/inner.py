"""SELECTs inside of a query that read tables alone: each can be answered by itself, and put in its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.query.errors import QueryRefused
from mv_assets.query.match.clock import reads_clock
from mv_assets.query.match.statement import Statement, place_of, statement_of
from mv_assets.spark_sql.resolve import output_names

_OPERATORS = frozenset({TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT})
# Behind the last SELECT of a set operation they are the operation's.
_OF_ALL = frozenset(
    {
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.WINDOW,
    }
)


@dataclass(slots=True)
class Inner:
    """A SELECT from `start` to before `end` of a query's text, and those inside of it.

    It has no statement where it can't stand alone.
    """

    start: int
    end: int
    statement: Statement | None
    inside: list[Inner] = field(default_factory=list)


def inner_selects(statement: Statement, known: Collection[str]) -> list[Inner]:
    """The outermost SELECTs of a query; but for the query itself, if it is one."""
    places = {place_of(table)[0] for table in statement.tables}
    found: list[Inner] = []
    for start, end in sorted(_spans(statement.tokens), key=lambda span: (span[0], -span[1])):
        made = Inner(start, end, _alone(statement.text[start:end], start, places, known))
        above = _innermost(found, start)
        (found if above is None else above.inside).append(made)
    whole = isinstance(statement.tree, exp.Select) and not statement.tree.args.get("with_")
    return found[0].inside if whole and len(found) == 1 else found


def replaced_by(statement: Statement, relations: Iterable[tuple[Inner, str]]) -> str:
    """The query with relations in place of some of its SELECTs, which are in order."""
    made, at = [], 0
    for inner, name in relations:
        made += [statement.text[at : inner.start], f"SELECT * FROM `{name}`"]
        at = inner.end
    return "".join([*made, statement.text[at:]])


def _innermost(found: Sequence[Inner], start: int) -> Inner | None:
    """The last of them, or of those inside of it, that a place lies in."""
    if not found or found[-1].end <= start:
        return None
    return _innermost(found[-1].inside, start) or found[-1]


@dataclass(slots=True)
class _Level:
    """What stands between two parentheses: SELECTs, and whether set operations put them together."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    start: int | None = None
    operated: bool = False
    # Since the last SELECT, something that may be meant of all of them.
    of_all: bool = False

    def end(self, at: int) -> None:
        if self.start is not None and not (self.operated and self.of_all):
            self.spans.append((self.start, at))
        self.start, self.of_all = None, False


def _spans(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """From each SELECT to where it ends: at a set operation, at the parenthesis around it, or at the end."""
    levels = [_Level()]
    for token in tokens:
        kind, level = token.token_type, levels[-1]
        if kind is TokenType.L_PAREN:
            levels.append(_Level())
        elif kind is TokenType.R_PAREN and len(levels) > 1:
            level.end(token.start)
            yield from levels.pop().spans
        elif kind is TokenType.SELECT:
            level.start = token.start
        elif kind in _OPERATORS:
            level.operated = True
            level.end(token.start)
        elif kind in _OF_ALL:
            level.of_all = True
    levels[0].end(tokens[-1].end + 1)
    yield from levels[0].spans


def _alone(text: str, start: int, places: Collection[int], known: Collection[str]) -> Statement | None:
    """A SELECT as a query of its own; None if it means something else then, or can't be put back."""
    try:
        made = statement_of(text, known)
    except QueryRefused:
        return None
    # By the same name, a WITH around it may define another relation.
    elsewhere = any(start + place_of(table)[0] not in places for table in made.tables)
    if elsewhere or not isinstance(made.tree, exp.Select) or any(map(reads_clock, made.tree.walk())):
        return None
    names = [str(name).lower() for item in made.tree.expressions for name in output_names(item) or [item]]
    return made if len(set(names)) == len(names) else None
