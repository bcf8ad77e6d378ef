"""Texts that Spark takes for a time of the clock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.errors import Mistake
from mv_assets.views.sql.wording import short

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
