"""What is wrong with a project file, or with the folder that it is kept in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mv_assets.errors import MvError
from mv_assets.text import printable


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a project: the field, what is wrong there, and what would be right."""

    where: str
    what: str
    line: int | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (line, self.where) if part)
        return printable(f"{place}: {self.what}" if place else self.what)


class ProjectError(MvError):
    """The project file can't be used; it names every mistake that was found."""

    code = "project-error"
    is_usage = True

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(f"{file}: {count}", *(f"  {mistake}" for mistake in mistakes))
        self.file = file
        self.mistakes = tuple(mistakes)


class HomeUnwritable(MvError):
    """The folder of all that the embedded defaults write can't be written."""

    code = "home-unwritable"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"nothing can be written to {where}: {why}; name another folder with MV_ASSETS_HOME")
