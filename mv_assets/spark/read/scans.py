"""How files of one part become few scans: what each is given must cost nothing for the rows of the others.

A file's path in every row costs more than reading the row. So values that all files share are literals, those
that folders' names say are left to Spark, which has them once for each file, and only the rest is joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from mv_assets.tables.parquet.partitions import NULL

# Folders above those that say values: each is a scan of its own.
_MOST = 8
_INTEGER = re.compile("-?[0-9]{1,19}")
# A date or time without a zone, as a listing reads it.
_CLOCK = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:.]+)?")

Values = tuple[str | None, ...]


class Folders(NamedTuple):
    """The folder above those whose names say values, and the columns that they say them of."""

    base: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Files that are read in one scan: their folders say what they are given, or all are given the same.

    Or they are told apart by a key, and what each is given is joined.
    """

    files: tuple[str, ...]
    folders: Folders | None = None
    keyed: bool = False


def scans(
    files: Mapping[str, Values],
    given: Sequence[str],
    kinds: Mapping[str, str],
    held: Iterable[str],
    deleted: Iterable[str],
) -> Iterator[Scan]:
    """The scans that files make, with the types of what they are given and what they hold themselves.

    Files of which rows are deleted need a key in any case.
    """
    partly = {path: files[path] for path in deleted}
    whole = {path: values for path, values in files.items() if path not in partly}
    if partly:
        yield Scan(tuple(partly), keyed=True)
    if len(set(whole.values())) > 1:
        yield from _differing(whole, given, kinds, {name.lower() for name in held})
    elif whole:
        yield Scan(tuple(whole))


def _differing(
    files: Mapping[str, Values], given: Sequence[str], kinds: Mapping[str, str], held: set[str]
) -> Iterator[Scan]:
    told: dict[Folders | None, list[str]] = {}
    for path, values in files.items():
        folders, said = _said(path.rpartition("/")[0])
        same = (
            folders is not None
            and held.isdisjoint(said)
            and all(
                name.lower() in said and said[name.lower()] == text and _as_spark(text, kinds[name])
                for name, text in zip(given, values, strict=True)
            )
        )
        told.setdefault(folders if same else None, []).append(path)
    if len(told) > _MOST:
        told = {None: list(files)}
    for each, some in told.items():
        yield Scan(tuple(some), each, keyed=each is None)


@lru_cache(maxsize=65_536)
def _said(folder: str) -> tuple[Folders | None, Mapping[str, str | None]]:
    """What Spark reads from the names of folders: of the last ones in a row that say something."""
    parts = folder.split("/")
    while parts and "=" not in parts[-1]:
        parts.pop()
    first = next((at + 1 for at in reversed(range(len(parts))) if "=" not in parts[at]), 0)
    pairs = [part.split("=", 1) for part in parts[first:]]
    said = {name.lower(): None if text == NULL else unquote(text) for name, text in pairs}
    # Spark takes what is escaped byte by byte, and nothing for a mistake.
    plain = all(
        name and text and "%" not in name and unquote(text).isascii() >= ("%" in text) for name, text in pairs
    )
    if not pairs or not plain or len(said) < len(pairs):
        return None, {}
    return Folders("/".join(parts[:first]), tuple(name for name, _ in pairs)), said


def _as_spark(text: str | None, kind: str) -> bool:
    """Whether Spark makes of a folder's text what a cast makes of it."""
    if text is None or kind == "string":
        return True
    if kind in ("int", "bigint"):
        return _INTEGER.fullmatch(text) is not None
    if kind == "date" and _CLOCK.fullmatch(text):
        with suppress(ValueError):
            return date.fromisoformat(text).isoformat() == text
    return False


def in_utc(text: str | None) -> str | None:
    """A time that does not say where is UTC's, as it was listed, whatever zone the session has."""
    if text is None or not _CLOCK.fullmatch(text):
        return text
    with suppress(ValueError):
        return f"{datetime.fromisoformat(text).isoformat(' ', 'microseconds')}Z"
    return text
