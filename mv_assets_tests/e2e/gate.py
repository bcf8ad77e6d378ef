"""A gate before Spark: while it is closed, whoever asks Spark to compute something waits."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Thread

_CHUNK = 65_536
# Where a connection first asks for it, the name of the call is written out.
_COMPUTE = b"/ExecutePlan"


class Gate:
    """Passes on what is sent, but holds what is to be computed while it is closed.

    So a run can be held in the middle: Spark answers all its questions, and never does the work.
    """

    def __init__(self, server: str) -> None:
        host, _, port = server.removeprefix("sc://").rpartition(":")
        self._behind = (host, int(port))
        self._open = Event()
        self._open.set()
        self._holding = Event()
        self._when: Callable[[], bool] = lambda: True
        self._listening = socket.create_server(("127.0.0.1", 0))
        Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"sc://127.0.0.1:{self._listening.getsockname()[1]}"

    @property
    def is_holding(self) -> bool:
        """Whether somebody waits, or has waited since it was closed."""
        return self._holding.is_set()

    @contextmanager
    def closed(self, when: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """Closed from the moment on that a condition holds."""
        self._when = when
        self._holding.clear()
        self._open.clear()
        try:
            yield
        finally:
            self.open()

    def open(self) -> None:
        self._open.set()

    def shut_down(self) -> None:
        self.open()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                before, _ = self._listening.accept()
                behind = socket.create_connection(self._behind)
                Thread(target=self._ask, args=(before, behind), daemon=True).start()
                Thread(target=_pass_on, args=(behind, before), daemon=True).start()

    def _ask(self, source: socket.socket, target: socket.socket) -> None:
        last, computes = b"", False
        with closing(source), closing(target), suppress(OSError):
            while chunk := source.recv(_CHUNK):
                computes = computes or _COMPUTE in last + chunk
                last = chunk[-len(_COMPUTE) :]
                if computes and not self._open.is_set() and self._when():
                    self._holding.set()
                    self._open.wait()
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with closing(source), closing(target), suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
