"""Texts of others in sentences of ours."""

from __future__ import annotations

import re

# But for those of which the secret was taken out before.
_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@]*:(?!\*\*\*@)[^/\s@]*@")


def without_credentials(text: str) -> str:
    """A text in which no URI tells how to sign in: SCHEME://***@HOST."""
    return _CREDENTIALS.sub("***@", text)


def printable(text: str) -> str:
    """A text in one line that leaves a terminal as it is; names of files may have escape codes in them."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
