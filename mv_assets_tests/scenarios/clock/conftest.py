from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mv_assets.config import MaterializedView
from mv_assets.tables.open import open_table
from mv_assets_tests.support.warehouse_lake import DuckDbLake, clocked_lakes


@dataclass
class Machine(DuckDbLake):
    """A deployment that goes by the database's clock, on a machine whose own is so many ms ahead of it."""

    ahead: int = 0

    def declare(self, *views: MaterializedView) -> None:
        super().declare(*views)
        self.tables = {
            name: open_table(table, self.store.database, lambda: self.clock() + self.ahead)
            for name, table in self.catalog.tables.items()
        }

    def changed_at(self, name: str) -> int:
        """When a file was written, by the machine's clock."""
        return (self.folder / "events" / name).stat().st_ctime_ns // 1_000_000

    def set_machine(self, now: int) -> None:
        """Let the machine's clock show a time; the database's, which is never the same, follows."""
        self.clock.now = now - self.ahead


Machines = Callable[..., Machine]


@pytest.fixture
def machine(tmp_path: Path, state_url: str) -> Iterator[Machines]:
    """Machines on one lake and one state; what they call VALID is right at the end."""
    with clocked_lakes(tmp_path, state_url, Machine) as make:
        yield make
