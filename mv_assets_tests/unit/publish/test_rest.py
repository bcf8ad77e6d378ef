"""An Iceberg REST catalog as the target, spoken to over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.types import StringType

from mv_assets.config import IcebergTarget, Target
from mv_assets.state.model import Doing
from mv_assets.tables.iceberg import catalogs
from mv_assets_tests.support.iceberg_rest import RestCatalogServer, rest_catalog
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.published_lake import IcebergReader, PublishedLake, Reader, rows_of
from mv_assets_tests.support.warehouse_lake import clocked_lakes


@dataclass
class RestLake(PublishedLake):
    """Published to a server; whoever reads asks it by itself."""

    server: RestCatalogServer | None = None

    @property
    def target(self) -> Target:
        assert self.server is not None
        catalog = {"catalog": self.server.properties, "namespace": "marts", "keep": f"{self.keep}ms"}
        return IcebergTarget.model_validate(catalog)

    @property
    def reader(self) -> Reader:
        assert self.server is not None
        return IcebergReader(self.server.properties)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCatalogServer]:
    with rest_catalog(tmp_path / "rest") as opened:
        yield opened


@pytest.fixture
def made(tmp_path: Path, server: RestCatalogServer) -> Iterator[RestLake]:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", RestLake, server=server) as make:
        lake = make()
        lake.days(0, 1, 2)
        lake.run()
        yield lake


def test_all_of_a_view_is_published_over_http(made: RestLake) -> None:
    made.published()
    assert len(made.check_published()) == 6
    made.overwrite(1)
    made.published()
    made.check_published()
    made.reader.scribble()
    assert "somebody else's" in str(made.publish(look=True).publication)
    made.check_published()
    made.later(made.keep + 1)
    made.overwrite(2)
    made.collect()
    made.check_published()
    made.manager.drop("v")
    assert made.publisher.withdraw("v") is None
    assert not made.reader.exists()
    assert not made.reader.exists("v__buckets")


def test_a_peer_that_is_faster_is_not_published_over(made: RestLake) -> None:
    made.published()
    made.overwrite(1)

    class Late:
        """Before its commit, a peer's."""

        def __init__(self, target: object) -> None:
            self._target = target

        def __getattr__(self, name: str) -> object:
            if name == "commit":
                made.wrap = lambda target: target
                made.published()
            return getattr(self._target, name)

    made.wrap = Late
    made.published()
    made.check_published()
    versions = [version for version in made.reader.snapshots().values() if version is not None]
    assert versions == sorted(set(versions))


def test_columns_that_somebody_adds_at_the_same_time_are_not_taken_for_ours(made: RestLake) -> None:
    """Servers number schemas by themselves: a snapshot that names the next one would name theirs."""
    made.published()
    with_sum = "SELECT date_trunc('hour', at) AS hour, sum(x) AS total FROM events GROUP BY ALL"
    made.declare(view(sql=with_sum))
    made.run()

    class Late:
        """Before its commit, somebody's column."""

        def __init__(self, target: object) -> None:
            self._target = target

        def __getattr__(self, name: str) -> object:
            if name == "commit" and "note" not in made.reader.rows().column_names:
                with made.reader.table().update_schema() as update:  # type: ignore[attr-defined]
                    update.add_column("note", StringType())
            return getattr(self._target, name)

    made.wrap = Late
    made.published()
    made.check_published()
    assert made.publish(look=True).error is None
    assert made.reader.rows().column_names == ["hour", "total"]


def test_whoever_may_not_make_namespaces_writes_tables_in_one(
    made: RestLake, server: RestCatalogServer
) -> None:
    server.catalog.create_namespace("marts")
    server.may_create_namespaces = False
    made.published()
    made.check_published()


def test_a_token_that_is_refused_is_said_without_the_token(made: RestLake, server: RestCatalogServer) -> None:
    server.token, server.given = "another", "hunter2-of-mine"
    error = made.publish().error
    assert error is not None
    assert "is not known here" in str(error)
    assert "hunter2" not in str(error)
    assert "hunter2" not in made.snapshot().troubles[0].what


def test_a_server_that_does_not_answer_is_not_waited_for(
    made: RestLake, server: RestCatalogServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.published()
    before = made.check_published()
    monkeypatch.setattr(catalogs, "_ANSWERING_S", 0.1)
    server.stalled.set()
    made.overwrite(1)
    found = made.publish()
    assert "timed out" in str(found.error)
    assert [trouble.doing for trouble in made.snapshot().troubles] == [Doing.PUBLISH]
    server.stalled.clear()
    assert rows_of(made.reader.rows()) == before
    monkeypatch.undo()
    made.published()
    made.check_published()
    assert made.snapshot().troubles == ()
