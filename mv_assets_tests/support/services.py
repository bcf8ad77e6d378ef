"""The services of a deployment as docs/deploy has them for systemd: what each starts, and with what."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Template

DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
# Where the page has everything installed.
INSTALLED = "/opt/mv_assets/bin"


def variables() -> dict[str, str]:
    """Those of the environment file."""
    lines = (DEPLOY / "systemd" / "environment").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def started_by(unit: Path, known: Mapping[str, str]) -> list[str]:
    """The command that a unit starts, as systemd makes it of its line."""
    [line] = re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)
    return [Template(word).substitute(known) for word in shlex.split(line)]
