"""What the engine does for its users, operation by operation, each with what makes work for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import DAY
from mv_assets.config import MaterializedView, StateDatabase
from mv_assets.errors import MvError
from mv_assets.maintain.audit import audit
from mv_assets.plan.scope import prepare
from mv_assets.project import Project
from mv_assets.state import health
from mv_assets.state.leases import Leases
from mv_assets.state.model import Mark, State
from mv_assets_tests.proof.matrix.lakes import LakehouseLake
from mv_assets_tests.proof.matrix.world import VIEWS, expire, publish
from mv_assets_tests.support.lake import day, view
from mv_assets_tests.support.published_lake import KEEP, PublishedLake
from mv_assets_tests.support.warehouse_lake import GRACE, DuckDbLake

Step = Callable[[DuckDbLake], None]
OTHERWISE = "SELECT date_trunc('hour', at) AS hour, count(*) AS n, max(x) AS x FROM events GROUP BY ALL"
ALL = tuple(each.name for each in VIEWS)
CHANGED = (view(sql=OTHERWISE), *VIEWS[1:])


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
    # Those that it leaves, if they are others.
    views: tuple[MaterializedView, ...] = ()
    cold: bool = False
    # As `World` has it.
    kind: str = ""
    # Without, nobody works while a call of it takes long: what is left to compare would need Spark.
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


def _says_more(lake: DuckDbLake, than: int = 1) -> bool:
    """A file or a bucket that the fault was about is said to be broken or to have failed, beside day 1's."""
    snapshot = lake.snapshot()
    return len(health.broken(snapshot)) > than or len(health.failures(snapshot)) > than


def delete_rows(lake: DuckDbLake) -> None:
    """Single rows, in each way that the format has; and a late file."""
    assert isinstance(lake, LakehouseLake)
    lake.delete_rows()
    lake.write("late", [day(3)], 1)


def deletes_seen(lake: DuckDbLake) -> bool:
    return lake.states(*range(4)) == "VSSS" or _says_more(lake, 0)


def deletes_computed(lake: DuckDbLake) -> bool:
    return lake.states(*range(4)) == "VVVV" or _says_more(lake, 0)


def compact(lake: DuckDbLake) -> None:
    lake.compact([])


def followed(lake: DuckDbLake) -> bool:
    """Nothing is to be computed, and the rows name the files that are there."""
    recorded = {segment.name for found in lake.store.recorded("v", [0, DAY]).values() for segment in found}
    listed = {segment.name for segment in lake.tables["events"].current().listing().segments()}
    return lake.states(*range(4)) == "VVVV" and recorded <= listed


def overwrite_many(lake: DuckDbLake) -> None:
    """Three of four days of one generation are computed again: it is mostly dead."""
    for name in lake.catalog.views:
        lake.manager.force(lake.catalog.view(name).declaration, None, "all in one")
    lake.run()
    lake.overwrite(0, 1, 2)
    lake.later(GRACE)


def collect(lake: DuckDbLake) -> None:
    for name in lake.catalog.views:
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


def publish_and_overwrite(lake: DuckDbLake) -> None:
    """What is published has files that hold rows which are no longer current."""
    publish(lake)
    overwrite_many(lake)


def published(lake: DuckDbLake) -> bool:
    assert isinstance(lake, PublishedLake)
    return not lake.publisher.behind() and all(lake.check_published(name) for name in ALL)


def publish_and_wait(lake: DuckDbLake) -> None:
    """What was published first is older than anybody should read."""
    publish_and_overwrite(lake)
    publish(lake)
    lake.later(KEEP + GRACE)


def scribble(lake: DuckDbLake) -> None:
    """Somebody writes into what is published; of some views nothing has changed since, of others it has."""
    publish(lake)
    lake.write("late.parquet", [day(2)], 1, table="payments")
    lake.run()
    assert isinstance(lake, PublishedLake)
    for name in ALL:
        lake.reader.scribble(name)
        lake.reader.scribble(f"{name}__buckets")


def widen(lake: DuckDbLake) -> None:
    """One more column, in one bucket of the view by a function; files of the others stay published."""
    publish(lake)
    rows = {"at": pa.array([day(3)], pa.timestamp("us", "UTC")), "x": [1], "y": [1]}
    pq.write_table(pa.table(rows), lake.folder / "events" / "wider.parquet")
    lake.run()


def give_up(lake: DuckDbLake) -> None:
    expire(lake)
    collect(lake)


def withdraw(lake: DuckDbLake) -> None:
    """What `mv-assets drop` does."""
    assert isinstance(lake, PublishedLake)
    for name in ALL:
        lake.manager.drop(name)
        error = lake.publisher.withdraw(name)
        if error is not None:
            raise error
        lake.garbage().collect(name)


def withdrawn(lake: DuckDbLake) -> bool:
    assert isinstance(lake, PublishedLake)
    return vacant(lake) and not any(lake.reader.exists(name) for name in ALL)


def lose(lake: DuckDbLake) -> None:
    """A file is gone, and another one has come beside one that stays."""
    lake.remove("day-0.parquet")
    lake.write("late-2.parquet", [day(2)], 1)


def put_back(lake: DuckDbLake) -> None:
    lake.days(0)


def frozen(lake: DuckDbLake) -> bool:
    """What is lost is kept; what came is seen, or the fault has broken a file."""
    row = lake.row(0, "f")
    assert row is not None
    return (row.frozen and lake.states(0, 1, 2, 3, name="f") == "VVSV") or _says_more(lake, 0)


def frozen_and_back(lake: DuckDbLake) -> None:
    lose(lake)
    look(lake)
    put_back(lake)


def thawed(lake: DuckDbLake) -> bool:
    row = lake.row(0, "f")
    assert row is not None
    return not row.frozen or _says_more(lake, 0)


def stop_early(lake: DuckDbLake) -> None:
    """The batch of one more day, whose last row is before its end."""
    lake.write("early.parquet", [day(4, 0), day(4, 6)], 4)


def closed(lake: DuckDbLake) -> bool:
    return lake.state(4, "c") is State.VALID or _says_more(lake, 0)


def seen_to_end(lake: DuckDbLake) -> bool:
    """The look has noted up to where the data reaches, and that the day is over."""
    header = lake.snapshot("c").header
    return header.closed == 5 * DAY or _says_more(lake, 0)


def measure(lake: DuckDbLake) -> None:
    """What a monitoring system asks: it is told what is so, or that nothing can be said."""
    url = lake.store.database._engine.url.render_as_string(hide_password=False)
    project = lake.project.model_copy(update={"state": StateDatabase(url=url)})
    with Project.of(replace(lake.catalog, project=project), who="test") as opened:
        metrics = opened.metrics()
    if metrics.error is not None:
        raise metrics.error
    told = metrics.text()
    for name in ALL:
        for expected in (
            f'mv_assets_view_buckets{{state="valid",view="{name}"}} 4.0',
            f'mv_assets_view_refreshed_buckets_total{{operation="append",view="{name}"}} 4.0',
        ):
            assert expected in told, told


_PUBLISHED = {
    f"{name} {form}": replace(operation, kind=f"published in {form}")
    for form in ("iceberg", "delta")
    for name, operation in {
        "first publication in": Operation(publish, done=published),
        "publication in": Operation(publish, publish_and_overwrite, done=published),
        "publication over others in": Operation(publish, scribble, done=published),
        "publication of a column in": Operation(publish, widen, done=published),
        "expiry in": Operation(give_up, publish_and_wait),
        "withdrawal from": Operation(withdraw, publish, done=withdrawn),
    }.items()
}
_LAKEHOUSE = {
    f"{name} {form}": replace(operation, kind=form)
    for form in ("iceberg", "delta")
    for name, operation in {
        "look at": Operation(look, delete_rows, done=deletes_seen),
        "refresh from": Operation(refresh, delete_rows, done=deletes_computed),
        "follow": Operation(look, compact, done=followed),
    }.items()
}
_STORED = {
    f"{name} a store": replace(operation, kind="store")
    for name, operation in {
        "look at": Operation(look, change, mend, looked),
        "refresh from": Operation(refresh, change, mend, refreshed),
    }.items()
}
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
    "metrics": Operation(measure),
    "look at a view below": Operation(look, change, mend, looked, kind="stacked"),
    "refresh of a view on a view": Operation(refresh, change, mend, refreshed, kind="stacked"),
    "gc below a view": Operation(collect, overwrite_many, done=collected, kind="stacked"),
    "freeze": Operation(look, lose, put_back, frozen, kind="frozen"),
    "refresh of what is frozen": Operation(refresh, lose, put_back, kind="frozen"),
    "thaw": Operation(look, frozen_and_back, done=thawed, kind="frozen"),
    "close": Operation(look, stop_early, done=seen_to_end, kind="closing"),
    "refresh of a closed day": Operation(refresh, stop_early, done=closed, kind="closing"),
    **_PUBLISHED,
    **_LAKEHOUSE,
    **_STORED,
}
