"""A folder of Parquet files, flat or hive-partitioned, on this machine or in any Arrow file system."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.errors import TableUnreadable
from mv_assets.tables import partitions
from mv_assets.tables.examine import examine
from mv_assets.tables.folders import Entry, Folder, Walk, folder_at
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.listing import Broken, Details, Listing, Progress, unobserved
from mv_assets.tables.times import TimeColumn
from mv_assets.tables.types import spark_types

# What a crash during a long first look may cost, in files.
_BATCH = 2_000
_SAMPLE = 16
# Files a thread takes at a time: handing over each small file would cost more than reading it.
_TASK = 16


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

    def glance(self) -> ParquetGlance:
        return ParquetGlance(self, self._walk())

    def columns(self, wanted: frozenset[str] = frozenset()) -> dict[str, str] | None:
        walk, folder = self._walk(), self.folder
        found: dict[str, str] = {}
        missing = {name.lower() for name in wanted} or {""}
        for name in _sample(sorted(walk.names)):
            try:
                with folder.open(name) as file:
                    found = spark_types(pq.read_schema(file)) | found
            except (pa.ArrowException, OSError, ValueError):
                continue
            missing -= {name.lower() for name in found} | {""}
            if not missing:
                break
        if found:
            found |= partitions.types_of(walk.names)
        return found or None

    @property
    def folder(self) -> Folder:
        return folder_at(self.path, self.pattern)

    def _walk(self) -> Walk:
        try:
            return self.folder.walk()
        except (OSError, pa.ArrowException, ImportError, ValueError) as error:
            raise TableUnreadable(self.name, self.path, str(error)) from error


@dataclass(frozen=True, slots=True)
class ParquetGlance:
    """The folder as it was walked."""

    table: ParquetFiles
    walk: Walk

    @property
    def version(self) -> str:
        return self.walk.version

    def listing(self, progress: Progress = unobserved) -> Listing:
        walk = self.walk
        unset = array("q", bytes(8 * len(walk.names)))
        listing = Listing(
            self.table.name,
            self.version,
            self.table.clock(),
            names=walk.names,
            crcs=unset,
            starts=unset[:],
            ends=unset[:],
            sizes=walk.sizes,
            changed=walk.changed,
            identities=walk.identities,
            schema=partitions.types_of(walk.names),
            details=Details(partitions=partitions.HivePartitions(walk.names)),
        )
        nowhere = self._recall(listing, progress)
        if nowhere:
            listing.leave_out(nowhere)
        listing.broken |= {name: Broken(name, why) for name, why in walk.unusable.items()}
        return listing

    def _recall(self, listing: Listing, progress: Progress) -> set[int]:
        """Fill in what is known of the files, and examine the others; those that lie nowhere in time."""
        inventory = self.table.inventory
        left = {name: at for at, name in enumerate(listing.names)}
        ranges: dict[str, tuple[int, int] | None] = {}
        gone, nowhere = [], set()
        for name, known in inventory.known():
            at = left.get(name)
            if at is None:
                gone.append(name)
            elif known.trusted and known.identity == listing.identities[at]:
                del left[name]
                if not self._place(listing, at, known):
                    nowhere.add(at)
            else:
                ranges[name] = known.range
        for name, examined in self._examine(left, ranges, listing, progress):
            at = left[name]
            if examined is None:
                nowhere.add(at)
                continue
            entry, known = examined
            listing.identities[at], listing.sizes[at], listing.changed[at] = entry[:3]
            if not self._place(listing, at, known):
                nowhere.add(at)
        inventory.forget(gone)
        return nowhere

    def _examine(
        self,
        left: Mapping[str, int],
        ranges: Mapping[str, tuple[int, int] | None],
        listing: Listing,
        progress: Progress,
    ) -> Iterator[tuple[str, tuple[Entry, Known] | None]]:
        """Read files in parallel, and remember them a batch at a time."""
        table, folder = self.table, self.table.folder
        files, size, whole = 0, 0, sum(listing.sizes[at] for at in left.values())

        def some(names: Sequence[str]) -> list[tuple[Entry, Known] | None]:
            time, settle = table.time, table.settle_ms
            return [examine(folder, name, time, ranges.get(name), table.clock(), settle) for name in names]

        names = iter(left)
        with ThreadPoolExecutor(folder.threads) as pool:
            while batch := list(islice(names, _BATCH)):
                parts = [batch[at : at + _TASK] for at in range(0, len(batch), _TASK)]
                found = dict(zip(batch, chain.from_iterable(pool.map(some, parts)), strict=True))
                table.inventory.save({name: known[1] for name, known in found.items() if known is not None})
                yield from found.items()
                files, size = files + len(batch), size + sum(listing.sizes[left[name]] for name in batch)
                progress(files, size, len(left), whole)

    def _place(self, listing: Listing, at: int, known: Known) -> bool:
        """Enter a file in the listing; False if it lies nowhere in time."""
        name, settle = listing.names[at], self.table.settle_ms
        if not known.trusted:
            listing.recheck(max(listing.changed[at], listing.at) + settle)
        if known.nulls:
            listing.nulls[name] = known.nulls
        arriving = known.range is None and listing.at - listing.changed[at] <= settle
        if known.error is not None and not arriving:
            listing.broken[name] = Broken(name, known.error, known.start_ms, known.end_ms)
        if known.start_ms is None or known.end_ms is None:
            return False
        listing.crcs[at], listing.starts[at], listing.ends[at] = known.crc, known.start_ms, known.end_ms
        return True


def _sample(names: list[str]) -> Iterator[str]:
    """Names to look for columns in: the last, the first, and some between."""
    if not names:
        return
    last = len(names) - 1
    places = [last, 0, *(last * part // _SAMPLE for part in range(1, _SAMPLE))]
    yield from (names[place] for place in dict.fromkeys(places))
