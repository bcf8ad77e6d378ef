"""What is there now: each table is asked once, whatever it says; a view below each time, as maps move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mv_assets.observe.maps import StoredViews
from mv_assets.observe.present import Present, Tables
from mv_assets.state.model import Mark
from mv_assets.state.store import Store
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.listing import Listing, OnRead, Table, TableVersion, unnoticed
from mv_assets.tables.upstream import version_of
from mv_assets_tests.support.lake import Lake, day, view
from mv_assets_tests.support.memory_table import DAY

JOINED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e JOIN zones z ON e.x = z.x GROUP BY ALL
"""
DAILY = "SELECT date_trunc('day', hour) AS hour, sum(n) AS n FROM v GROUP BY ALL"


@dataclass
class Noted:
    """A table that notes what it is asked; with an error it says nothing else."""

    of: Table
    asked: list[str] = field(default_factory=list)
    error: TableUnreadable | None = None

    @property
    def name(self) -> str:
        return self.of.name

    def current(self) -> TableVersion:
        self.asked.append("version")
        if self.error is not None:
            raise self.error
        return _NotedVersion(self.of.current(), self.asked)

    def columns(
        self, wanted: frozenset[str] = frozenset(), *, everywhere: bool = False
    ) -> dict[str, str] | None:
        return self.of.columns(wanted, everywhere=everywhere)

    def refused(self) -> Mapping[str, str]:
        return self.of.refused()


@dataclass
class _NotedVersion:
    of: TableVersion
    asked: list[str]

    @property
    def version(self) -> str:
        return self.of.version

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        self.asked.append("listing")
        return self.of.listing(on_read)


@dataclass
class Scene:
    """A lake whose tables note what they are asked."""

    lake: Lake
    tables: dict[str, Noted]

    def present(self) -> Present:
        return Present(Tables(self.tables), StoredViews(self.lake.store, self.lake.clock))

    def asked(self) -> dict[str, list[str]]:
        """What each table was asked since."""
        found = {name: list(table.asked) for name, table in self.tables.items() if table.asked}
        for table in self.tables.values():
            table.asked.clear()
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    store = Store(f"sqlite:///{tmp_path}/state.db")
    views = [view(), view("joined", sql=JOINED, dimensions=["zones"]), view("w", sql=DAILY, base="v")]
    made = Lake(tmp_path / "lake", store, views, dimensions=["zones"])
    made.days(0, 1)
    made.write("zones.parquet", [day(0)], table="zones")
    made.converge()
    yield Scene(made, {name: Noted(table) for name, table in made.tables.items()})
    store.close()


def test_each_table_is_asked_once_for_all_views(scene: Scene) -> None:
    present, views = scene.present(), scene.lake.catalog.views
    versions = [present.version_of(views[name]) for name in ("v", "joined")]
    assert scene.asked() == {"events": ["version"], "zones": ["version"]}
    inputs = [present.inputs(views[name]) for name in ("v", "joined", "joined")]
    assert [each.version for each in inputs[:2]] == versions
    assert inputs[0].base is inputs[1].base
    assert scene.asked() == {"events": ["listing"], "zones": ["listing"]}


def test_an_error_is_an_answer_and_concerns_one_table_only(scene: Scene) -> None:
    scene.tables["zones"].error = TableUnreadable("zones", "/lake/zones", "it is gone")
    present, views = scene.present(), scene.lake.catalog.views
    for ask in (present.version_of, present.inputs, present.inputs):
        with pytest.raises(TableUnreadable, match="gone"):
            ask(views["joined"])
    assert len(present.inputs(views["v"]).base) == 2
    assert scene.asked() == {"events": ["version", "listing"], "zones": ["version"]}


def test_inputs_of_which_nothing_changed_are_the_same_ones_and_nothing_is_listed(scene: Scene) -> None:
    before = scene.present().inputs(scene.lake.catalog.views["joined"])
    scene.asked()
    assert scene.present().again(before) is before
    assert scene.asked() == {"events": ["version"], "zones": ["version"]}


def test_only_what_changed_is_listed_again(scene: Scene) -> None:
    before = scene.present().inputs(scene.lake.catalog.views["joined"])
    scene.asked()
    scene.lake.write("late.parquet", [day(1)])
    now = scene.present().again(before)
    assert (len(now.base), now.dimensions["zones"] is before.dimensions["zones"]) == (3, True)
    assert scene.asked() == {"events": ["version", "listing"], "zones": ["version"]}


def test_a_view_below_is_what_its_map_says_by_now(scene: Scene) -> None:
    lake, present, above = scene.lake, scene.present(), scene.lake.catalog.views["w"]
    before = present.inputs(above)
    assert present.again(before) is before
    assert len(before.base) == 2
    lake.manager.mark_stale(lake.catalog.view("v").declaration, {DAY: Mark("changed")})
    now = present.again(before)
    assert (len(now.base), now.base.version) == (1, version_of(lake.store.summary("v").header))
    assert present.version_of(above) == now.version != before.version
    assert scene.asked() == {}
