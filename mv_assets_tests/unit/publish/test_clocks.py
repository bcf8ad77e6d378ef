"""Clocks that are set, or not the same: the history of a published table goes forward all the same."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

import pytest
from pyiceberg.table import update

from mv_assets.buckets import DAY
from mv_assets_tests.support.published_lake import IcebergReader, PublishedLake, PublishedLakes

AHEAD_S = 3_600
TOLERATED_MS = 60_000


@pytest.fixture
def made(iceberg_lake: PublishedLakes) -> PublishedLake:
    made = iceberg_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    return made


def set_back(patch: pytest.MonkeyPatch) -> None:
    """This machine's clock: an hour of what was written is still to come."""

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) - timedelta(seconds=AHEAD_S)

    now = time.time
    patch.setattr(time, "time", lambda: now() - AHEAD_S)
    patch.setattr(update, "datetime", Earlier)


def check_forward(made: PublishedLake) -> None:
    """As libraries in Java ask it of each table before they read it."""
    for name in ("v", "v__buckets"):
        metadata = made.reader.table(name).metadata  # type: ignore[attr-defined]
        for log in (metadata.snapshot_log, metadata.metadata_log):
            times = [*(each.timestamp_ms for each in log), metadata.last_updated_ms]
            assert all(later - earlier >= -TOLERATED_MS for earlier, later in pairwise(times))


def test_what_is_published_after_a_clock_was_set_back_comes_later(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(monkeypatch)
    for number in range(3):
        made.overwrite(number)
        made.published()
        made.check_published()
        check_forward(made)


def test_snapshots_are_forgotten_once_the_clock_is_there_again(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.overwrite(1)
    made.published()
    made.later(2 * DAY)
    with monkeypatch.context() as patch:
        set_back(patch)
        assert made.publisher.expire(["v"]) == []
        check_forward(made)
        assert len(made.reader.snapshots()) == 2
    assert made.publisher.expire(["v"]) == []
    assert len(made.reader.snapshots()) == 1
    made.check_published()


def test_what_somebody_wrote_by_a_clock_that_is_ahead_is_said_and_then_replaced(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(made.reader, IcebergReader)
    made.reader.scribble()
    with monkeypatch.context() as patch:
        set_back(patch)
        for number in range(2):
            assert "which is still to come here" in str(made.publish(look=True).error)
            check_forward(made)
            made.overwrite(number)
    made.published()
    made.check_published()
    check_forward(made)
