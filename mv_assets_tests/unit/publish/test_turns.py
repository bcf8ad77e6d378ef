"""Who is published first, where there is not enough time for all: a sensor has a minute."""

from __future__ import annotations

from typing import Any

import pytest

from mv_assets.publish.errors import NotPublished
from mv_assets_tests.support.lake import view
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
