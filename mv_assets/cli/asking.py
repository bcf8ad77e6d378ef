"""Questions of the command line, and how their answers are shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from mv_assets.cli import show
from mv_assets.cli.printing import formats, served
from mv_assets.cli.printing.output import opened
from mv_assets.cli.printing.rows import Rows
from mv_assets.cli.session import print_json
from mv_assets.query.execute.answer import Answer, Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.views.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Asking:
    """Asks as the options say."""

    answers: Answers
    catalog: Catalog
    freshness: Freshness
    max_staleness: int | None

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
            found = self.answers.explain(self._question(text))
        if as_json:
            print_json({"served": served.in_json(found, considered=True)})
            return
        out = show.console()
        for line in served.explained(found, served.bases_of(text, self.catalog)):
            out.print(line)

    def _answered(self, text: str) -> tuple[Answer, Rows]:
        with _working():
            answer = self.answers.answer(self._question(text))
            return answer, Rows(answer.frame)

    def _question(self, text: str) -> Question:
        return Question(text, self.freshness, self.max_staleness)


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
