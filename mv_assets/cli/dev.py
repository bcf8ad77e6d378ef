"""`mv-assets dev`: Dagster's UI and daemon in the foreground."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import click

_LOOPBACK = "127.0.0.1"


@click.command()
@click.option(
    "--port", default=3000, show_default=True, help="Port of the UI, or the next free one after it."
)
def dev(port: int) -> None:
    """Start Dagster's UI and daemon here; Ctrl-C stops both."""
    if not Path("workspace.yaml").exists():
        raise click.UsageError("there is no workspace.yaml here; run this in the folder of the project")
    free = _free_port(port)
    click.echo(f"Dagster's UI: http://{_LOOPBACK}:{free}", err=True)
    dagster = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-w",
        "workspace.yaml",
        "-h",
        _LOOPBACK,
        "-p",
        str(free),
    ]
    os.execv(sys.executable, dagster)  # noqa: S606 - the arguments are all ours


def _free_port(first: int) -> int:
    for port in range(first, first + 100):
        with socket.socket() as probe:
            if probe.connect_ex((_LOOPBACK, port)) != 0:
                return port
    raise click.ClickException(f"no free port from {first} to {first + 99}; name another with --port")
