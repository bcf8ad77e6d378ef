"""The files to copy for production: each is checked by the tool of its kind, and they fit together."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from mv_assets.config import read
from mv_assets_tests.scenarios.docs.pages import DOCS, ROOT
from mv_assets_tests.support.services import DEPLOY, INSTALLED, UNITS, started_by, variables

TOOLS = Path(sys.executable).parent
SERVICES: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    assert _said(TOOLS / "hadolint", "Dockerfile") == ""


def test_the_compose_file_is_one_by_its_schema() -> None:
    _said(TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze here")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    """With the programs of this environment: systemd wants them to be there."""
    for unit in UNITS:
        (tmp_path / unit.name).write_text(unit.read_text().replace(INSTALLED, str(TOOLS)))
    said = _said("systemd-analyze", "verify", *(str(tmp_path / unit.name) for unit in UNITS))
    # What it says of the machine's own units names other files.
    assert [line for line in said.splitlines() if "mv-assets" in line] == []


def _said(*command: str | Path) -> str:
    ran = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_containers_start_what_the_units_start() -> None:
    """Apart from addresses, of which each container has one of its own."""
    commands = {name: service["command"] for name, service in SERVICES.items() if "command" in service}
    for unit in UNITS:
        ours = _core(started_by(unit, variables()))
        assert _core(shlex.split(commands.pop(unit.stem.removeprefix("mv-assets-")))) == ours
    assert commands == {}


def _core(command: list[str]) -> list[str]:
    """The program and its words, without hosts."""
    program, *words = command
    text = re.sub(r"(--conf )?\S*([hH]ost|[aA]ddress|bindAddress)[= ]\S+ ?", "", " ".join(words))
    return [Path(program).name, *text.split()]


def test_the_image_is_made_of_files_that_are_there() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert copied
    assert [name for line in copied for name in line.split() if not (ROOT / name).exists()] == []


def test_the_variables_that_the_files_ask_for_are_set_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set(re.findall(r"\$\{(\w+)\}", (DEPLOY / "project.yaml").read_text()))
    by_dagster = "".join((DEPLOY / name).read_text() for name in ("dagster.yaml", "workspace.yaml"))
    asked_by_dagster = set(re.findall(r"\{env: (\w+)\}", by_dagster))
    assert asked
    assert asked_by_dagster
    assert asked | asked_by_dagster <= set(variables())
    assert asked | asked_by_dagster <= set(SERVICES["code"]["environment"])
    [pod] = yaml.safe_load((DEPLOY / "values.yaml").read_text())["dagster-user-deployments"]["deployments"]
    # Dagster's own settings are the chart's.
    assert asked - {each["name"] for each in pod["env"]} == {"STATE_PASSWORD"}
    for name, value in variables().items():
        monkeypatch.setenv(name, value)
    assert read(DEPLOY / "project.yaml").mistakes == []


def test_the_page_names_every_file() -> None:
    page = (DOCS / "production.md").read_text()
    there = {path.name for path in DEPLOY.rglob("*") if path.is_file()} - {unit.name for unit in UNITS}
    assert [name for name in sorted(there) if f"[{name}]" not in page] == []
    started = re.findall(r"systemctl enable --now (.+)", page)
    assert [set(line.split()) for line in started] == [{unit.stem for unit in UNITS}]


def test_units_are_of_one_mould() -> None:
    """What is the same for all is said once in each, and is the same."""
    found = []
    for unit in UNITS:
        parsed = ConfigParser(interpolation=None, strict=False)
        parsed.optionxform = str  # type: ignore[assignment,method-assign]
        parsed.read(unit)
        own = ("ExecStart", "SuccessExitStatus", "TimeoutStopSec")
        found.append({key: value for key, value in parsed["Service"].items() if key not in own})
    assert all(each == found[0] for each in found)
