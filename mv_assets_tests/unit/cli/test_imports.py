"""Commands that compute nothing load nothing that computes. Modules are counted: seconds are a machine's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from click import Command, Context, Group
from click.testing import CliRunner

from mv_assets.cli import main
from mv_assets.cli.main import _COMMANDS
from mv_assets_tests.unit.cli.test_gc import Depot

ENGINES = ("pyspark", "dagster", "pandas", "deltalake", "pyiceberg")
FILES = ("pyarrow", "numpy")
STATE = ("sqlalchemy", "sqlglot", "pydantic")
# With each what it does not need.
COMMANDS = {
    "--help": (*ENGINES, *FILES, *STATE),
    "--version": (*ENGINES, *FILES, *STATE),
    "status": (*ENGINES, *FILES),
    "metrics": (*ENGINES, *FILES),
    "mark daily --bucket 2024-01-01": (*ENGINES, *FILES),
    "adopt daily": (*ENGINES, *FILES),
    "project schema": (*ENGINES, *FILES),
    "project check": ENGINES,
    "plan": ENGINES,
    "explain daily 2024-01-01": ENGINES,
    "refresh": ENGINES,
    "gc --dry-run": ENGINES,
    "gc": ENGINES,
    "publish": ENGINES,
    "drop daily --yes": ENGINES,
}


@pytest.mark.processes
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


def every_command(command: Command = main, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(command, Group):
        context = Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from every_command(found, *names, name)


@pytest.mark.parametrize("names", [pytest.param(each, id=" ".join(each)) for each in every_command()])
def test_help_of_every_command_and_group_has_an_example(names: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*names, "--help"])
    assert result.exit_code == 0
    example = result.output.partition("Example")[2]
    assert "mv-assets " in example
    # Of the command itself, whatever options of others stand before it.
    for name in names:
        assert re.search(rf"mv-assets .*\b{name}\b", example)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "else the demo's, which is written to .mv_assets on first use"),
        ("gc", "Of the named views; by default of all, including those no longer in the project."),
        ("mark", "The next refresh, or the sensor, computes it."),
        ("adopt", "DEFINITION is the hash that `status` or the error message names."),
        ("query", "json: one object per line."),
    ],
)
def test_help_answers_what_people_ask_next(command: str, said: str) -> None:
    output = CliRunner().invoke(main, [*command.split(), "--help"]).output
    assert said in " ".join(output.split())


@pytest.mark.parametrize("name", _COMMANDS)
def test_help_says_of_a_command_what_it_says_itself(name: str) -> None:
    command: Command = getattr(import_module(f"mv_assets.cli.commands.{name}"), name)
    said = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    assert f" {name} {command.get_short_help_str(limit=200)}" in said
