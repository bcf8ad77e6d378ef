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


def refused_literals(tokens: Sequence[Token]) -> list[Mistake]:
    """Texts such as 'now', wherever they are: a comparison is enough for Spark to make a time of one."""
    right = "write a fixed date, or use the table's time column"
    return [
        Mistake("sql", f"'{short(text)}' reads the clock where Spark makes a time of it; {right}")
        for text in dict.fromkeys(_literals(tokens))
        if _CLOCK.fullmatch(text)
    ]


def _literals(tokens: Sequence[Token]) -> Iterator[str]:
    """Each text, joined with those that follow it directly as Spark joins them."""
    for is_text, run in groupby(tokens, key=_is_text):
        if is_text:
            yield "".join(token.text for token in run)


def _is_text(token: Token) -> bool:
    return token.token_type in {TokenType.STRING, TokenType.RAW_STRING}
