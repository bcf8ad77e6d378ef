"""SQL text to one parsed query, or to the one sentence that says why it is none."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from mv_assets.config.errors import Mistake
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.text import short

SQLGLOT_ERRORS = (SqlglotError, RecursionError, ValueError, ArithmeticError)
_SPARK = Dialect.get_or_raise("spark")
_TEXT_QUOTES = ("'", '"')
_QUOTES = (*_TEXT_QUOTES, "`")
_CHANGES = (exp.Command, exp.DDL, exp.DML, exp.Drop)
_NAMES = frozenset("_$`\"'")
_PLAIN_HINT = re.compile(r"/\*\+[\w\s,.()]*\*/")


@dataclass(frozen=True, slots=True)
class Reading:
    """A SELECT, or a set operation of several, that parsed; its text without comments and layout.

    `tokens` are what it was made of, `bare` is what to give to Spark.
    """

    tree: exp.Query
    text: str
    tokens: tuple[Token, ...]
    bare: str


def read(sql: str) -> Reading | Mistake:
    """The one query that `sql` is."""
    if "${" in sql:
        what = "holds `${`, which Spark replaces with a setting of its session; write the value itself"
        return Mistake("sql", f"the SQL {what}")
    parsed = parse(sql)
    if isinstance(parsed, Refusal):
        return Mistake("sql", f"the SQL {parsed}")
    if isinstance(parsed.statement, (exp.Select, exp.SetOperation)):
        text = _text(sql, parsed.tokens, parsed.statement)
        return Reading(parsed.statement, text, parsed.tokens, parsed.bare)
    return Mistake("sql", f"the SQL {_not_a_select(parsed.statement, parsed.tokens[0].text)}")


@dataclass(frozen=True, slots=True)
class Parsed:
    """One statement of whatever kind.

    `bare` is its text without comments, the rest in its place: Spark and sqlglot do not always agree on where
    a comment ends, and what was not read here must not be run there.
    """

    statement: exp.Expr | None
    tokens: tuple[Token, ...]
    bare: str


def parse(sql: str) -> Parsed | Refusal:
    """The one statement that `sql` is, or why it is none; parentheses around it are taken off."""
    try:
        with _quiet():
            tokens = _SPARK.tokenize(sql)
            while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
                tokens.pop()
            why = _not_one_statement(tokens)
            if why is not None:
                return Refusal(why)
            statement = _SPARK.parser().parse(list(tokens), sql)[0]
    except ParseError as error:
        return Refusal(_parse_error(error))
    except TokenError as error:
        return Refusal(_token_error(error))
    except RecursionError:
        return Refusal("is nested too deeply to be read; write it with fewer levels of parentheses")
    except (*SQLGLOT_ERRORS, TypeError, AttributeError, LookupError):
        # What a parser of so many dialects stumbles over, on text that is far from SQL.
        return Refusal("can't be read as Spark SQL; write one SELECT statement")
    while isinstance(statement, exp.Subquery) and not any(
        value for key, value in statement.args.items() if key != "this"
    ):
        statement = statement.this
    # Whatever changes something is refused by its own name.
    if isinstance(statement, exp.Query) and not statement.find(*_CHANGES):
        why = _not_plain(sql, tokens)
        if why is not None:
            return Refusal(why)
    return Parsed(statement, tuple(tokens), _bare(sql, tokens))


@contextmanager
def _quiet() -> Iterator[None]:
    """Sqlglot logs syntax that it only half knows; here that is a mistake of the project, not a log line."""
    logger = logging.getLogger("sqlglot")

    def drop(_: logging.LogRecord) -> bool:
        return False

    logger.addFilter(drop)
    try:
        yield
    finally:
        logger.removeFilter(drop)


def _not_one_statement(tokens: Sequence[Token]) -> str | None:
    if not tokens:
        return "is empty; write one SELECT statement"
    kinds = {token.token_type for token in tokens}
    if TokenType.SEMICOLON in kinds:
        return "holds several statements; keep one SELECT"
    if TokenType.PIPE_GT in kinds:
        return "uses the pipe syntax `|>`; write it as a plain SELECT"
    return None


def _not_plain(sql: str, tokens: Sequence[Token]) -> str | None:
    """What Spark reads otherwise than sqlglot."""
    # As they are written: sqlglot takes some words for names that are none to Spark.
    words = [sql[token.start : token.end + 1] for token in tokens]
    for hint in (word for word in words if word.startswith("/*") and not _PLAIN_HINT.fullmatch(word)):
        return f"has the hint {short(hint)}; write a hint with plain names and numbers only"
    for before, word, after in zip(("", *words), words, words[1:], strict=False):
        # Names of Spark's may begin with a digit.
        is_name = after[0].isalnum() or after[0] in _NAMES
        if word.upper() == "TABLE" and before.upper() not in (".", "AS") and is_name:
            return f"reads TABLE {short(after)}, which is a query of its own; read it in FROM"
    return None


def _bare(sql: str, tokens: Sequence[Token]) -> str:
    made, end = [], 0
    for token in tokens:
        if token.start >= end:
            made += [_blank(sql[end : token.start]), sql[token.start : token.end + 1]]
            end = token.end + 1
    return "".join(made)


def _blank(between: str) -> str:
    return "".join("\n" if character == "\n" else " " for character in between)


def _not_a_select(statement: exp.Expr | None, first: str) -> str:
    if isinstance(statement, exp.Subquery):
        return "is a SELECT in parentheses with something around it; write one plain SELECT"
    return f"is not a SELECT, it starts with {short(first)}; write one SELECT statement"


def _parse_error(error: ParseError) -> str:
    found = error.errors[0] if error.errors else {}
    near = str(found.get("highlight") or "")
    what = re.sub(
        r" but got <Token.*", "", str(found.get("description") or "unexpected text"), flags=re.DOTALL
    )
    if "line" not in found:
        return f"can't be read as Spark SQL ({what}); write one SELECT statement"
    # sqlglot counts to the end of the token.
    column = max(1, int(found["col"]) - len(near) + 1)
    place = f"line {found['line']}, column {column}" + (f", at `{short(near)}`" if near else "")
    return f"can't be read as Spark SQL: {what[:1].lower()}{what[1:]} ({place}); mend the syntax there"


def _token_error(error: TokenError) -> str:
    missing = re.search(r"Missing (.+) from (\d+):(\d+)", f"{error} {error.__cause__}")
    if missing is None:
        return "can't be read as Spark SQL; close every comment and quoted text"
    quote, line, column = missing.groups()
    return f"has a {quote} at line {line}, column {int(column) + 1} that is never closed; close it"


def _text(sql: str, tokens: Sequence[Token], tree: exp.Query) -> str:
    """The SQL as Spark would read it, spelled one way.

    Made of the tokens, not generated from the tree: sqlglot writes some different queries the same way, and
    then a changed view would keep its definition hash. Names keep their case, which output columns show.
    """
    names = {identifier.name for identifier in tree.find_all(exp.Identifier)}
    words: list[str] = []
    last, end = -1, -1
    for token in tokens:
        # A literal such as 10L comes as three tokens over the same text.
        if token.start == last:
            continue
        last = token.start
        word = sql[token.start : token.end + 1]
        spelled = word in names or any(quote in word for quote in _QUOTES)
        if token.start == end + 1 and word[0] in _TEXT_QUOTES and words[-1].endswith(word[0]):
            # 'it''s' holds a quote, 'it' 's' is its.
            words[-1] += word
        else:
            words.append(word if spelled else " ".join(word.upper().split()))
        end = token.end
    return " ".join(words)
