"""Questions of the command line, and how their answers are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rich.console import Console

from mv_assets.cli.answers import formats, served
from mv_assets.cli.answers.output import opened
from mv_assets.cli.answers.rows import Rows
from mv_assets.cli.session import print_json
from mv_assets.project import Project
from mv_assets.query.execute.answer import Answer
from mv_assets.reports import show
from mv_assets.views.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Questions:
    """Asks as the options say."""

    project: Project
    freshness: str
    max_staleness: timedelta | None
    again: Callable[[Callable[[], tuple[Answer, Rows]]], tuple[Answer, Rows]]

    @property
    def catalog(self) -> Catalog:
        return self.project.catalog

    def rows(self, text: str, form: str, output: Path | None) -> None:
        """The rows in a format, and in one line on stderr what they came from."""
        answer, rows = self._answered(text)
        if form == "table" and output is None:
            formats.print_table(rows)
        else:
            with opened(output) as out:
                formats.FORMATS[form](rows, out)
        _note(served.in_line(answer.served, served.bases_of(text, self.catalog)))

    def table(self, text: str) -> tuple[int, str]:
        """The rows as a table; how many there are, and what they came from."""
        answer, rows = self._answered(text)
        formats.print_table(rows)
        return rows.total, served.in_line(answer.served, served.bases_of(text, self.catalog))

    def document(self, text: str, output: Path | None) -> None:
        """Everything as one JSON object."""
        answer, rows = self._answered(text)
        with opened(output) as out:
            formats.as_document(rows, served.in_json(answer.served), out)

    def explain(self, text: str, *, as_json: bool) -> None:
        """What the rows would come from."""
        with _working():
            found = self.project.explain_query(
                text, freshness=self.freshness, max_staleness=self.max_staleness
            )
        if as_json:
            print_json({"served": served.in_json(found, considered=True)})
            return
        out = show.console()
        for line in served.explained(found, served.bases_of(text, self.catalog)):
            out.print(line)

    def _answered(self, text: str) -> tuple[Answer, Rows]:
        def asked() -> tuple[Answer, Rows]:
            answer = self.project.query(text, freshness=self.freshness, max_staleness=self.max_staleness)
            return answer, Rows(answer.frame)

        with _working():
            return self.again(asked)


@contextmanager
def _working() -> Iterator[None]:
    """A sign of life on a terminal, that leaves no trace."""
    out = Console(stderr=True)
    if not out.is_terminal:
        yield
        return
    with out.status("asking Spark"):
        yield


def _note(line: str) -> None:
    out = Console(stderr=True, highlight=False, soft_wrap=True)
    out.print(f"[bright_black]{show.plain(line)}[/]")
