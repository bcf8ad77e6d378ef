"""Where a command's words go may be closed, full or of no width: none of it is worth a traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

import click

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


@contextmanager
def usable() -> Iterator[None]:
    """For the time of a command; it ends with a sentence if what it says can't be written."""
    _prepare()
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (*_FULL, errno.EPIPE):
            raise
        _give_up(error)


def _prepare() -> None:
    # Python has none for what is closed, and its number would go to the next file that is opened.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    # Else all is cut to nothing.
    if not os.environ.get("COLUMNS", "").strip(" 0"):
        os.environ.pop("COLUMNS", None)


def _give_up(error: OSError) -> None:
    # What is left of it would be tried once more at exit.
    with _nowhere() as nowhere, suppress(OSError):
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    if error.errno in _FULL:
        with suppress(OSError):
            click.echo(
                f"the output can't be written: {error.strerror}; make room, or send it elsewhere", err=True
            )
    sys.exit(1)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - for as long as the process lasts
