"""Whole answers as bytes: CSV, JSON by lines, one JSON document, Parquet, and a table for people."""

from __future__ import annotations

import codecs
import csv
import json
import re
from collections.abc import Callable
from contextlib import closing
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mv_assets.cli.answers.rows import Rows, as_failures, values_of
from mv_assets.cli.answers.values import in_json, in_text, on_terminal
from mv_assets.query.errors import QueryRefused
from mv_assets.reports import show

# More than a person would read.
_MOST_ROWS = 1_000
_WIDE = 100_000
# What a CSV cell can't hold without quotes.
_QUOTED = re.compile('[,"\r\n]')

Writer = Callable[[Rows, IO[bytes]], None]


def _as_csv(rows: Rows, out: IO[bytes]) -> None:
    """With a header. NULL is an empty cell and the empty text is in quotes, as PostgreSQL and DuckDB have it.

    Where a row is a single cell, both are in quotes: readers skip empty lines.
    """
    text = _text(out)
    plain = csv.writer(text, lineterminator="\n")
    plain.writerow(rows.names)
    with closing(rows.values()) as values:
        for row in values:
            cells = ["" if value is None else in_text(value) for value in row]
            if "" in cells and len(cells) > 1:
                text.write(",".join(map(_cell, row, cells)) + "\n")
            else:
                plain.writerow(cells)


def _cell(value: Any, text: str) -> str:
    if value is None:
        return ""
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if not text or _QUOTED.search(text) else text


def _as_json_lines(rows: Rows, out: IO[bytes]) -> None:
    """An object a row.

    Raises:
        QueryRefused: two columns have the same name.

    """
    _refuse_twice(rows)
    with closing(rows.values()) as values:
        for row in values:
            out.write(_dumped(dict(zip(rows.names, map(in_json, row), strict=True))) + b"\n")


def as_document(rows: Rows, served: dict[str, Any], out: IO[bytes]) -> None:
    """Columns, rows and what they came from as one object, which is never in memory as a whole."""
    out.write(b'{"columns": ' + _dumped(rows.names) + b', "types": ' + _dumped(rows.types) + b', "rows": [')
    with closing(rows.values()) as values:
        for number, row in enumerate(values):
            out.write((b",\n" if number else b"\n") + _dumped([in_json(value) for value in row]))
    out.write(b'], "served": ' + _dumped(served) + b"}\n")


def _as_parquet(rows: Rows, out: IO[bytes]) -> None:
    """Times in UTC.

    Raises:
        QueryRefused: two columns have the same name.
        JobFailed: Parquet has no such type.

    """
    _refuse_twice(rows)
    with as_failures(), closing(rows.pieces()) as pieces, pq.ParquetWriter(out, _named(rows)) as writer:
        for piece in pieces:
            writer.write_table(piece.rename_columns(rows.names))


def _as_table(rows: Rows, out: IO[bytes]) -> None:
    """A table for a file, as wide as it has to be."""
    _draw(rows, Console(file=_text(out), width=_WIDE, highlight=False))


def print_table(rows: Rows) -> None:
    """A table on the terminal; as wide as it has to be where there is none."""
    out = Console(highlight=False)
    _draw(rows, out if out.is_terminal else Console(highlight=False, width=_WIDE))


FORMATS: dict[str, Writer] = {
    "table": _as_table,
    "csv": _as_csv,
    "json": _as_json_lines,
    "parquet": _as_parquet,
}


def _draw(rows: Rows, out: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, is_number in zip(rows.names, rows.is_number, strict=True):
        table.add_column(Text(on_terminal(name)), justify="right" if is_number else "left", overflow="fold")
    for row in values_of(rows.first(_MOST_ROWS)):
        table.add_row(*(Text("NULL", "dim") if value is None else Text(on_terminal(value)) for value in row))
    out.print(table)
    if rows.total > _MOST_ROWS:
        out.print(f"and {show.count(rows.total - _MOST_ROWS, 'more row')}; `--format csv` has them all")


def _refuse_twice(rows: Rows) -> None:
    if rows.twice is not None:
        raise QueryRefused(f"two columns are called {rows.twice}; name them apart with AS")


def _named(rows: Rows) -> pa.Schema:
    return pa.schema([field.with_name(name) for field, name in zip(rows.arrow, rows.names, strict=True)])


def _text(out: IO[bytes]) -> Any:
    # A TextIOWrapper would close what it wraps, and stumble over a pipe that broke.
    return codecs.getwriter("utf-8")(out)


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
