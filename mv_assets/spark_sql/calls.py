"""Function calls as the tokens show them: sqlglot's tree renames functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

# The words of WITHIN GROUP (...) FILTER (...) IGNORE NULLS OVER (...), which belong to the call before them.
_CLAUSES = frozenset({"WITHIN", "GROUP", "FILTER", "IGNORE", "RESPECT", "NULLS", "OVER"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    `inside` is the function whose first argument starts with the call, `then` the text that follows the call
    and its clauses: a comma or closing parenthesis if the call is the whole argument.
    """

    name: str
    arguments: int
    first: Token
    last: Token
    inside: str
    then: str
    within_group: bool
    windowed: bool


def calls(tokens: Sequence[Token]) -> list[Call]:
    closing: dict[int, int] = {}
    commas: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            opened.append(place)
            commas[place] = 0
        elif token.token_type is TokenType.R_PAREN and opened:
            closing[opened.pop()] = place
        elif token.token_type is TokenType.COMMA and opened:
            commas[opened[-1]] += 1
    return [_call(tokens, start, end, commas[start], closing) for start, end in closing.items() if start]


def _call(tokens: Sequence[Token], start: int, end: int, commas: int, closing: Mapping[int, int]) -> Call:
    clauses, after = _clauses(tokens, end + 1, closing)
    return Call(
        name=tokens[start - 1].text.lower(),
        arguments=0 if end == start + 1 else commas + 1,
        first=tokens[start + 1],
        last=tokens[end - 1],
        inside=tokens[start - 3].text.lower() if start > 2 and tokens[start - 2].text == "(" else "",  # noqa: PLR2004
        then=tokens[after].text if after < len(tokens) else "",
        within_group="GROUP" in clauses,
        windowed="OVER" in clauses,
    )


def _clauses(tokens: Sequence[Token], place: int, closing: Mapping[int, int]) -> tuple[set[str], int]:
    """The words of the clauses from `place` on, and the place after them."""
    found: set[str] = set()
    while (
        place < len(tokens) and (words := tokens[place].text.upper().split()) and _CLAUSES.issuperset(words)
    ):
        found.update(words)
        place += 1
        if place in closing:
            place = closing[place] + 1
        elif words[-1] == "OVER":
            # The name of a window.
            place += 1
    return found, place
