"""A publisher that is killed at each of its steps, and readers that read all the while."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import NoSuchTableError

from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.published_lake import PublishedLake, PublishedLakes, Rows, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE, clocked_lakes

_SHARED = {
    "copies": ("mv_assets.maintain.compaction", "Compactor._written"),
    "repoints": ("mv_assets.state.manager", "PartitionManager.repoint"),
    "retains": ("mv_assets.state.publications", "Publications.retain"),
    "records": ("mv_assets.state.publications", "Publications.record"),
}
STEPS = {
    "iceberg": {
        **_SHARED,
        "commits": ("pyiceberg.catalog.sql", "SqlCatalog.commit_table"),
        "commits buckets": ("mv_assets.publish.iceberg.target", "IcebergView.commit_buckets"),
        "expires": ("mv_assets.publish.iceberg.table", "PublishedTable.expire"),
        "gives up": ("mv_assets.state.publications", "Publications.expire"),
    },
    "delta": {
        **_SHARED,
        "commits": ("deltalake", "DeltaTable.create_write_transaction"),
        "writes buckets": ("mv_assets.publish.delta.folder", "Folder.write"),
        "commits buckets": ("mv_assets.publish.delta.target", "DeltaView.commit_buckets"),
        "tidies": ("mv_assets.publish.delta.table", "PublishedTable.tidy"),
        "gives up": ("mv_assets.state.publications", "Publications.pass_over"),
    },
}
WITHDRAWAL = {
    "iceberg": {
        "drops a table": ("pyiceberg.catalog.sql", "SqlCatalog.drop_table"),
        "withdraws a table": ("mv_assets.publish.iceberg.table", "PublishedTable.withdraw"),
        "ends it": ("mv_assets.state.publications", "Publications.end"),
    },
    "delta": {
        "shows nothing": ("deltalake", "DeltaTable.create_write_transaction"),
        "makes a checkpoint": ("deltalake", "DeltaTable.create_checkpoint"),
        "deletes files": ("mv_assets.publish.delta.folder", "Folder.delete"),
        "deletes the log": ("mv_assets.publish.delta.folder", "Folder.delete_log"),
        "withdraws a table": ("mv_assets.publish.delta.table", "PublishedTable.withdraw"),
        "ends it": ("mv_assets.state.publications", "Publications.end"),
    },
}


def cases(steps: Mapping[str, Mapping[str, tuple[str, str]]]) -> list[Any]:
    return [
        pytest.param(form, *place, id=f"{form}, {step}")
        for form, named in steps.items()
        for step, place in named.items()
    ]


@pytest.fixture
def lakes(tmp_path: Path, form: str) -> Iterator[PublishedLakes]:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", PublishedLake, format=form) as make:
        yield make


# Its processes are forked from one that has imported all they need, and has opened nothing: whoever has used
# deltalake can't be forked.
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([PublishedLake.__module__, *{module for module, _ in _SHARED.values()}])


def killed(made: PublishedLake, what: str, place: tuple[str, str], *, after: bool, passes: int = 0) -> bool:
    """Do it in a process of its own, which ends at a step; whether it came so far."""
    given, how = (made.folder, made.format, made.clock.now, what, place), {"after": after, "passes": passes}
    process = _PROCESSES.Process(target=_until_killed, args=given, kwargs=how)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _until_killed(
    folder: Path, form: str, now: int, what: str, place: tuple[str, str], *, after: bool, passes: int
) -> None:
    clock = Clock(now)
    store = Store(f"sqlite:///{folder.parent}/state.db", now=clock)
    made = PublishedLake(folder, store, [view()], clock=clock, format=form)
    _kill_at(*place, after=after, passes=passes)
    if what == "publish":
        made.published()
    else:
        assert made.publisher.withdraw("v") is None


def _kill_at(module: str, name: str, *, after: bool, passes: int = 0) -> None:
    owner, _, method = name.partition(".")
    found = getattr(import_module(module), owner)
    right, left = getattr(found, method), itertools.count()

    def last(*given: Any, **named: Any) -> Any:
        if next(left) < passes:
            return right(*given, **named)
        if after:
            right(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody comes here")

    setattr(found, method, last)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("form", "module", "method"), cases(STEPS))
def test_a_publisher_that_is_killed_leaves_nothing_torn_and_the_next_one_mends_it(
    lakes: PublishedLakes, module: str, method: str, *, after: bool
) -> None:
    made = lakes()
    made.days(0, 1, 2)
    made.run()
    made.published()
    before = made.check_published()
    made.overwrite(1)
    assert killed(made, "publish", (module, method), after=after), "it came through"
    assert rows_of(made.reader.rows()) in (before, rows_of(made.current()))
    # Its lease and its heartbeat run out, and gc must not take what is shown.
    made.later(2 * GRACE)
    made.garbage().collect("v")
    seen = rows_of(made.reader.rows())
    assert seen in (before, rows_of(made.current()))
    made.published()
    made.check_published()
    versions = [version or 0 for version in made.reader.snapshots().values()]
    assert sorted(versions) == sorted(set(versions))


@pytest.mark.parametrize("table", range(2))
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("form", "module", "method"), cases(WITHDRAWAL))
def test_who_is_killed_while_withdrawing_shows_no_older_version_and_jams_nothing(
    lakes: PublishedLakes, module: str, method: str, table: int, *, after: bool
) -> None:
    made = lakes()
    made.days(0, 1, 2)
    made.run()
    made.published()
    made.overwrite(1)
    made.published()
    newest = made.check_published()
    made.manager.drop("v")
    was_killed = killed(made, "withdraw", (module, method), passes=table, after=after)
    assert was_killed or (table == 1 and method == "Publications.end")
    with suppress(NoSuchTableError, DeltaError):
        assert rows_of(made.reader.rows()) in (newest, [])
    if after:
        assert made.publisher.withdraw("v") is None
        assert not made.reader.exists()
        assert not made.reader.exists("v__buckets")
        assert made.known() is None
    made.later(2 * GRACE)
    made.garbage().collect("v")
    made.run()
    made.published()
    made.check_published()


READS = 1_000
CHANGES = 25


@pytest.mark.slow
@pytest.mark.parametrize("form", ["iceberg", "delta"])
def test_readers_see_whole_versions_that_only_grow_while_views_change_and_gc_runs(
    lakes: PublishedLakes,
) -> None:
    made = lakes()
    made.days(*range(4))
    made.run()
    made.published()
    expected: dict[int, Rows] = {made.snapshot().header.version: rows_of(made.current())}
    seen: list[tuple[int, Rows]] = []
    done = threading.Event()

    def read() -> None:
        # Half of them at least while something changes: who changes it waits for that.
        while not done.is_set() or len(seen) < READS:
            version, rows = made.reader.versioned()
            seen.append((version, rows_of(rows)))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for number in range(CHANGES):
        made.overwrite(number % 4)
        made.published()
        expected[made.snapshot().header.version] = rows_of(made.current())
        made.later(GRACE)
        made.collect()
        expected[made.snapshot().header.version] = rows_of(made.current())
        while reader.is_alive() and len(seen) < (number + 1) * READS // (2 * CHANGES):
            reader.join(0.01)
    done.set()
    reader.join()
    assert len(seen) >= READS
    versions = [version for version, _ in seen]
    assert versions == sorted(versions)
    assert all(rows == expected[version] for version, rows in seen)
