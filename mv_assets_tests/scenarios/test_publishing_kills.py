"""A publisher that is killed at each of its steps, and readers that read all the while."""

from __future__ import annotations

import os
import signal
import threading
from importlib import import_module
from typing import Any

import pytest

from mv_assets.publish.contents import VERSION
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes, Rows, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE

STEPS = {
    "copies": ("mv_assets.maintain.compaction", "Compactor._written"),
    "repoints": ("mv_assets.state.manager", "PartitionManager.repoint"),
    "retains": ("mv_assets.state.publications", "Publications.retain"),
    "commits": ("pyiceberg.catalog.sql", "SqlCatalog.commit_table"),
    "commits buckets": ("mv_assets.publish.iceberg.target", "IcebergView.commit_buckets"),
    "records": ("mv_assets.state.publications", "Publications.record"),
    "expires": ("mv_assets.publish.iceberg.table", "PublishedTable.expire"),
    "gives up": ("mv_assets.state.publications", "Publications.expire"),
}


def killed_at(made: PublishedLake, step: str, *, after: bool) -> None:
    """Publish in a process of its own, which ends at a step."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"it came through: {status}"
        return
    try:
        _publish_until(made, step, after=after)
    finally:
        os._exit(1)


def _publish_until(made: PublishedLake, step: str, *, after: bool) -> None:
    module, name = STEPS[step]
    owner, _, method = name.partition(".")
    found = getattr(import_module(module), owner)
    right = getattr(found, method)

    def last(*given: Any, **named: Any) -> Any:
        if after:
            right(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(found, method, last)
    # Connections don't survive a fork.
    made.store = Store(f"sqlite:///{made.folder.parent}/state.db", now=made.clock)
    made.manager = PartitionManager(made.store, clock=made.clock, who="killed")
    made.publish()


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_a_publisher_that_is_killed_leaves_nothing_torn_and_the_next_one_mends_it(
    iceberg_lake: PublishedLakes, step: str, *, after: bool
) -> None:
    made = iceberg_lake()
    made.days(0, 1, 2)
    made.run()
    made.published()
    before = made.check_published()
    made.overwrite(1)
    killed_at(made, step, after=after)
    assert rows_of(made.reader.rows()) in (before, rows_of(made.current()))
    # Its lease and its heartbeat run out, and gc must not take what is shown.
    made.later(2 * GRACE)
    made.garbage().collect("v")
    seen = rows_of(made.reader.rows())
    assert seen in (before, rows_of(made.current()))
    made.published()
    made.check_published()
    versions = list(made.reader.snapshots().values())
    assert versions == sorted(set(versions), key=lambda version: version or 0)


@pytest.mark.slow
def test_readers_see_whole_versions_that_only_grow_while_views_change_and_gc_runs(
    iceberg_lake: PublishedLakes,
) -> None:
    made = iceberg_lake()
    made.days(*range(4))
    made.run()
    made.published()
    expected: dict[int, Rows] = {made.snapshot().header.version: rows_of(made.current())}
    seen: list[tuple[int, Rows]] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set() or len(seen) < 100:
            table = made.reader.table()  # type: ignore[attr-defined]
            snapshot = table.current_snapshot()
            seen.append((int(snapshot.summary[VERSION]), rows_of(table.scan().to_arrow())))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(20):
        made.overwrite(number % 4)
        made.published()
        expected[made.snapshot().header.version] = rows_of(made.current())
        made.later(GRACE)
        made.collect()
        expected[made.snapshot().header.version] = rows_of(made.current())
    done.set()
    reader.join(120)
    assert not reader.is_alive()
    versions = [version for version, _ in seen]
    assert versions == sorted(versions)
    assert all(rows == expected[version] for version, rows in seen)
