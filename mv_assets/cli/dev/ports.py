"""Ports of this machine, and no other's."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

from mv_assets.cli.errors import NoPort, PortForbidden

LOOPBACK = "127.0.0.1"
_TRIED = 100
_LAST = 65_535
_ANSWERS_WITHIN_S = 0.5
# The kernel's state of a socket that is listened at.
_LISTEN = "0A"


def free_port(first: int = 0) -> int:
    """A port that nobody listens at: `first` or the next free one; any for 0.

    Raises:
        NoPort: all of them are taken.
        PortForbidden: the system keeps it for others.

    """
    last = min(first + _TRIED - 1, _LAST) if first else first
    for port in range(first, last + 1):
        try:
            return _bound(port)
        except PermissionError:
            raise PortForbidden(port) from None
        except OSError:
            continue
    raise NoPort(first, last)


def _bound(port: int) -> int:
    with socket.socket() as probe:
        # As servers do: what a server has just left is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((LOOPBACK, port))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection((LOOPBACK, port), _ANSWERS_WITHIN_S):
        return True
    return False


def sockets(port: int) -> set[str] | None:
    """Those listened at there, by the names that descriptors have; None if the system does not say."""
    found: set[str] | None = None
    # A JVM listens at 127.0.0.1 by its name of version 6.
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            _header, *lines = (Path("/proc/self/net") / table).read_text().splitlines()
            rows = [line.split() for line in lines]
            found = found or set()
            found |= {f"socket:[{row[9]}]" for row in rows if _at(row[1]) == port and row[3] == _LISTEN}
    return found


def _at(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
