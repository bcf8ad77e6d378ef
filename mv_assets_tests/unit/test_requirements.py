"""The ranges of what mv_assets runs on, and the versions that `make check-oldest` tests them by."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

CHECKOUT = Path(__file__).parents[2]
# Of these, none is asked for by who uses it; the last is of others here.
TOOLS = ("dev", "docs", "demo")


def declared() -> dict[str, Requirement]:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = (found for name, found in project["optional-dependencies"].items() if name not in TOOLS)
    texts = [*project["dependencies"], *(text for found in extras for text in found)]
    return {(requirement := Requirement(text)).name: requirement for text in texts}


def pins() -> dict[str, Version]:
    lines = (CHECKOUT / ".ci" / "oldest.txt").read_text().splitlines()
    found = (Requirement(line) for line in lines if not line.startswith("#"))
    return {pin.name: Version(only.version) for pin in found for only in pin.specifier}


def test_the_lowest_version_of_every_range_is_tested() -> None:
    lowest = {
        name: Version(bound.version)
        for name, requirement in declared().items()
        for bound in requirement.specifier
        if bound.operator == ">="
    }
    assert lowest == pins()


def test_nothing_is_pinned() -> None:
    pinned = [str(found) for found in declared().values() if {"==", "~=", "==="} & operators(found)]
    assert pinned == []


def operators(requirement: Requirement) -> set[str]:
    return {bound.operator for bound in requirement.specifier}
