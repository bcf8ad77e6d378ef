"""A prompt for queries: Spark stays, so that only the first one waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from rich.console import Console
from sqlglot import TokenError, tokenize
from sqlglot.tokenizer_core import TokenType

from mv_assets.cli.answers.questions import Questions
from mv_assets.errors import MvError
from mv_assets.reports import show

_HELP = r"""SELECT ...;           ask; a statement ends with a semicolon and may span lines
\explain SELECT ...;  what the rows would come from, and why
\d                    the project's tables and views
\q, Ctrl-D            quit
Ctrl-C                abandon a statement"""
_EXPLAIN = r"\explain"
_LONGEST_HISTORY = 1_000


class Prompt:
    """Asks a person, statement by statement."""

    def __init__(self, questions: Questions, home: Path) -> None:
        self._questions = questions
        self._history = home / "query_history"

    def run(self) -> None:
        """Until they quit."""
        click.echo("Statements end with a semicolon; \\? for help, \\q or Ctrl-D to quit.")
        with self._remembered():
            while True:
                try:
                    text = self._statement()
                    if text is None:
                        return
                    self._do(text)
                except KeyboardInterrupt:
                    click.echo("\nabandoned")
                except MvError as error:
                    _complain(str(error))

    def _statement(self) -> str | None:
        """The next statement or command; None at the end."""
        lines: list[str] = []
        while True:
            try:
                lines.append(input("    > " if lines else "mv> "))
            except EOFError:
                click.echo()
                return None
            text = "\n".join(lines).strip()
            if not text:
                lines.clear()
            elif text == r"\q":
                return None
            elif _is_whole(text):
                return text

    def _do(self, text: str) -> None:
        began = time.monotonic()
        if text.startswith(_EXPLAIN):
            self._questions.explain(text.removeprefix(_EXPLAIN), as_json=False)
        elif text == r"\d":
            self._describe()
        elif text.startswith("\\"):
            click.echo(_HELP)
        else:
            rows, line = self._questions.table(text)
            took = f"{show.count(rows, 'row')}, {time.monotonic() - began:.2f} s; {line}"
            show.console().print(f"[bright_black]{show.plain(took)}[/]")

    def _describe(self) -> None:
        catalog = self._questions.catalog
        width = max(map(len, [*catalog.tables, *catalog.views]), default=0)
        out = show.console()
        for name, table in catalog.tables.items():
            time_column = f", time in {table.time_column}" if table.time_column else ""
            out.print(f"{name:<{width}}  [bright_black]table[/]  {show.plain(table.format + time_column)}")
        for name, view in catalog.views.items():
            columns = view.body.columns or ("its columns are known once it is computed",)
            said = f"on {view.declared.base.table}, by {view.buckets.text}: {', '.join(columns)}"
            out.print(f"{name:<{width}}  [bright_black]view[/]   {show.plain(said)}")

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        """With what was typed before, where there is readline and a place to keep it."""
        try:
            import readline  # noqa: PLC0415 - not every Python has it
        except ImportError:
            yield
            return
        with suppress(OSError):
            readline.read_history_file(self._history)
        readline.set_history_length(_LONGEST_HISTORY)
        try:
            yield
        finally:
            with suppress(OSError):
                self._history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(self._history)


def _is_whole(text: str) -> bool:
    """Whether a semicolon ends it that is not inside a string or a comment."""
    if text.startswith("\\") and not text.startswith(_EXPLAIN):
        return True
    try:
        tokens = tokenize(text.removeprefix(_EXPLAIN), read="spark")
    except TokenError:
        # A string that goes on in the next line.
        return False
    return bool(tokens) and tokens[-1].token_type is TokenType.SEMICOLON


def _complain(line: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"[red]{show.plain(line)}[/]")
