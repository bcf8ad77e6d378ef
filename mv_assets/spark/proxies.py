"""Processes of this machine talk to each other directly, whatever proxy the environment names."""

from __future__ import annotations

from collections.abc import Mapping

LOCAL = ("127.0.0.1", "localhost")
_ALL = "*"
_EITHER = ("no_proxy", "NO_PROXY")
# What gRPC asks before the others, and it alone: of those it does not know `*`, nor capitals.
_GRPC = "no_grpc_proxy"


def direct(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep proxies out of what is local; what they say already stays."""
    given = {name: environment[name] for name in (*_EITHER, _GRPC) if environment.get(name)}
    usual = given.get("no_proxy") or given.get("NO_PROXY", "")
    found = {name: _with_local(given.get(name, usual)) for name in (*_EITHER, _GRPC)}
    # Alone it means all there is, and in a list nothing.
    return found | {name: _ALL for name in _EITHER if given.get(name, usual).strip() == _ALL}


def _with_local(hosts: str) -> str:
    named = [host for host in (each.strip() for each in hosts.split(",")) if host]
    return ",".join([*named, *(host for host in LOCAL if host not in named)])
