"""Who is published first, where there is not enough time for all: a sensor has a minute."""

from __future__ import annotations

from typing import Any

import pytest

from mv_assets.defs.publication import _said
from mv_assets.publish.errors import NotPublished
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes

NAMES = ("a", "b", "c")


@pytest.fixture
def made(iceberg_lake: PublishedLakes) -> PublishedLake:
    made = iceberg_lake(*map(view, NAMES))
    made.days(0, 1)
    made.run()
    return made


def change(made: PublishedLake) -> None:
    for name in NAMES:
        made.manager.force(made.catalog.view(name).declaration, [0], "it looks odd")


def published(made: PublishedLake) -> list[str]:
    """One view: then the time is over."""
    return [each.view for each in made.publisher.publish(made.publisher.behind(), enough=lambda: True)]


def test_views_that_change_all_the_time_take_turns(made: PublishedLake) -> None:
    found = []
    for _ in range(6):
        change(made)
        made.later(1_000)
        found += published(made)
    assert found == [*NAMES, *NAMES]


def test_a_target_that_does_not_answer_holds_up_no_other_views(made: PublishedLake) -> None:
    class Hanging:
        """That of one view: each attempt takes all the time there is."""

        def __init__(self, target: Any) -> None:
            self._target = target

        def __getattr__(self, name: str) -> Any:
            if name == "shown" and self._target.view == "a":
                raise NotPublished("a", "marts.a", "timed out")
            return getattr(self._target, name)

    made.wrap = Hanging
    assert [published(made) for _ in range(4)] == [["a"], ["b"], ["c"], ["a"]]
    change(made)
    assert sorted(published(made) + published(made)) == ["b", "c"]
    made.wrap = lambda target: target
    assert [published(made) for _ in range(2)] == [["a"], []]
    assert made.snapshot("a").troubles == ()


def test_a_view_that_is_being_copied_holds_up_no_other(
    iceberg_lake: PublishedLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = iceberg_lake(view("a"), view("b"))
    for number in range(0, 15, 3):
        made.days(*range(number, number + 3))
        made.run()
    made.published("a")
    made.published("b")
    for number in range(0, 15, 3):
        made.write(f"late-{number}.parquet", [day(number)])
    made.run()
    made.published("b")
    # As where each holds more than is copied at once.
    monkeypatch.setattr("mv_assets.maintain.compaction._portions", lambda found: [(each,) for each in found])
    made.manager.force(made.catalog.view("b").declaration, [0], "it looks odd")
    for copied in range(4):
        behind, is_over = made.publisher.behind(), iter([False, *[True] * 9])
        assert behind[0] == "a"
        done = made.publisher.publish(behind, enough=is_over.__next__)
        found = {each.view: each for each in done}
        assert found["a"].copying
        assert "rows are copied" in _said(found["a"])
        assert ("b" in found) == (copied == 0)
        assert made.publisher.behind() == ["a"]
    assert made.publisher.publish(["a", "b"])[0].is_new
    made.check_published("a")
