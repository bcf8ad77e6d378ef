"""File systems without room: of the warehouse, of the state, and of Spark's temporary files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mv_assets_tests.scenarios.full_disk import run


@pytest.mark.slow
def test_a_full_file_system_is_the_views_error_and_heals_when_there_is_room(tmp_path: Path) -> None:
    said = run(tmp_path / "lake")
    full = {step.removesuffix(" full"): each for step, each in said.items() if step.endswith(" full")}
    rest = {step: each for step, each in said.items() if not step.endswith(" full")}
    assert [each.outcomes for each in rest.values()] == [["committed"]] * len(rest)
    assert [each.error for each in rest.values()] == ["NoneType"] * len(rest)
    # No bucket is blamed, and each says what to do.
    assert [each.failures for each in said.values()] == [[]] * len(said)
    # Without a state there is not even a plan.
    assert {name: each.outcomes for name, each in full.items()} == {
        name: [] if name == "state" else ["planned again"] for name in full
    }
    assert {name: each.error for name, each in full.items()} == {
        name: "StateNotWritable" if name == "state" else "OutOfSpace" for name in full
    }
    assert {"warehouse", "temp"} <= full.keys()
    assert [name for name, each in full.items() if "make room" not in each.message] == []
