"""Faults at one call of a process to its database or to the file system.

A call is told by where it comes from, the lines of mv_assets that lead to it: calls from one place are one.
"""

from __future__ import annotations

import errno
import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

T = TypeVar("T")


class Kind(StrEnum):
    """What happens at a call."""

    FAIL = "fails before"
    FAIL_AFTER = "succeeds and reports failure"
    FAIL_ON = "fails, and all after it"
    DELAY = "is delayed, others work meanwhile"
    KILL = "kills before"
    KILL_AFTER = "kills after"


# What only asks has done nothing that a failure after it, or a kill after it, could hide.
OF_QUESTIONS = (Kind.FAIL, Kind.FAIL_ON, Kind.DELAY, Kind.KILL)
OF_CHANGES = tuple(Kind)


class Killed(BaseException):
    """The process ends here: nothing of it may catch this, and nothing of it runs on."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a call comes from, and what it is."""

    what: str
    lines: tuple[tuple[str, int], ...]
    changes: bool

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return OF_CHANGES if self.changes else OF_QUESTIONS

    def __str__(self) -> str:
        return f"{self.what} at {' > '.join(f'{name}:{line}' for name, line in self.lines)}"


@dataclass
class Process:
    """One process as the faults see it: the sites that it came by, and the one where something happens."""

    site: Site | None = None
    kind: Kind | None = None
    meanwhile: Callable[[bool], None] = lambda _apart: None
    sites: dict[Site, None] = field(default_factory=dict)
    happened: bool = False
    _dead: bool = False
    _failing: bool = False
    _elsewhere: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(
        self,
        what: str,
        do: Callable[[], T],
        fail: Callable[[], BaseException],
        *,
        changes: bool,
        apart: bool = True,
    ) -> T:
        """A call, and what happens at it; `apart` is one during which others can work."""
        if self._elsewhere:
            return do()
        if self._dead:
            raise Killed
        if self._failing:
            raise fail()
        site = Site(what, _lines(), changes)
        with self._lock:
            self.sites.setdefault(site)
            here = site == self.site and not self.happened
            self.happened = self.happened or here
        return self._happen(do, fail, apart=apart) if here else do()

    def _happen(self, do: Callable[[], T], fail: Callable[[], BaseException], *, apart: bool) -> T:
        match self.kind:
            case Kind.FAIL:
                raise fail()
            case Kind.FAIL_ON:
                self._failing = True
                raise fail()
            case Kind.KILL:
                self._dead = True
                raise Killed
            case Kind.DELAY:
                with self.out():
                    self.meanwhile(apart)
        result = do()
        if self.kind is Kind.FAIL_AFTER:
            raise fail()
        if self.kind is Kind.KILL_AFTER:
            self._dead = True
            raise Killed
        return result

    @contextmanager
    def out(self) -> Iterator[None]:
        """What runs in the block is not this process."""
        self._elsewhere = True
        try:
            yield
        finally:
            self._elsewhere = False


def _lines() -> tuple[tuple[str, int], ...]:
    frame, found = sys._getframe(2), list[tuple[str, int]]()
    while frame is not None:
        package, _, name = frame.f_code.co_filename.rpartition("/mv_assets/")
        if package:
            found.append((name, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(reversed(found))


def io_error() -> OSError:
    return OSError(errno.EIO, "Input/output error")


class Upload(io.RawIOBase):
    """A file of a store, of which each write is a call; it is there as a whole once it is closed."""

    def __init__(self, process: Process, opened: Any) -> None:
        self._process = process
        self._opened = opened
        super().__init__()

    def __del__(self) -> None:
        """Who is killed closes nothing: then it never was there."""

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self._process.call(
            "write", lambda: self._opened.write(bytes(content)) or len(content), io_error, changes=True
        )

    def close(self) -> None:
        if not self.closed:
            self._process.call("close", self._opened.close, io_error, changes=True)
            super().close()


class Raw(io.FileIO):
    """A file of which each write is a call: one that is cut short leaves what was written before."""

    def __init__(self, process: Process, path: str) -> None:
        self._process = process
        super().__init__(path, "w")

    def __del__(self) -> None:
        # Who is killed does not close what it has open.
        self.close()

    def write(self, content: Any) -> int:
        real = super().write
        return self._process.call("write", lambda: real(content), io_error, changes=True)
