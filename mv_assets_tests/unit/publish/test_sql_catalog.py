"""A SQL catalog on PostgreSQL as the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mv_assets.config import IcebergTarget, Target
from mv_assets.tables.iceberg import catalogs
from mv_assets_tests.support.published_lake import PublishedLake
from mv_assets_tests.support.warehouse_lake import clocked_lakes


@dataclass
class SqlLake(PublishedLake):
    place: str = ""

    @property
    def target(self) -> Target:
        return IcebergTarget(catalog={"type": "sql", "uri": self.place}, namespace="marts")


@pytest.fixture
def made(tmp_path: Path, empty_postgres: str) -> Iterator[SqlLake]:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", SqlLake, place=empty_postgres) as make:
        lake = make()
        lake.days(0, 1, 2)
        lake.run()
        yield lake
    # The fixture knows only our own tables.
    engine = create_engine(empty_postgres)
    with engine.begin() as connection:
        for name in ("iceberg_tables", "iceberg_namespace_properties"):
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
    engine.dispose()


def test_a_peer_that_is_frozen_amid_its_commit_is_not_waited_for(
    made: SqlLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.published()
    made.overwrite(1)
    monkeypatch.setattr(catalogs, "_ANSWERING_S", 1)
    engine = create_engine(made.place)
    with engine.begin() as peer:
        peer.execute(text("UPDATE iceberg_tables SET metadata_location = metadata_location"))
        error = made.publish().error
    engine.dispose()
    assert "lock timeout" in str(error)
    assert len(made.snapshot().troubles) == 1
    made.published()
    made.check_published()
    assert made.snapshot().troubles == ()
