"""Ctrl-C, where it must not come at any moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def listening(handler: _Handler | None = None) -> Iterator[None]:
    """Have Ctrl-C go to a handler for the time of the block, and after it to whom it went before.

    Whatever the block puts in its place.
    """
    before = signal.getsignal(signal.SIGINT)
    # Elsewhere nobody is interrupted.
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return
    signal.signal(signal.SIGINT, handler or before)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def ignored() -> None:
    """Have no Ctrl-C come any more."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def deferred() -> Iterator[None]:
    """Have Ctrl-C come at the end of the block."""
    came = list[int]()
    with listening(lambda number, _frame: came.append(number)):
        yield
    if came:
        signal.raise_signal(signal.SIGINT)
