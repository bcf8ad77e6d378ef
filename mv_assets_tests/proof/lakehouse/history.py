"""A Delta or Iceberg table with views on it, to which things happen by a seed, while it is refreshed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow.compute as pc
from sqlalchemy import delete

from mv_assets.config import MaterializedView
from mv_assets.maintain.audit import audit
from mv_assets.maintain.garbage import Garbage
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.run.warehouse import Warehouse
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store, schema
from mv_assets_tests.proof.lakehouse.delta import DeltaHistory
from mv_assets_tests.proof.lakehouse.iceberg import IcebergHistory
from mv_assets_tests.proof.lakehouse.mapped import MappedDeltaHistory
from mv_assets_tests.proof.lakehouse.rows import Changing
from mv_assets_tests.support.lake import view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake

TABLES: dict[str, Callable[[Path, random.Random], Changing]] = {
    "delta": DeltaHistory,
    "mapped delta": MappedDeltaHistory,
    "iceberg": IcebergHistory,
}
_DAILY = """
    SELECT date_trunc('day', at) AS day, x, count(*) AS n, sum(v) AS v, min(id) AS first FROM events
    GROUP BY ALL
"""
_SINGLE = "SELECT at, id, x, v, c FROM events WHERE v < 6 OR id % 2 = 0"
_RANKED = """
    SELECT at, id, row_number() OVER (PARTITION BY x ORDER BY at, id) AS place, count(*) OVER () AS of_all
    FROM events
"""
_ABOVE = "SELECT day, sum(n) AS n, count(*) AS keys, min(first) AS first FROM daily GROUP BY ALL"
VIEWS: tuple[MaterializedView, ...] = (
    view("daily", sql=_DAILY, time_column="day"),
    view("single", sql=_SINGLE, time_column="at"),
    view("ranked", sql=_RANKED, time_column="at", scope="bucket"),
    view("above", base="daily", sql=_ABOVE, time_column="day"),
)


@dataclass
class _Lake(UncheckedLake):
    """Its rows are what the history says."""

    history: Changing | None = None

    def tell(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        assert self.history is not None
        rows = self.history.rows()
        # What has no time is in no bucket.
        connection.register(name, rows.filter(pc.is_valid(rows["at"])))


class History:
    """Everything follows from the seed."""

    def __init__(self, kind: str, seed: int, folder: Path, engine: Engine) -> None:
        self._name, self._random = f"{kind}, seed {seed}", random.Random(f"{kind} {seed}")
        (folder / "lake").mkdir()
        self._folder, self._engine = folder, engine
        self._format = {"format": "iceberg", "unsafe": True} if kind == "iceberg" else {"format": "delta"}
        self.table = TABLES[kind](folder / "lake" / "events", self._random)
        self.table.forget()
        self.story = self.table.story
        self.compared = self.compactions = 0
        self._open()

    def _open(self) -> None:
        self._store = Store(f"sqlite:///{self._folder}/state.db")
        self._lake = _Lake(
            self._folder / "lake",
            self._store,
            VIEWS,
            table=self._format,
            engine=self._engine,
            history=self.table,
        )

    def close(self) -> None:
        self._store.close()
        self.table.close()

    def play(self, steps: int) -> None:
        """A history, from a first refresh to a last compaction, and an audit."""
        try:
            self.refresh()
            for _ in range(steps):
                self.step()
            self.compact()
            self.audit()
        except BaseException as error:
            error.add_note(f"{self._name}: " + "; ".join(self.story))
            raise

    def step(self) -> None:
        """The table changes, and something is done about it."""
        for _ in range(self._random.choice((1, 1, 2, 4))):
            self.table.change()
        done: dict[Callable[[], None], int] = {
            self.refresh: 6, self.look: 2, self.compact: 3, self.force: 2, self.collect: 1, self.forget: 2,
            self.restart: 1, self.ask: 1,
        }  # fmt: skip
        [act] = self._random.choices(list(done), list(done.values()))
        act()

    def refresh(self) -> None:
        """All that is due is VALID then, and right."""
        self._say("refresh")
        self._computed()
        self._lake.check()
        self.compared += sum(len(self._lake.snapshot(each.name).rows) for each in VIEWS)

    def _computed(self) -> int:
        """A refresh; how many buckets it had to do with."""
        reports = self._lake.run()
        for name, report in reports.items():
            assert report.error is None, f"{name}: {report.error}"
            assert not report.wrong, f"{name}: {report.wrong.failed} {report.wrong.of_view()}"
        return sum(len(report.results) for report in reports.values())

    def look(self) -> None:
        """What changed is marked, and nothing is computed; what is VALID still is right."""
        self._say("look")
        self._lake.watch().round()
        self._lake.check(complete=False)

    def compact(self) -> None:
        """Of buckets that are VALID, none is computed again."""
        self.refresh()
        if self.table.compact() is not False:
            self._say("compacted")
            assert self._computed() == 0, "the same rows are in other files, and buckets were computed"
            self._lake.check()
            self.compactions += 1

    def force(self) -> None:
        name = self._random.choice(VIEWS).name
        buckets = sorted(self._lake.snapshot(name).rows)
        self._say(f"force {name}")
        self._lake.manager.force(
            self._lake.catalog.view(name).declaration, [self._random.choice(buckets)], "a person"
        )

    def collect(self) -> None:
        self._say("gc")
        garbage = Garbage(self._store, self._lake.manager, Warehouse(self._lake.warehouse.root))
        for each in VIEWS:
            assert not garbage.gc(each.name).errors
        self._lake.watch().round()
        self._lake.check(complete=False)

    def forget(self) -> None:
        """Another process, and perhaps without what others kept for it."""
        self._say("forget")
        self.table.forget()
        if self._random.random() < 0.5:
            with self._store.database.write() as connection:
                connection.execute(delete(schema.remembered))
                connection.execute(delete(schema.manifest))
        self.refresh()

    def restart(self) -> None:
        """Another deployment goes on with the same state."""
        self._say("restart")
        self.table.forget()
        self._store.close()
        self._open()
        self.refresh()

    def ask(self) -> None:
        """A strict answer is of the table as it is now, whatever is VALID."""
        self._say("ask")
        sql = "SELECT count(*), sum(id), count(c) FROM events WHERE at IS NOT NULL"
        [found] = Answers(self._lake.open()).answer(Question(sql)).frame.collect()
        rows = self.table.rows()
        rows = rows.filter(pc.is_valid(rows["at"]))
        expected = (len(rows), pc.sum(rows["id"]).as_py(), pc.count(rows["c"]).as_py())
        assert tuple(found) == expected

    def audit(self) -> None:
        for each in VIEWS:
            found = audit(self._lake.open(), self._lake.catalog.view(each.name), None)
            wrong = [finding for finding in found if str(finding.verdict) != "equal"]
            assert not wrong, f"{each.name}: {wrong}"

    def _say(self, what: str) -> None:
        self.story.append(what)
