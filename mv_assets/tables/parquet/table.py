"""A folder of Parquet files, flat or hive-partitioned, on this machine or in any Arrow file system."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import pyarrow as pa

from mv_assets.config.storage import Storage
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.files.folders import Folder, Walk
from mv_assets.tables.files.locations import folder_at
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.listing import ALWAYS, Broken, Details, Listing, OnRead, unnoticed
from mv_assets.tables.parquet import partitions
from mv_assets.tables.parquet.columns import columns_in
from mv_assets.tables.parquet.examine import Examined, examine
from mv_assets.tables.parquet.kept import KEPT, Carried, Kept, kept
from mv_assets.tables.parquet.statistics import ranged
from mv_assets.tables.times import TimeColumn
from mv_assets.tables.types import Sampled, unsure

# What a long first look that crashes or is cut short may cost: in files, and in bytes a thread, so that a
# tick of the sensor comes to its first save however large the files are.
_BATCH = 2_000
_BYTES = 64 << 20
_LOGS = {"_delta_log": "delta", "metadata/version-hint.text": "iceberg"}
# Files a thread takes at a time: handing over each small file would cost more than reading it.
_TASK = 16
# Of a table's files, one in so many is few: more are recalled with all others.
_FEW = 8


@dataclass(frozen=True, slots=True)
class ParquetFiles:
    """The table. `settle_ms` is how old a file must be for its checksum to be trusted."""

    name: str
    path: str
    time: TimeColumn | None
    inventory: Inventory
    clock: Callable[[], int]
    settle_ms: int
    pattern: str = "*"
    storage: Storage | None = None

    def current(self) -> ParquetTableVersion:
        return ParquetTableVersion(self, self._walk())

    @property
    def place(self) -> Hashable | None:
        """What a listing depends on, but for what is there; None where nothing is to be remembered."""
        inventory = self.inventory
        if inventory.database is None or not inventory.keep:
            return None
        return inventory.database.where, inventory.table, self.path, self.pattern, self.settle_ms

    def _refuse_other_formats(self) -> None:
        """The files of a table with a log are not all of them its rows."""
        for inside, kind in _LOGS.items():
            if self.folder.holds(inside):
                instead = f"declare it with `format: {kind}`"
                raise TableRefused(self.name, f"has {inside}, so it is a table of format {kind}", instead)

    def columns(
        self, wanted: frozenset[str] = frozenset(), *, everywhere: bool = False
    ) -> dict[str, str] | None:
        walk = self._walk()
        given = partitions.types_of(walk.folders, self.time)
        folded = {name.lower() for name in given}
        inside = frozenset(name for name in wanted if name.lower() not in folded)
        found = columns_in(self.folder, walk, inside, everywhere=everywhere)
        # What folders say holds for all files in them.
        return None if found is None else Sampled(found | given, unsure(found) - given.keys())

    def refused(self) -> Mapping[str, str]:
        """None: each file says of itself what can't be read."""
        return {}

    @property
    def folder(self) -> Folder:
        return folder_at(self.path, self.pattern, self.storage)

    def _walk(self) -> Walk:
        try:
            self._refuse_other_formats()
            return self.folder.walk()
        except (OSError, pa.ArrowException, ImportError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise TableUnreadable(self.name, self.path, why) from error


@dataclass(frozen=True, slots=True)
class ParquetTableVersion:
    """The folder as it was walked."""

    table: ParquetFiles
    walk: Walk

    @property
    def version(self) -> str:
        return self.walk.version

    def listing(self, on_read: OnRead = unnoticed) -> Listing:
        look = _Look(self.table, self.walk)
        look.carry()
        look.recall()
        try:
            look.examine(on_read)
        except (OSError, pa.ArrowException) as error:
            # What a file holds is its own matter; whether it is there at all is the listing's.
            raise TableUnreadable(self.table.name, self.table.path, str(error)) from error
        return look.finish()


class _Look:
    """A listing in the making: what is known of the files is filled in, the others are examined."""

    def __init__(self, table: ParquetFiles, walk: Walk) -> None:
        self._table = table
        self._crcs, self._starts, self._ends = (array("q", bytes(8 * len(walk.names))) for _ in range(3))
        self._sizes, self._changed, self._identities = walk.sizes, walk.changed, walk.identities[:]
        self._unusable = {name: Broken(name, why) for name, why in walk.unusable.items()}
        # Places of the files that are yet to be filled in.
        self._left: dict[str, int] = {}
        self._ranges: dict[str, tuple[int, int] | None] = {}
        self._nowhere: set[int] = set()
        self._gone: set[int] = set()
        self._young: set[str] = set()
        self._carried: Carried | None = None
        self._listing = Listing(
            table.name,
            walk.version,
            table.clock(),
            names=walk.names,
            crcs=self._crcs,
            starts=self._starts,
            ends=self._ends,
            sizes=self._sizes,
            changed=self._changed,
            identities=self._identities,
            schema=partitions.types_of(walk.folders, table.time),
            details=Details(walk.root, partitions=partitions.HivePartitions(walk.names)),
        )

    def carry(self) -> None:
        """Fill in the files that are still the objects they were when this process listed them last."""
        place = self._table.place
        known = None if place is None else kept(place, self._listing.at)
        if known is None or self._unusable:
            self._left = {name: at for at, name in enumerate(self._listing.names)}
            return
        self._carried = Carried.into(self._listing, known)
        self._left = dict(self._carried.left)

    def recall(self) -> None:
        """Fill in the files that are still the objects they were by the inventory."""
        few = self._carried is not None and len(self._left) * _FEW <= len(self._listing)
        gone = [] if self._carried is None else self._carried.gone
        for name, known in self._table.inventory.known(self._left if few else None):
            at = self._left.get(name)
            if name in self._unusable:
                broken = replace(self._unusable[name], start_ms=known.start_ms, end_ms=known.end_ms)
                self._unusable[name] = broken
            elif at is None:
                if self._carried is None:
                    gone.append(name)
            elif known.trusted and known.identity == self._listing.identities[at]:
                del self._left[name]
                self._place(at, known)
            else:
                self._ranges[name] = known.range
        self._table.inventory.forget(gone)

    def examine(self, on_read: OnRead) -> None:
        """Read the other files in parallel, and remember them a batch at a time."""
        files, size, whole = 0, 0, sum(self._listing.sizes[at] for at in self._left.values())
        folder = self._table.folder
        with ThreadPoolExecutor(folder.threads) as pool:
            for batch in self._batches(_BYTES * folder.threads):
                files += len(batch)
                size += sum(self._listing.sizes[self._left[name]] for name in batch)
                # All threads have something to do, even if the batch is a few large files.
                task = min(_TASK, -(-len(batch) // folder.threads))
                parts = [batch[at : at + task] for at in range(0, len(batch), task)]
                some = partial(self._examine, folder)
                found = dict(zip(batch, chain.from_iterable(pool.map(some, parts)), strict=True))
                self._remember(found)
                on_read(files, size, len(self._left), whole)

    def _batches(self, most_bytes: int) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for name, at in self._left.items():
            batch.append(name)
            size += self._listing.sizes[at]
            if len(batch) >= _BATCH or size >= most_bytes:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def finish(self) -> Listing:
        listing = self._listing
        gone = {listing.names[at] for at in self._gone}
        if self._nowhere or self._gone:
            listing.leave_out(self._nowhere | self._gone)
            listing.timeless -= gone
        for broken in self._unusable.values():
            listing.place(broken, ALWAYS if self._table.time is None else broken.range)
        listing.unread |= {broken.name for broken in listing.unplaced}
        self._keep()
        return listing

    def _keep(self) -> None:
        listing, carried, place = self._listing, self._carried, self._table.place
        if place is None:
            return
        if listing.broken:
            # Its range may yet be found out; and what is broken is to be seen as it is.
            KEPT.forget(place)
            return
        if carried is not None:
            listing.history = carried.kept.listing.history.then(carried.changed(listing))
        whole_at = listing.at if carried is None else carried.kept.whole_at
        KEPT.put(place, Kept(listing, frozenset(self._young), whole_at), len(listing))

    def _examine(self, folder: Folder, names: Sequence[str]) -> list[Examined | None]:
        time, settle, now = self._table.time, self._table.settle_ms, self._listing.at
        return [examine(folder, name, time, self._ranges.get(name), now, settle) for name in names]

    def _remember(self, found: Mapping[str, Examined | None]) -> None:
        there = {name: each for name, each in found.items() if each is not None}
        footers = {name: each.footer for name, each in there.items() if each.footer is not None}
        known = ranged({name: each.known for name, each in there.items()}, footers)
        self._table.inventory.save(known)
        self._gone |= {self._left[name] for name in found.keys() - there.keys()}
        for name, (entry, *_) in there.items():
            at = self._left[name]
            self._identities[at], self._sizes[at] = entry.identity, entry.size
            self._changed[at] = entry.changed or 0
            self._place(at, known[name])

    def _place(self, at: int, known: Known) -> None:
        """Enter a file in the listing, if it lies anywhere in time."""
        listing, settle = self._listing, self._table.settle_ms
        name = listing.names[at]
        # A store tells seconds: what is written twice in one is told apart by its content alone.
        self._identities[at] ^= known.crc
        if not known.trusted:
            self._young.add(name)
            listing.recheck(listing.at + settle)
        if known.nulls:
            listing.nulls[name] = known.nulls
        # Still being written, perhaps: an error only once the file has come to rest.
        arriving = not known.trusted and 0 <= listing.at - listing.changed[at] <= settle
        if known.error is not None and not arriving:
            listing.broken[name] = Broken(name, known.error, known.start_ms, known.end_ms)
        if known.start_ms is None or known.end_ms is None:
            self._nowhere.add(at)
            if known.error is not None:
                listing.unread.add(name)
            return
        self._crcs[at], self._starts[at], self._ends[at] = known.crc, known.start_ms, known.end_ms
