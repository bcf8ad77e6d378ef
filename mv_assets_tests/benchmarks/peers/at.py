"""`python at.py DAY COMMAND ...`: a script of this environment, run as if it were noon of that day."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib.metadata import entry_points

import time_machine

day, name, *arguments = sys.argv[1:]
(script,) = entry_points(group="console_scripts", name=name)
sys.argv = [name, *arguments]
with time_machine.travel(datetime.fromisoformat(f"{day}T12:00").replace(tzinfo=UTC), tick=True):
    sys.exit(script.load()())
