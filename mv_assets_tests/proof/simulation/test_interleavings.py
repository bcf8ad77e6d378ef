"""Every schedule of each model, over the production rules and manager."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets_tests.proof.simulation.explorer import Explored, explore
from mv_assets_tests.proof.simulation.models import MODELS, WHOLE

_DEEP_BOUND = 2_000_000

Report = Callable[[str, object], None]


# Ten thousand states and more each; the second lot several times as many.
_LARGE = dict.fromkeys(
    (
        "two writers, warm, and looks",
        "gc and readers",
        "crashes",
        "freezing",
        "drops and whole-view marks",
        "dimension and upstream",
        "two tables, freezing",
        "publishing and gc",
        "publishing and compaction",
    ),
    pytest.mark.slow,
) | dict.fromkeys(
    (
        "two writers, cold",
        "compaction",
        "two definitions",
        "three buckets and failures",
        "freezing and two writers",
        "two publishers",
    ),
    pytest.mark.deep,
)


@pytest.mark.parametrize("model", [pytest.param(model, marks=_LARGE.get(model, ())) for model in MODELS])
def test_no_schedule_breaks_an_invariant(model: str, record_property: Report) -> None:
    quick, _ = MODELS[model]
    explored = explore(quick())
    record_property("proved", f"{model}: {explored}")
    assert explored.complete


@pytest.mark.deep
@pytest.mark.parametrize("model", WHOLE)
def test_no_schedule_of_a_larger_model_breaks_an_invariant(model: str) -> None:
    explored = explore(WHOLE[model]())
    print(f"\n{model}: {explored}")  # noqa: T201 - as below
    assert explored.complete


@pytest.mark.deep
@pytest.mark.parametrize("model", MODELS)
def test_no_longer_schedule_breaks_an_invariant(model: str) -> None:
    _, deep = MODELS[model]
    explored: Explored = explore(deep(), _DEEP_BOUND)
    print(f"\n{model}: {explored}")  # noqa: T201 - minutes pass between two of these
    assert explored.states > 100_000
