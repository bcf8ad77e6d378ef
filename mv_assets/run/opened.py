"""A project opened: all that work is carried out with and on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mv_assets.observe.inputs import ViewInputs
from mv_assets.observe.maps import Maps, StoredMaps
from mv_assets.observe.second_look import SecondLooks
from mv_assets.observe.watch import Watch
from mv_assets.progress import NO_PROGRESS, Progress
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles
from mv_assets.tables.listing import Table
from mv_assets.tables.open import open_table
from mv_assets.views.catalog import Catalog

if TYPE_CHECKING:
    from mv_assets.run.sources import Sources


@dataclass(frozen=True, slots=True)
class OpenProject:
    """A project's tables, its state, its Spark and its warehouse, and what is made of them."""

    catalog: Catalog
    tables: Mapping[str, Table]
    store: Store
    manager: PartitionManager
    engine: Engine
    warehouse: Warehouse
    clock: Callable[[], int]

    @property
    def registry(self) -> Registry:
        return Registry(self.store)

    @property
    def leases(self) -> Leases:
        return Leases(self.store)

    @property
    def troubles(self) -> Troubles:
        return Troubles(self.store, self.clock)

    @property
    def sources(self) -> Sources:
        from mv_assets.run.sources import Sources  # noqa: PLC0415 - pyspark, where there is something to do

        return Sources(self.catalog, self.tables, self.store, self.warehouse)

    def watch(self, progress: Progress = NO_PROGRESS, *, maps: Maps | None = None) -> Watch:
        """Looks that are written into the maps, or go to others."""
        maps = maps or StoredMaps(self.store, self.manager)
        return Watch(self.catalog, self.tables, maps, self.clock, progress)

    def second_looks(self, before: ViewInputs) -> SecondLooks:
        return SecondLooks(before, self.tables, self.store, self.clock)


def open_project(
    catalog: Catalog, store: Store, manager: PartitionManager, engine: Engine, machine: Callable[[], int]
) -> OpenProject:
    """The project by the map's clock; its files are dated by the machine's."""
    tables = {name: open_table(table, store.database, machine) for name, table in catalog.tables.items()}
    warehouse = Warehouse.of(catalog.project.warehouse)
    return OpenProject(catalog, tables, store, manager, engine, warehouse, manager.clock)
