"""What is used of Dagster without being public: all in one place, and there in the installed version."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import dagster as dg
import pytest

import mv_assets
from mv_assets import dagster_internals

PRIVATE = re.compile(r"^\s*(?:from|import) (dagster\w*\._\S*)", re.MULTILINE)


@pytest.mark.parametrize("name", dagster_internals.CALLED)
def test_it_is_there(name: str) -> None:
    assert resolve_name(name) is not None


def test_the_default_launcher_remembers_its_runs() -> None:
    """By that it ends them all when it is disposed of."""
    assert isinstance(dg.DefaultRunLauncher()._run_ids, set)


def test_nothing_else_imports_what_is_private() -> None:
    package = Path(mv_assets.__file__).parent
    found = {
        str(file.relative_to(package)) for file in package.rglob("*.py") if PRIVATE.search(file.read_text())
    }
    assert found == {"dagster_internals.py"}
