"""Who listens where, as the kernel tells it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

_LISTENS = "0A"


def listening(pids: Iterable[int]) -> set[tuple[IPv4Address | IPv6Address, int]]:
    """The addresses and ports at which some processes wait for connections."""
    found = set()
    for pid in pids:
        held = _sockets(pid)
        for table in ("tcp", "tcp6"):
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                    local, state, inode = (line.split()[at] for at in (1, 3, 9))
                    if state == _LISTENS and inode in held:
                        address, _, port = local.partition(":")
                        found.add((_address(address), int(port, 16)))
    return found


def _sockets(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            # The one that lists them is gone by now.
            with suppress(OSError):
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink())):
                    found.add(match[1])
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """The kernel writes each four bytes as a number of this machine."""
    words = [int(text[at : at + 8], 16) for at in range(0, len(text), 8)]
    packed = b"".join(socket.htonl(word).to_bytes(4) for word in words)
    found = ip_address(packed)
    # A Java that listens at an IPv4 address does so by its IPv6 name.
    return getattr(found, "ipv4_mapped", None) or found
