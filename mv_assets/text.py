"""Texts of others in sentences of ours."""

from __future__ import annotations


def printable(text: str) -> str:
    """A text in one line that leaves a terminal as it is; names of files may have escape codes in them."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
