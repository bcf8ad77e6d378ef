"""Every error belongs to its layer and has a code that programs can go by."""

from __future__ import annotations

import pkgutil
from collections import Counter
from importlib import import_module

import mv_assets
from mv_assets.errors import MvError


def every_error() -> list[type[MvError]]:
    """All errors of the package, in whichever module they are."""
    for module in pkgutil.walk_packages(mv_assets.__path__, "mv_assets."):
        # To load what Dagster loads is to make the demo.
        if module.name != "mv_assets.definitions":
            import_module(module.name)
    found, left = list[type[MvError]](), [MvError]
    while left:
        error = left.pop()
        found.append(error)
        left += error.__subclasses__()
    return [error for error in found if error.__module__.startswith("mv_assets.")]


def test_every_error_has_a_code_of_its_own() -> None:
    codes = Counter(error.code for error in every_error())
    assert [code for code, count in codes.items() if count > 1] == []
    assert all("code" in vars(error) for error in every_error())


def test_every_error_that_others_meet_is_in_its_layers_errors() -> None:
    elsewhere = {
        f"{error.__module__}.{error.__name__}"
        for error in every_error()
        if not error.__module__.endswith(".errors") and not error.__name__.startswith("_")
    }
    assert elsewhere == set()


def test_codes_that_programs_go_by_stay() -> None:
    codes = {error.code for error in every_error()}
    assert codes >= {"fenced", "table-unreadable", "table-refused", "state-unavailable", "engine-unavailable"}
    assert codes >= {"project-error", "query-refused", "job-failed", "source-moving", "out-of-coverage"}
