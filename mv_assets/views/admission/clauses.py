"""What no view may contain, wherever in its SQL: clauses, texts that read the clock, orders that may tie."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.errors import Mistake
from mv_assets.spark_sql.canonical import means_rows
from mv_assets.spark_sql.spark_functions import names
from mv_assets.spark_sql.wording import short

_LIMIT = "keeps whichever rows come first; remove it, and use WHERE or HAVING"
_OUTSIDE = "reads or changes something besides the declared tables; remove it"
_REFUSED: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Limit, exp.Fetch), f"LIMIT {_LIMIT}"),
    ((exp.Offset,), f"OFFSET {_LIMIT}"),
    ((exp.TableSample,), "TABLESAMPLE takes other rows on each run; remove it, and filter with WHERE"),
    ((exp.Pivot,), "PIVOT makes columns of data; write each column as an aggregate with FILTER (WHERE ...)"),
    (
        (exp.Placeholder, exp.Parameter, exp.SessionParameter),
        "a parameter has no value when the view is computed; write the value as a literal",
    ),
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


def refused_clauses(select: exp.Select) -> list[Mistake]:
    """Everything in the SQL that can't be computed bucket by bucket, or twice with the same result."""
    nodes = list(select.walk())
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
    if any(isinstance(node, exp.Star) and not _is_counted(node) for node in nodes):
        found.append("`*` would change the view whenever a table gets a column; name the columns")
    if any(isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func) for node in nodes):
        found.append(
            "a function is called by a qualified name; call Spark's own functions by their plain name"
        )
    return [Mistake("sql", what) for what in found]


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


_BY_PLACE = names(
    """
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value counter_diff
    first first_value last last_value any_value
    """
)


def refused_orders(select: exp.Select) -> list[Mistake]:
    return [Mistake("sql", what) for what in (*_windows(select), *_lists(select))]


def _windows(select: exp.Select) -> Iterator[str]:
    for call in select.find_all(exp.Window):
        # One of a WINDOW clause matters where it is used.
        if not call.args.get("over"):
            continue
        parts = [call, *_named(call)]
        # Rows that tie in an ORDER BY may still swap; whether its keys are unique can't be told from SQL.
        if not any(map(_is_ordered, parts)) and (_function(call) in _BY_PLACE or any(map(_is_cut, parts))):
            what = f"the window of {short(call.this.sql('spark'))} depends on the order in which rows arrive"
            yield f"{what}; give it an ORDER BY on columns"


def _named(call: exp.Window) -> list[exp.Window]:
    around = call.find_ancestor(exp.Select)
    windows = around.args.get("windows") or () if around else ()
    return [window for window in windows if call.alias and window.name.lower() == call.alias.lower()]


def _is_ordered(window: exp.Window) -> bool:
    order = window.args.get("order")
    return isinstance(order, exp.Order) and order.find(exp.Column) is not None


def _is_cut(window: exp.Window) -> bool:
    """Whether its frame is only a part of the partition."""
    spec = window.args.get("spec")
    return spec is not None and (spec.args.get("start"), spec.args.get("end")) != ("UNBOUNDED", "UNBOUNDED")


def _function(call: exp.Window) -> str:
    function = call.this
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        function = function.this
    if isinstance(function, exp.Anonymous):
        return str(function.name).lower()
    return function.sql_name().lower() if isinstance(function, exp.Func) else ""


def _lists(select: exp.Select) -> Iterator[str]:
    for call in select.find_all(exp.GroupConcat):
        order = call.this
        if not isinstance(order, exp.Order):
            continue
        listed = order.this.expressions[0] if isinstance(order.this, exp.Distinct) else order.this
        keys = [key.this for key in order.expressions]
        if not _follows(_folded(listed), [_folded(key) for key in keys]):
            ties = ", ".join(key.sql("spark") for key in keys)
            what = f"listagg lists rows that tie in {short(ties)} in the order in which they arrive"
            yield f"{what}; add {short(listed.sql('spark'))} to its ORDER BY"


def _follows(value: exp.Expr, keys: Sequence[exp.Expr]) -> bool:
    """Whether rows with the same keys have the same value."""
    return value in keys or (
        not isinstance(value, exp.Column) and all(_follows(part, keys) for part in value.iter_expressions())
    )


def _folded(value: exp.Expr) -> exp.Expr:
    """The expression with its names in lower case, as Spark compares them."""
    return value.copy().transform(
        lambda node: exp.to_identifier(node.name.lower()) if isinstance(node, exp.Identifier) else node
    )
