"""What `make` would install, and when."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
INSTALL = "pip install --disable-pip-version-check --editable"
RUN = f"{INSTALL} '.[demo]'"
TOOLS = f"{INSTALL} '.[postgres,delta,iceberg,dev]'"
SCAFFOLDS = "create-dagster=={v} dagster-dg-cli=={v}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
        os.utime(tmp_path / name, (1_000, 1_000))
    (tmp_path / ".venv").mkdir()
    # That of the documents is a place of its own, which is not asked about here.
    (tmp_path / ".venv-docs").mkdir()
    (tmp_path / ".venv-docs" / ".ready").touch()
    return tmp_path


def installs(folder: Path, target: str, *made: str) -> list[str]:
    """What a target would install where some stamps have been made, one after the other."""
    for at, stamp in enumerate(made):
        (folder / ".venv" / stamp).touch()
        os.utime(folder / ".venv" / stamp, (2_000 + at, 2_000 + at))
    said = recipe(folder, target).splitlines()
    return [line.partition("/")[2].partition("/")[2] for line in said if "pip install" in line]


def recipe(folder: Path, *target: str) -> str:
    """What a target would run."""
    return subprocess.run(  # noqa: S603 - our own targets
        ["make", "--dry-run", *target],  # noqa: S607 - the system's
        cwd=folder,
        # What was given to the `make` that runs the tests is not for this one.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_dev_installs_what_it_runs_on_and_the_tests_add_to_it(checkout: Path) -> None:
    assert installs(checkout, "dev") == [RUN]
    *before, scaffolds = installs(checkout, "test")
    assert before == [RUN, TOOLS]
    assert SCAFFOLDS in scaffolds
    assert installs(checkout, "test", ".ready") == [TOOLS, scaffolds]
    assert installs(checkout, "dev", ".ready") == []


@pytest.mark.parametrize("target", ["dev", "quick", "test", "check", "soak", "bench"])
def test_nothing_is_installed_twice(checkout: Path, target: str) -> None:
    assert installs(checkout, target, ".ready", ".tools") == []
    # But what is asked for may change.
    os.utime(checkout / "pyproject.toml", (3_000, 3_000))
    assert installs(checkout, target)[0] == RUN


def test_another_python_is_tried_in_an_environment_of_its_own(checkout: Path) -> None:
    said = recipe(checkout, "check-python", "PYTHON_VERSION=3.12").splitlines()
    assert "python3.12 -m venv .venv-3.12" in said
    installed = [line for line in said if line.startswith(".venv-3.12/bin/pip install")]
    assert "--editable '.[postgres,delta,iceberg,dev]'" in installed[0]
    assert SCAFFOLDS in installed[1]
    quick, with_spark = (line for line in said if line.startswith(".venv-3.12/bin/pytest"))
    assert quick.split("mv_assets_tests", 1)[1] in recipe(checkout, "quick")
    assert "-m 'spark and " in with_spark


@pytest.mark.parametrize("tool", ["java", "chromium"])
def test_quick_asks_for_nothing_that_has_to_be_installed_by_hand(checkout: Path, tool: str) -> None:
    assert tool in recipe(checkout, "test")
    assert tool not in recipe(checkout, "quick")
