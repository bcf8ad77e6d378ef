from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mv_assets.project import MaterializedView
from mv_assets.state.store import Store
from mv_assets.tables.opening import open_table
from mv_assets_tests.harness import Clock
from mv_assets_tests.lake import view
from mv_assets_tests.refresh.yard import Yard


@dataclass
class Machine(Yard):
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
    clock = Clock(time.time_ns() // 1_000_000 + 3_600_000)
    opened, made = Store(state_url, now=clock), list[Machine]()

    def make(*views: MaterializedView, **options: Any) -> Machine:
        made.append(Machine(tmp_path / "lake", opened, views or [view()], clock=clock, **options))
        return made[-1]

    yield make
    for each in made:
        each.watch().round(whole=True)
        each.check(complete=False)
    opened.close()
