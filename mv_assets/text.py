"""Texts of others in sentences of ours."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

# But for those of which the secret was taken out before.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]*:(?!\*\*\*@)[^/\s@]*@")
# How options end whose values are no secret.
_NO_SECRETS = ("name", "type", "warehouse", "region", "endpoint", "impl")
_WORDS = ("true", "false", "bearer", "basic")
# Nobody's secret is shorter, and what is would be taken out of words.
_SHORTEST = 4


def without_credentials(text: str) -> str:
    """A text in which no URI tells how to sign in: SCHEME://***@HOST."""
    return _CREDENTIALS.sub("***@", text)


def silent(text: str, options: Mapping[str, str]) -> str:
    """What a library says, without the secrets that its options have; also as Python would write them."""
    for secret in sorted(_secrets(options), key=len, reverse=True):
        for written in (secret, repr(secret)[1:-1]):
            text = text.replace(written, "...")
    return without_credentials(text)


def cause(error: Exception, options: Mapping[str, str]) -> Exception | None:
    """What may be shown as the cause: a traceback has all words in it that led to the error."""
    said = "".join(traceback.format_exception(error, limit=0))
    return error if silent(said, options) == said else None


def _secrets(options: Mapping[str, str]) -> Iterator[str]:
    for key, value in options.items():
        found = set[str]()
        if "://" in value:
            # A password may have all signs in it, even a slash.
            rest, _, query = value.partition("://")[2].partition("?")
            password = rest.rpartition("@")[0].partition(":")[2]
            found = {password, unquote(password), query}
        elif not key.lower().endswith(_NO_SECRETS):
            # As ID:SECRET and "Bearer TOKEN" have them.
            found = {value, *re.split(r"[\s:]+", value)}
        yield from (each for each in found if len(each) >= _SHORTEST and each.lower() not in _WORDS)


def in_markdown(text: str) -> str:
    """A text inside of a line of Markdown, as code: nothing of it is a link, an image or HTML."""
    fence, apart = "`" * (_longest_run(text) + 1), " " if "`" in text else ""
    return f"{fence}{apart}{printable(text)}{apart}{fence}"


def code_block(text: str, language: str) -> str:
    """Lines of code in Markdown, which nothing in them can end."""
    fence = "`" * max(_longest_run(text) + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def printable(text: str) -> str:
    """A text in one line that leaves a terminal as it is; names of files may have escape codes in them."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
