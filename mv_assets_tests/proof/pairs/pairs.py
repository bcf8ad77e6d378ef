"""Views, and queries that they answer or have to leave to the base table: the texts of `*.sql` beside this.

A paragraph is a view or a query. Its first line, a comment, says which:

    -- view: what it is for
    -- served          answered by the view above
    -- base: why       left to the base table
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Query:
    text: str
    served: bool
    line: int


@dataclass(frozen=True)
class Pairs:
    """A view with the queries that it is held against."""

    file: str
    about: str
    view: str
    queries: tuple[Query, ...]


def all_pairs() -> list[Pairs]:
    return [pairs for file in sorted(HERE.glob("*.sql")) for pairs in _pairs(file)]


def _pairs(file: Path) -> Iterator[Pairs]:
    about, view, queries = "", "", list[Query]()
    for line, head, text in _paragraphs(file):
        kind, _, rest = head.removeprefix("-- ").partition(":")
        if kind == "view":
            if queries:
                yield Pairs(file.stem, about, view, tuple(queries))
            about, view, queries = rest.strip(), text, []
        elif kind in {"served", "base"}:
            queries.append(Query(text, kind == "served", line))
        else:
            raise ValueError(f"{file.name}:{line}: {head!r} says neither view, served nor base")
    yield Pairs(file.stem, about, view, tuple(queries))


def _paragraphs(file: Path) -> Iterator[tuple[int, str, str]]:
    at = 1
    for paragraph in file.read_text().split("\n\n"):
        lines = paragraph.strip("\n").split("\n")
        yield at, lines[0], "\n".join(lines[1:])
        at += paragraph.count("\n") + 2
