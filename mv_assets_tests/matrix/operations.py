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
from mv_assets_tests.lake import day, view
from mv_assets_tests.matrix.world import VIEWS
from mv_assets_tests.refresh.yard import GRACE, Yard

Step = Callable[[Yard], None]
OTHERWISE = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, max(x) AS x FROM events GROUP BY ALL"
CHANGED = (view(sql=OTHERWISE), VIEWS[1])


def nothing(_yard: Yard) -> None:
    """No need for anything."""


def anything(_yard: Yard) -> bool:
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
    done: Callable[[Yard], bool] = anything
    views: tuple[MaterializedView, ...] = VIEWS
    cold: bool = False
    # Without, nobody works while a call of it takes long: what is left to compare would need Spark.
    delays: bool = True


def change(yard: Yard) -> None:
    """Late, corrected and deleted files, a false alarm, and a file that can't be read."""
    yard.remove("day-0.parquet")
    yard.damage("day-1.parquet")
    yard.write("late-2.parquet", [day(2)], 1)
    yard.manager.mark_stale(yard.catalog.view("v").declaration, {3 * DAY: Mark("a false alarm")})


def mend(yard: Yard) -> None:
    yard.days(1)


def look(yard: Yard) -> None:
    for found in yard.watch().round(whole=True).values():
        if isinstance(found, MvError):
            raise found


def refresh(yard: Yard) -> None:
    for report in yard.run().values():
        if report.error is not None:
            raise report.error


def looked(yard: Yard) -> bool:
    return yard.states(0, 1, 2) == "SSS" or _says_more(yard)


def refreshed(yard: Yard) -> bool:
    return yard.states(*range(4)) == "VSVV" or _says_more(yard)


def _says_more(yard: Yard) -> bool:
    """A file or a bucket that the fault was about is said to be broken or to have failed, beside day 1's."""
    snapshot = yard.snapshot()
    return len(health.broken(snapshot)) > 1 or len(health.failures(snapshot)) > 1


def overwrite_many(yard: Yard) -> None:
    """Three of four days of one generation are computed again: it is mostly dead."""
    for name in ("v", "j"):
        yard.manager.force(yard.catalog.view(name).declaration, None, "all in one")
    yard.run()
    yard.overwrite(0, 1, 2)
    yard.later(GRACE)


def collect(yard: Yard) -> None:
    for name in ("v", "j"):
        for error in yard.garbage().gc(name).errors:
            raise error


def collected(yard: Yard) -> bool:
    return not yard.garbage().would("v").deleted


def force(yard: Yard) -> None:
    declared = yard.catalog.view("v")
    prepare(yard.manager, yard.store, declared, [-2 * DAY, 0, 3 * DAY], yard.clock(), force=True, extend=True)


def forced(yard: Yard) -> bool:
    rows = [yard.row(number) for number in (-2, 0, 3)]
    return all(row is not None and row.forced for row in rows)


def read(yard: Yard) -> None:
    with Leases(yard.store).pin("v") as pinned:
        named = {row.generation for row in pinned.snapshot.rows.values() if row.generation is not None}
        for files in yard.store.files("v", named).values():
            for file in files:
                yard.plain.open(file.path).close()


def lose_all_files(yard: Yard) -> None:
    for path in (yard.folder / "warehouse" / "v").rglob("*.parquet"):
        path.unlink()


def check_files(yard: Yard) -> None:
    audit(yard.open(), yard.catalog.view("v"), None)


def take_over(yard: Yard) -> None:
    yard.declare(*CHANGED)
    look(yard)


def taken_over(yard: Yard) -> bool:
    return yard.store.pulse("v").header.definition == yard.catalog.view("v").definition


def adopt(yard: Yard) -> None:
    yard.manager.adopt("v", yard.catalog.view("v").definition)


def overtaken(yard: Yard) -> None:
    yard.declare(*CHANGED)
    yard.run()
    yard.declare(*VIEWS)


def drop(yard: Yard) -> None:
    yard.manager.drop("v")


def vacant(yard: Yard) -> bool:
    return all(yard.state(number) is State.VACANT for number in range(4))


OPERATIONS = {
    "first refresh": Operation(refresh, done=lambda yard: yard.states(*range(4)) == "VVVV", cold=True),
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
        done=lambda yard: yard.states(*range(4)) == "SSSS",
    ),
}
