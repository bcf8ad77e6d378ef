"""Who withdraws an Iceberg table, while others do so too, or publish it."""

from __future__ import annotations

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from mv_assets.publish.iceberg.table import PublishedTable
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes
from mv_assets_tests.unit.publish.test_delta import meanwhile


@pytest.fixture
def made(iceberg_lake: PublishedLakes) -> PublishedLake:
    made = iceberg_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    return made


def test_of_two_who_withdraw_a_table_both_are_fine(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peer() -> None:
        assert made.publisher.withdraw("v") is None

    made.manager.drop("v")
    meanwhile(monkeypatch, SqlCatalog, "drop_table", peer, after=False)
    assert made.publisher.withdraw("v") is None
    assert not made.reader.exists()
    assert not made.reader.exists("v__buckets")
    assert made.snapshot().troubles == ()


@pytest.mark.parametrize(
    ("owner", "method"), [(PublishedTable, "_read_manifests"), (SqlCatalog, "commit_table")]
)
def test_who_publishes_while_a_view_is_dropped_has_no_trouble(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch, owner: type, method: str
) -> None:
    def peer() -> None:
        made.manager.drop("v")
        assert made.publisher.withdraw("v") is None

    made.overwrite(0)
    meanwhile(monkeypatch, owner, method, peer, after=False)
    assert made.publish().error is None
    assert not made.reader.exists()
    assert made.snapshot().troubles == ()
    made.run()
    made.published()
    made.check_published()
