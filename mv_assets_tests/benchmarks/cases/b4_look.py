"""B4: a look that finds nothing, against a bare walk of the same files; and a first look."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import HOUR
from mv_assets.config import DeclaredProject, MaterializedView, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.observe.maps import StoredMaps
from mv_assets.observe.observation import Observed, Unchanged
from mv_assets.observe.watch import Watch
from mv_assets.plan import planner
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Attempt, SecondLook, Staged
from mv_assets.state.store import Store
from mv_assets.tables.inventory import Known
from mv_assets.tables.listing import Table
from mv_assets.tables.open import open_table
from mv_assets.tables.parquet.table import ParquetFiles
from mv_assets.views.catalog import Catalog, prepare
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio

SIZES = (1_000, 10_000, 100_000, 1_000_000)
_ROUNDS = 5
# A look at a thousand files is a matter of milliseconds: five of them say little.
_SHORT, _SHORT_ROUNDS = 10_000, 100
# Where lakes stay for other benchmarks of the same run: that of a million files takes a minute to make.
KEPT = "MV_ASSETS_BENCHMARK_LAKES"
_PER_FOLDER = 1_000
# A file has at most 65,000 names on ext4.
_PER_INODE = 50_000
BUCKETS = 100_000
# Buckets a commit: what is measured begins when the maps are full.
AT_A_TIME = 1_000
_SQL = "SELECT date_trunc('hour', at) AS hour, count(*) AS n FROM events GROUP BY ALL"
_LARGE, _LARGE_FILES = 64 << 20, 12


def run() -> Sequence[Figure]:
    figures: list[Figure] = []
    per_file: dict[int, float] = {}
    for size in SIZES:
        with lake_of(size) as lake:
            figures += _idle(lake, size, per_file)
    growth = per_file[SIZES[-1]] / per_file[SIZES[1]]
    what = f"a file's share of an idle look, {SIZES[-1]:,} files / {SIZES[1]:,}"
    figures.append(Figure("B4", what, growth, "x", 1.5, "linear growth is 1"))
    return [*figures, *_first_look()]


@dataclass
class Lake:
    """Files that are known, buckets that are VALID, and time that has passed since."""

    root: Path
    store: Store
    catalog: Catalog
    table: Table

    def round(self) -> Observed:
        return self.rounds()["v"]

    def rounds(self, *, whole: bool = False) -> dict[str, Observed]:
        """A round of all views."""
        maps = StoredMaps(self.store, PartitionManager(self.store, clock=now))
        found = Watch(self.catalog, {"events": self.table}, maps, now).round(whole=whole)
        return {name: observed for name, observed in found.items() if isinstance(observed, Observed)}


def now() -> int:
    return time.time_ns() // 1_000_000 + 10 * HOUR


def declaration(name: str = "v", base: str = "events") -> dict[str, str | int]:
    """An hourly view, as a project file has it."""
    placed = {"name": name, "base": base, "bucket": "1h", "start": "2010-01-01"}
    sql = _SQL if base == "events" else f"SELECT hour, n FROM {base}"
    # No two are the same text, or one analysis would do for all.
    return {**placed, "sql": f"{sql} /* {name} */", "time_column": "hour", "max_buckets_per_run": AT_A_TIME}


@contextmanager
def lake_of(
    files: int,
    names: Sequence[str] = ("v",),
    state: str | None = None,
    buckets: int = BUCKETS,
    above: Sequence[str] = (),
) -> Iterator[Lake]:
    """Files in hours, each in one; as many hours as there are files, or `buckets`.

    The views `above` are on the first of the others. A lake with one view may be an earlier benchmark's, with
    a few files more; this process has looked at it.
    """
    simple = (tuple(names), state, tuple(above)) == (("v",), None, ())
    with _place(f"{files} files in {buckets}" if simple else None) as folder:
        made = folder / "made"
        if not made.exists():
            write(folder / "events", files)
        lake = opened(folder, names, state, above)
        if not made.exists():
            _know(lake, lake.catalog.view(names[0]).declared.start or 0, buckets)
            made.touch()
        fill(lake)
        lake.rounds(whole=True)
        yield lake
        lake.store.close()


@contextmanager
def _place(name: str | None) -> Iterator[Path]:
    """A folder that is kept under that name, or one that is removed in the end."""
    kept = os.environ.get(KEPT)
    if kept is not None and name is not None:
        folder = Path(kept) / name
        folder.mkdir(exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def opened(
    folder: Path, names: Sequence[str] = ("v",), state: str | None = None, above: Sequence[str] = ()
) -> Lake:
    """What is in a lake's folder, for this process."""
    root = folder / "events"
    declared = ParquetTable(name="events", path=str(root), time_column="at")
    all_views = [*map(declaration, names), *(declaration(name, names[0]) for name in above)]
    views = tuple(map(MaterializedView.model_validate, all_views))
    catalog = prepare(Draft("B4", DeclaredProject(tables=(declared,), views=views)), schemas=False)
    store = Store(state or f"sqlite:///{folder}/state.db")
    table = open_table(declared, store.database, now)
    return Lake(root, store, catalog, table)


def write(root: Path, files: int) -> None:
    """Many names of a few real files: what a look walks are names, and a million of them take no room so."""
    for at in range(files):
        folder = root / f"part={at // _PER_FOLDER}"
        if at % _PER_FOLDER == 0:
            folder.mkdir(parents=True)
        name = folder / f"{at:07}.snappy.parquet"
        if at % _PER_INODE == 0:
            original = name
            pq.write_table(pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))}), name)
        else:
            os.link(original, name)


def _know(lake: Lake, start: int, buckets: int) -> None:
    """Put the files in the inventory, as a first look would."""
    table = lake.table
    assert isinstance(table, ParquetFiles)
    walk = table.folder.walk()
    hours = min(len(walk.names), buckets)
    known = {}
    for at, (name, identity) in enumerate(zip(walk.names, walk.identities, strict=True)):
        first = start + at % hours * HOUR
        known[name] = Known(identity, at, first, first + HOUR - 1)
    table.inventory.save(known)


def fill(lake: Lake) -> None:
    """Commit all buckets, and look until nothing is left to see."""
    manager = PartitionManager(lake.store, clock=now)
    while sum(commit(manager, observed) for observed in lake.rounds().values()):
        pass


def commit(manager: PartitionManager, observed: Observed) -> bool:
    if isinstance(observed, Unchanged):
        return False
    observation = observed
    for work in planner.plan(observed).work:
        attempt = Attempt(os.urandom(8).hex(), observation.snapshot.header.version, work.buckets)
        manager.register(observed.view.declaration, attempt)
        staged = {
            b: Staged(1, 1, 1, tuple(observation.view_inputs.segments(observation.buckets[b])))
            for b in attempt.buckets
        }
        seen = SecondLook({b: observation.buckets[b].current for b in attempt.buckets})
        manager.commit(observed.view.declaration, attempt, staged, partial(_same, seen))
    return True


def late(root: Path, hour: int = 0) -> None:
    """One file more, of one of the first hours."""
    at = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    rows = pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, root / f"late-{time.time_ns()}.parquet")


def _same(seen: SecondLook) -> SecondLook:
    return seen


def _idle(lake: Lake, files: int, per_file: dict[int, float]) -> Iterator[Figure]:
    rounds = _SHORT_ROUNDS if files < _SHORT else _ROUNDS
    samples = interleaved(
        rounds, {"bare": lambda: partial(_bare, str(lake.root)), "look": lambda: lake.round}
    )
    assert isinstance(lake.round(), Unchanged)
    per_file[files] = statistics.median(samples["look"]) / files
    yield ratio("B4", f"idle look / bare scandir with stat, {files:,} files", samples, "look", "bare", 2.0)


def _bare(root: str) -> int:
    count, folders = 0, [root]
    while folders:
        with os.scandir(folders.pop()) as listed:
            for entry in listed:
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    entry.stat()
                    count += 1
    return count


def _first_look() -> Sequence[Figure]:
    """Checksums against reading the same bytes and doing nothing with them."""
    folder = Path(tempfile.mkdtemp())
    try:
        chunk = os.urandom(_LARGE)
        times = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "x": [chunk]})
        for at in range(_LARGE_FILES):
            pq.write_table(times, folder / f"{at}.parquet", compression="none", use_dictionary=False)
        declared = ParquetTable(name="events", path=str(folder), time_column="at")
        table = open_table(declared, None, now)
        samples = interleaved(
            _ROUNDS,
            {
                "first look": lambda: lambda: table.current().listing(),
                "reading": lambda: partial(_read, folder),
            },
        )
        what = f"first look / reading the same {_LARGE_FILES} files of 64 MB, from memory"
        return [ratio("B4", what, samples, "first look", "reading", 4.0)]
    finally:
        shutil.rmtree(folder)


def _read(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            while file.read(4 << 20):
                pass
