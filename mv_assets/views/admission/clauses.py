"""What no view may contain, wherever in its SQL: clauses, and texts that read the clock."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from itertools import groupby

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.canonical import means_rows
from mv_assets.spark_sql.text import short

PARAMETERS = ("bucket_start", "bucket_end")
_OUTSIDE = "reads or changes something besides the declared tables; remove it"
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Fetch,), "FETCH is no word of Spark's; write LIMIT"),
    ((exp.TableSample,), "TABLESAMPLE takes other rows on each run; remove it, and filter with WHERE"),
    ((exp.Pivot,), "PIVOT makes columns of data; write each column as an aggregate with FILTER (WHERE ...)"),
    ((exp.Version,), "time travel reads another version than the one that was looked at; remove it"),
    ((exp.QueryTransform,), f"TRANSFORM ... USING runs a script, which {_OUTSIDE}"),
    ((exp.Into,), f"INTO {_OUTSIDE}"),
    ((exp.Lock,), "FOR UPDATE locks rows of a database; remove it"),
    ((exp.Command, exp.DDL, exp.DML), f"a statement inside the SELECT {_OUTSIDE}"),
    (
        (exp.MatchRecognize, exp.Connect),
        "MATCH_RECOGNIZE and CONNECT BY look across rows of other buckets; remove them",
    ),
)


def refused_clauses(tree: exp.Expr, known_stars: Container[int]) -> list[Mistake]:
    """Everything in the SQL that can't be computed bucket by bucket, or twice with the same result.

    `known_stars` are the ids of those whose columns don't depend on a table's.
    """
    nodes = list(tree.walk())
    kinds = {type(node) for node in nodes}
    found = [what for refused, what in _REFUSED if any(issubclass(kind, refused) for kind in kinds)]
    if any(
        isinstance(node, exp.CTE) and not isinstance(node.this, (exp.Query, exp.Values)) for node in nodes
    ):
        found.append(f"a statement inside WITH {_OUTSIDE}")
    if any(isinstance(node, exp.Join) and node.method == "NATURAL" for node in nodes):
        found.append(
            "NATURAL JOIN means another join once both tables get a column of one name; join with USING or ON"
        )
    if any(isinstance(node, exp.Limit) and not isinstance(node.parent, exp.Query) for node in nodes):
        found.append("LIMIT inside a call keeps whichever rows come first; remove it")
    if any(isinstance(node, exp.SetOperation) and node.args.get("by_name") for node in nodes):
        found.append("a set operation BY NAME is none of Spark's; give both parts the same order")
    if any(
        isinstance(node, exp.Star) and not _is_counted(node) and id(node) not in known_stars for node in nodes
    ):
        found.append("`*` would change the view whenever a table gets a column; name the columns")
    if any(isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func) for node in nodes):
        found.append(
            "a function is called by a qualified name; call Spark's own functions by their plain name"
        )
    return [Mistake("sql", what) for what in found]


def refused_parameters(tree: exp.Expr, *, by_bucket: bool) -> list[Mistake]:
    """Parameters without a value: a view that is meant bucket by bucket has the bucket's start and end."""
    nodes = list(tree.find_all(exp.Placeholder, exp.Parameter, exp.SessionParameter))
    if not by_bucket:
        what = "a parameter has no value when the view is computed; write the value as a literal"
        return [Mistake("sql", what)] if nodes else []
    strange = [node for node in nodes if not isinstance(node, exp.Placeholder) or node.this not in PARAMETERS]
    known = " and ".join(f":{name}" for name in PARAMETERS)
    what = "has no value when the view is computed"
    return [
        Mistake("sql", f"{text} {what}; the parameters are {known}")
        for text in dict.fromkeys(short(node.sql("spark")) for node in strange)
    ]


def _is_counted(star: exp.Star) -> bool:
    """COUNT(*), and EXISTS (SELECT * ...) which looks at no column."""
    place = star.parent if isinstance(star.parent, exp.Column) else star
    if isinstance(place.parent, exp.Select):
        return isinstance(place.parent.parent, exp.Exists)
    return means_rows(star)


# As Spark's convertSpecialTimestamp and convertSpecialDate have it: a zone may follow, but not `now`.
_CLOCK = re.compile(
    r"\s*(now|(today|yesterday|tomorrow)(\s*[+-]\d\S*|\s+(?-i:[A-Z])\S*)?)\s*", flags=re.IGNORECASE
)
# A time without a date: today's.
_TODAYS = re.compile(r"\s*T?\d{1,2}:\d{0,2}.*", flags=re.IGNORECASE | re.DOTALL)
_COMPARES = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">=", "BETWEEN", "AND"})
_TYPED = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
_MAKES_TIMES = frozenset(
    {"CAST", "TRY_CAST", "TIMESTAMP", "TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ", "IN"}
)


def refused_literals(tokens: Sequence[Token]) -> list[Mistake]:
    """Texts such as 'now', wherever they are: a comparison is enough for Spark to make a time of one.

    Those such as '12:00' are as often just texts, and refused only where a time may be made of them.
    """
    found = [
        text
        for text, before, after in _literals(tokens)
        if _CLOCK.fullmatch(text) or (_TODAYS.fullmatch(text) and _may_be_a_time(before, after))
    ]
    return [
        Mistake("sql", f"'{short(text)}' reads the clock where Spark makes a time of it; {_right(text)}")
        for text in dict.fromkeys(found)
    ]


def _right(text: str) -> str:
    if _CLOCK.fullmatch(text):
        return "write a fixed date, or use the table's time column"
    return "write a date before it; if it is compared with text, use LIKE"


def _may_be_a_time(before: Sequence[Token], after: Sequence[Token]) -> bool:
    """Whether a text is compared, or what a time is made of."""
    last = before[-1].text.upper() if before else ""
    following = after[0].text.upper() if after else ""
    if last in _COMPARES | _TYPED or following in _COMPARES | {"::"}:
        return True
    # Beside other texts in a list, or alone in the parentheses of a call.
    at = len(before) - 1
    while at >= 0 and (_is_text(before[at]) or before[at].token_type is TokenType.COMMA):
        at -= 1
    return at > 0 and before[at].text == "(" and before[at - 1].text.upper() in _MAKES_TIMES


def _literals(tokens: Sequence[Token]) -> Iterator[tuple[str, Sequence[Token], Sequence[Token]]]:
    """Each text, joined with those that follow it directly as Spark joins them; what is before and after."""
    at = 0
    for is_text, run in groupby(tokens, key=_is_text):
        some = list(run)
        if is_text:
            yield "".join(token.text for token in some), tokens[:at], tokens[at + len(some) :]
        at += len(some)


def _is_text(token: Token) -> bool:
    return token.token_type in {TokenType.STRING, TokenType.RAW_STRING}
