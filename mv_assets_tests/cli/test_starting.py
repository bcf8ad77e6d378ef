"""Commands that compute nothing load nothing that computes. Modules are counted: seconds are a machine's."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from click import Command
from click.testing import CliRunner

from mv_assets.cli import main
from mv_assets.cli.main import _COMMANDS
from mv_assets_tests.cli.test_gc import Depot

ENGINES = ("pyspark", "dagster", "pandas", "deltalake", "pyiceberg")
FILES = ("pyarrow", "numpy")
STATE = ("sqlalchemy", "sqlglot", "pydantic")
# With each what it does not need.
COMMANDS = {
    "--help": (*ENGINES, *FILES, *STATE),
    "--version": (*ENGINES, *FILES, *STATE),
    "status": (*ENGINES, *FILES),
    "mark daily --bucket 2024-01-01": (*ENGINES, *FILES),
    "adopt daily": (*ENGINES, *FILES),
    "project schema": (*ENGINES, *FILES),
    "project check": ENGINES,
    "plan": ENGINES,
    "explain daily 2024-01-01": ENGINES,
    "gc --dry-run": ENGINES,
    "gc": ENGINES,
    "drop daily --yes": ENGINES,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_loads_only_what_it_needs(tmp_path: Path, command: str) -> None:
    depot = Depot(tmp_path)
    depot.day(1)
    depot.fill()
    arguments = ["--project", str(depot.file), *command.split()]
    script = (
        "import sys; from mv_assets.cli import main\n"
        f"code = main({arguments!r}, standalone_mode=False)\n"
        f"print(code, *(name for name in {COMMANDS[command]!r} if name in sys.modules), file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)  # noqa: S603, PLW1510
    assert ran.stderr.splitlines()[-1:] in (["0"], ["None"]), ran.stderr


@pytest.mark.parametrize("name", _COMMANDS)
def test_help_says_of_a_command_what_it_says_itself(name: str) -> None:
    command: Command = getattr(import_module(f"mv_assets.cli.{name}"), name)
    said = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert f" {name} {command.get_short_help_str(limit=200)}" in said
