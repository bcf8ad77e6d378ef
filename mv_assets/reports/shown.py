"""A result in three forms: JSON for programs, lines on a terminal, the same lines in a notebook."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from rich.console import Console
from rich.text import Text

_WIDTH = 110
_PAGE = '<pre style="line-height: 1.25; font-family: monospace">{code}</pre>'

T = TypeVar("T")
# A line of rich's markup, or one that was put together.
Line = str | Text


class Shown:
    """What a command comes to."""

    def as_json(self) -> dict[str, Any]:
        """The result for programs; its keys are an interface."""
        raise NotImplementedError

    def lines(self, out: Console) -> Iterator[Line]:
        """The result for people, as wide as `out`."""
        raise NotImplementedError

    @property
    def is_wrong(self) -> bool:
        """Whether a person should see to something: the command then ends with 1."""
        return False

    def print(self, out: Console) -> None:
        """Print for people."""
        for line in self.lines(out):
            # The console's own setting otherwise.
            out.print(line, soft_wrap=True if isinstance(line, Text) and line.no_wrap else None)

    def __str__(self) -> str:
        written = io.StringIO()
        self.print(_console(written))
        return written.getvalue().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        out = _console(io.StringIO(), record=True)
        self.print(out)
        return out.export_html(inline_styles=True, code_format=_PAGE)


class ByView(Shown, Generic[T]):
    """A result with a part for each view, found by the view's name."""

    def parts(self) -> Mapping[str, T]:
        """The parts, by view."""
        raise NotImplementedError

    def __getitem__(self, view: str) -> T:
        return self.parts()[view]

    def __contains__(self, view: object) -> bool:
        return view in self.parts()

    def __iter__(self) -> Iterator[T]:
        return iter(self.parts().values())

    def __len__(self) -> int:
        return len(self.parts())


def _console(file: io.StringIO, *, record: bool = False) -> Console:
    return Console(
        file=file,
        record=record,
        width=_WIDTH,
        color_system="truecolor" if record else None,
        highlight=False,
        soft_wrap=True,
    )
