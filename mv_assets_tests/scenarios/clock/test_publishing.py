"""What is published is kept for its readers as long as is said, also where the clock of all is set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mv_assets.buckets import DAY, HOUR
from mv_assets_tests.support.published_lake import KEEP, PublishedLake, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE, clocked_lakes


@pytest.fixture(params=["iceberg", "delta"])
def made(request: pytest.FixtureRequest, tmp_path: Path, state_url: str) -> Iterator[PublishedLake]:
    """Two days, published once."""
    with clocked_lakes(tmp_path, state_url, PublishedLake, format=request.param) as make:
        lake: PublishedLake = make()
        lake.days(0, 1)
        lake.run()
        lake.published()
        yield lake


def publish_another(made: PublishedLake) -> None:
    made.overwrite(0)
    made.published()
    made.check_published()


def kept(made: PublishedLake) -> set[str]:
    """The generations that are there for nobody but readers of earlier snapshots."""
    return made.registered().keys() - set(made.named().values())


@pytest.mark.parametrize("step", [-HOUR, 365 * DAY], ids=["an hour back", "a year ahead"])
def test_what_is_no_longer_shown_goes_whatever_the_clock_did_while_it_was_published(
    made: PublishedLake, step: int
) -> None:
    made.overwrite(0)
    made.later(step)
    made.published()
    made.later(-step)
    publish_another(made)
    assert kept(made)
    for _ in range(3):
        made.later(KEEP + GRACE)
        made.collect()
    assert not kept(made)
    made.check_published()


def test_a_clock_that_is_set_back_takes_nothing_from_a_reader(made: PublishedLake) -> None:
    [first] = [each for each, version in made.reader.snapshots().items() if version is not None]
    rows = rows_of(made.reader.rows(snapshot=first))
    publish_another(made)
    for step in (-HOUR, KEEP - HOUR, -2 * HOUR):
        made.later(step)
        made.collect()
        assert rows_of(made.reader.rows(snapshot=first)) == rows
    publish_another(made)


@pytest.mark.parametrize("step", [-HOUR, DAY], ids=["an hour back", "a day ahead"])
def test_a_map_is_published_whole_whatever_the_clock_does_meanwhile(made: PublishedLake, step: int) -> None:
    def opened(target: object) -> object:
        made.later(step)
        return target

    made.wrap = opened
    publish_another(made)
    assert not made.publisher.behind()
