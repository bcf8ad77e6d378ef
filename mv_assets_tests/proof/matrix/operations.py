"""What the engine does for its users, operation by operation, each with what makes work for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mv_assets.buckets import DAY
from mv_assets.config import MaterializedView
from mv_assets.errors import MvError
from mv_assets.maintain.audit import audit
from mv_assets.plan.scope import prepare
from mv_assets.state import health
from mv_assets.state.leases import Leases
from mv_assets.state.model import Mark, State
from mv_assets_tests.proof.matrix.world import VIEWS
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.warehouse_lake import GRACE, DuckDbLake

Step = Callable[[DuckDbLake], None]
OTHERWISE = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, max(x) AS x FROM events GROUP BY ALL"
CHANGED = (view(sql=OTHERWISE), VIEWS[1])


def nothing(_lake: DuckDbLake) -> None:
    """No need for anything."""


def anything(_lake: DuckDbLake) -> bool:
    """Nothing was promised."""
    return True


@dataclass(frozen=True)
class Operation:
    """`before` makes the work, `do` is what faults happen to, and `after` is what a person would do again.

    `done` tells, if `do` reported no error, whether it did what it said.
    """

    do: Step
    before: Step = nothing
    after: Step = nothing
    done: Callable[[DuckDbLake], bool] = anything
    views: tuple[MaterializedView, ...] = VIEWS
    cold: bool = False
    # Without, nobody operations_of while a call of it takes long: what is left to compare would need Spark.
    delays: bool = True


def change(lake: DuckDbLake) -> None:
    """Late, corrected and deleted files, a false alarm, and a file that can't be read."""
    lake.remove("day-0.parquet")
    lake.damage("day-1.parquet")
    lake.write("late-2.parquet", [day(2)], 1)
    lake.write("late-2.parquet", [day(2)], 1, table="payments")
    lake.manager.mark_stale(lake.catalog.view("v").declaration, {3 * DAY: Mark("a false alarm")})


def mend(lake: DuckDbLake) -> None:
    lake.days(1)


def look(lake: DuckDbLake) -> None:
    for found in lake.watch().round(whole=True).values():
        if isinstance(found, MvError):
            raise found


def refresh(lake: DuckDbLake) -> None:
    for report in lake.run().values():
        if report.error is not None:
            raise report.error


def looked(lake: DuckDbLake) -> bool:
    return lake.states(0, 1, 2) == "SSS" or _says_more(lake)


def refreshed(lake: DuckDbLake) -> bool:
    return lake.states(*range(4)) == "VSVV" or _says_more(lake)


def _says_more(lake: DuckDbLake) -> bool:
    """A file or a bucket that the fault was about is said to be broken or to have failed, beside day 1's."""
    snapshot = lake.snapshot()
    return len(health.broken(snapshot)) > 1 or len(health.failures(snapshot)) > 1


def overwrite_many(lake: DuckDbLake) -> None:
    """Three of four days of one generation are computed again: it is mostly dead."""
    for name in ("v", "j"):
        lake.manager.force(lake.catalog.view(name).declaration, None, "all in one")
    lake.run()
    lake.overwrite(0, 1, 2)
    lake.later(GRACE)


def collect(lake: DuckDbLake) -> None:
    for name in ("v", "j"):
        for error in lake.garbage().gc(name).errors:
            raise error


def collected(lake: DuckDbLake) -> bool:
    return not lake.garbage().would("v").deleted


def force(lake: DuckDbLake) -> None:
    declared = lake.catalog.view("v")
    prepare(lake.manager, lake.store, declared, [-2 * DAY, 0, 3 * DAY], lake.clock(), force=True, extend=True)


def forced(lake: DuckDbLake) -> bool:
    rows = [lake.row(number) for number in (-2, 0, 3)]
    return all(row is not None and row.forced for row in rows)


def read(lake: DuckDbLake) -> None:
    with Leases(lake.store).pin("v") as pinned:
        named = {row.generation for row in pinned.snapshot.rows.values() if row.generation is not None}
        for files in lake.store.files("v", named).values():
            for file in files:
                lake.plain.open(file.path).close()


def lose_all_files(lake: DuckDbLake) -> None:
    for path in (lake.folder / "warehouse" / "v").rglob("*.parquet"):
        path.unlink()


def check_files(lake: DuckDbLake) -> None:
    audit(lake.open(), lake.catalog.view("v"), None)


def take_over(lake: DuckDbLake) -> None:
    lake.declare(*CHANGED)
    look(lake)


def taken_over(lake: DuckDbLake) -> bool:
    return lake.store.summary("v").header.definition == lake.catalog.view("v").definition


def adopt(lake: DuckDbLake) -> None:
    lake.manager.adopt("v", lake.catalog.view("v").definition)


def overtaken(lake: DuckDbLake) -> None:
    lake.declare(*CHANGED)
    lake.run()
    lake.declare(*VIEWS)


def drop(lake: DuckDbLake) -> None:
    lake.manager.drop("v")


def vacant(lake: DuckDbLake) -> bool:
    return all(lake.state(number) is State.VACANT for number in range(4))


OPERATIONS = {
    "first refresh": Operation(refresh, done=lambda lake: lake.states(*range(4)) == "VVVV", cold=True),
    "look": Operation(look, change, mend, looked),
    "refresh": Operation(refresh, change, mend, refreshed),
    "forced mark": Operation(force, done=forced),
    "take over": Operation(take_over, done=taken_over, views=CHANGED),
    "adopt": Operation(adopt, overtaken, adopt, taken_over),
    "drop": Operation(drop, done=vacant),
    "gc and compaction": Operation(collect, overwrite_many, done=collected),
    "read": Operation(read),
    "audit": Operation(
        check_files,
        lose_all_files,
        check_files,
        delays=False,
        done=lambda lake: lake.states(*range(4)) == "SSSS",
    ),
}
