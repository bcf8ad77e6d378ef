"""Compaction: what rows still need of a generation is copied to a new one, so that space stays bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import iso
from mv_assets.errors import MvError, StateError
from mv_assets.maintain.copies import SMALL_BYTES, Shape, Source, copy, copyable, portions, shape_of
from mv_assets.maintain.errors import Miscounted
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.warehouse import Contents, Warehouse, new_generation
from mv_assets.state.errors import Fenced
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import (
    Attempt,
    Copied,
    DataFile,
    Declaration,
    Header,
    PartitionRow,
    Snapshot,
    StoredRow,
    StoredRows,
)
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store

# Readers open every file: more small generations than this become one.
_MANY = 32


@dataclass(frozen=True, slots=True)
class Holding:
    """A generation, and the rows that name it."""

    generation: str
    files: tuple[DataFile, ...]
    rows: tuple[PartitionRow | StoredRow, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def live_bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def mostly_dead(self) -> bool:
        # A bucket's bytes are rounded down: only rows tell for sure that something is dead at all.
        return self.has_others and 2 * self.live_bytes < self.bytes

    @property
    def has_others(self) -> bool:
        """Whether the files hold rows of other buckets too."""
        return sum(row.rows for row in self.rows) < sum(file.rows for file in self.files)

    @property
    def small(self) -> bool:
        return bool(self.files) and self.live_bytes < SMALL_BYTES

    def sources(self) -> list[Source]:
        live = [row.bucket for row in self.rows if row.rows]
        return [Source(file.path, file.bytes, live) for file in self.files]

    def whole_files(self) -> list[DataFile]:
        """The files that hold rows of these buckets, and nothing else."""
        mixed = {file.path for file in self.mixed().files}
        return [file for file in self.files if file.path not in mixed and self._live(file)]

    def mixed(self) -> Holding:
        """What must be copied so that no file holds rows of these buckets beside others.

        That is all files of every bucket which such a file has rows of: a row names one generation.
        """
        held = {file.path: self._live(file) for file in self.files}
        moved = {bucket for file in self.files if self._has_others(file) for bucket in held[file.path]}
        while more := {b for buckets in held.values() if buckets & moved for b in buckets - moved}:
            moved |= more
        files = tuple(file for file in self.files if held[file.path] & moved)
        return replace(self, files=files, rows=tuple(row for row in self.rows if row.bucket in moved))

    def _live(self, file: DataFile) -> set[int]:
        """Those of the buckets that a file has rows of; all, where that was not noted."""
        live = {row.bucket for row in self.rows if row.rows}
        return live if file.buckets is None else live.intersection(file.buckets)

    def _has_others(self, file: DataFile) -> bool:
        """Whether a file has rows of other buckets; each may, where some do and it was not noted which."""
        if file.buckets is not None:
            return len(self._live(file)) < len(file.buckets)
        return self.has_others


@dataclass(frozen=True, slots=True)
class Bundle:
    """Generations that become one, or what of them does; with its buckets `apart` in files."""

    holdings: tuple[Holding, ...]
    apart: bool = False

    @property
    def generations(self) -> tuple[str, ...]:
        return tuple(holding.generation for holding in self.holdings)

    @property
    def rows(self) -> list[PartitionRow | StoredRow]:
        return [row for holding in self.holdings for row in holding.rows]

    @property
    def bytes(self) -> int:
        return sum(holding.bytes for holding in self.holdings)

    @property
    def live_bytes(self) -> int:
        return sum(holding.live_bytes for holding in self.holdings)


@dataclass(slots=True)
class Compaction:
    """What of a view is to be copied, and of that what was, with the bytes of each copy.

    `kept` are generations with types that no copy would keep. One bundle's trouble does not stop the others.
    """

    bundles: list[Bundle] = field(default_factory=list)
    done: list[tuple[Bundle, int]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    errors: list[MvError] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Compactor:
    """Copies what is due. Nothing is deleted here: the generations that rows leave are garbage."""

    store: Store
    manager: PartitionManager
    warehouse: Warehouse
    registry: Registry
    leases: Leases

    def due(self, snapshot: Snapshot) -> Compaction:
        """What is to be copied, by what a map names. Writes nothing."""
        found, view = Compaction(), snapshot.header.view
        holdings = self.holdings(view, snapshot.rows.values())
        small = [holding for holding in holdings if holding.small]
        candidates = small if len(small) > _MANY else []
        dead = [holding for holding in holdings if holding.mostly_dead]
        shapes = self._shapes(view, [*dead, *(each for each in candidates if not each.mostly_dead)], found)
        alike: dict[Shape, list[Holding]] = {}
        for holding in candidates:
            if holding.generation in shapes:
                alike.setdefault(shapes[holding.generation], []).append(holding)
        # Of a published view each bucket that is replaced has its files copied: they are kept small.
        apart = bool(Publications(self.store).of(view))
        for group in alike.values():
            if len(group) > _MANY:
                found.bundles += _merges(group, apart=apart)
        merged = {generation for bundle in found.bundles for generation in bundle.generations}
        alone = shapes.keys() - merged
        found.bundles += [Bundle((holding,), apart) for holding in dead if holding.generation in alone]
        return found

    def compact(self, view: str) -> Compaction:
        """Copy what is due of a view."""
        found = Compaction()
        try:
            with self.leases.pin(view) as pinned:
                found = self.due(pinned.snapshot)
                for bundle in found.bundles:
                    self._try(pinned.snapshot.header, bundle, found)
        except Fenced:
            # The view is defined otherwise since its map was read: the next gc sees it as it is.
            pass
        except MvError as error:
            found.errors.append(error)
        return found

    def separate(
        self, header: Header, mixed: Sequence[Holding], enough: Callable[[], bool] = lambda: False
    ) -> Compaction:
        """Copy what was found mixed, under the caller's lease, until it is all copied or `enough` for now."""
        found = Compaction()
        shapes = self._shapes(header.view, mixed, found)
        alike: dict[Shape, list[Holding]] = {}
        for holding in mixed:
            if holding.generation in shapes:
                alike.setdefault(shapes[holding.generation], []).append(holding)
        found.bundles = [Bundle(each, apart=True) for group in alike.values() for each in _portions(group)]
        for bundle in found.bundles:
            if not enough():
                self._try(header, bundle, found)
        return found

    def _try(self, header: Header, bundle: Bundle, found: Compaction) -> None:
        try:
            size = self._copy(header, bundle)
        except (WarehouseUnusable, Miscounted) as error:
            found.errors.append(error)
        else:
            if size is not None:
                found.done.append((bundle, size))

    def holdings(self, view: str, rows: Iterable[PartitionRow | StoredRow]) -> list[Holding]:
        """The generations that some rows name."""
        named: dict[str, list[PartitionRow | StoredRow]] = {}
        for row in rows:
            if row.generation is not None:
                named.setdefault(row.generation, []).append(row)
        files = self.store.files(view, named)
        return [Holding(name, files.get(name, ()), tuple(found)) for name, found in named.items()]

    def current(self, view: str, rows: StoredRows) -> tuple[list[DataFile], list[Holding]]:
        """The files with current rows of a map and no others, and the holdings that have others too."""
        live: dict[str | None, int] = {}
        for generation, current, number in zip(rows.generation, rows.current, rows.rows, strict=True):
            if current:
                live[generation] = live.get(generation, 0) + number
        named = self.store.files(view, [generation for generation in live if generation is not None])
        mixed = [name for name, files in named.items() if live[name] != sum(file.rows for file in files)]
        unmixed = named.keys() - mixed
        whole = [file for name, files in named.items() if name in unmixed for file in files if file.rows]
        there: dict[str | None, list[int]] = {name: [] for name in mixed}
        for at, name in enumerate(rows.generation) if mixed else ():
            if name in there and rows.current[at]:
                there[name].append(at)
        others = [Holding(name, named[name], tuple(map(rows.row, there[name]))) for name in mixed]
        return [*whole, *(file for each in others for file in each.whole_files())], others

    def _shapes(self, view: str, holdings: Iterable[Holding], found: Compaction) -> dict[str, Shape]:
        """The shape of each generation that can be copied; what can't be goes to `found`."""
        shapes = {}
        for holding in holdings:
            copies, own = True, set[Shape]()
            try:
                with self._readable(view, [holding]):
                    for file in holding.files:
                        with self.warehouse.open(file.path) as opened:
                            footer = pq.ParquetFile(opened)
                            own.add(shape_of(footer))
                            copies = copies and copyable(footer)
            except WarehouseUnusable as error:
                found.errors.append(error)
                continue
            if copies and len(own) == 1:
                shapes[holding.generation] = own.pop()
            else:
                found.kept.append(holding.generation)
        return shapes

    def _copy(self, header: Header, bundle: Bundle) -> int | None:
        """The bytes of the copy; None if no row names it, because all of them moved on meanwhile."""
        view, attempt = header.view, Attempt(new_generation(), header.version, ())
        self.manager.register(Declaration(view, header.definition, header.width, header.start), attempt)
        try:
            with self.registry.keep_alive(view, attempt.generation):
                contents = self._written(view, attempt.generation, bundle)
                copied = {
                    row.bucket: Copied(holding.generation, contents.bytes[row.bucket])
                    for holding in bundle.holdings
                    for row in holding.rows
                }
                moved = self.manager.repoint(view, attempt.generation, copied, contents.files)
        except BaseException:
            # Else the end of its heartbeat tells.
            with suppress(StateError):
                self.manager.abandon(view, attempt)
            raise
        return sum(file.bytes for file in contents.files) if moved else None

    def _written(self, view: str, generation: str, bundle: Bundle) -> Contents:
        """Write the copy, and read back what is in it."""
        with self._readable(view, bundle.holdings):
            copy(
                [source for holding in bundle.holdings for source in holding.sources()],
                self.warehouse.open,
                lambda number: self.warehouse.create(f"{view}/{generation}/part-{number}.parquet"),
                apart=bundle.apart,
            )
        # Buckets without a row leave no file.
        there = self.warehouse.size(view, generation) is not None
        contents = self.warehouse.contents(view, generation) if there else Contents()
        for holding in bundle.holdings:
            for row in holding.rows:
                counted = contents.rows[row.bucket]
                if counted != row.rows:
                    raise Miscounted(view, holding.generation, iso(row.bucket), counted, row.rows)
        self.warehouse.sync(contents.files)
        return contents

    @contextmanager
    def _readable(self, view: str, holdings: Sequence[Holding]) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            where = ", ".join(self.warehouse.place(view, holding.generation) for holding in holdings)
            raise WarehouseUnusable(where, str(error)) from error


def _merges(holdings: Iterable[Holding], *, apart: bool) -> list[Bundle]:
    return [Bundle(portion, apart) for portion in _portions(holdings) if len(portion) > 1]


def _portions(holdings: Iterable[Holding]) -> list[tuple[Holding, ...]]:
    """Small generations, neighbours in time together."""
    in_time = sorted(holdings, key=lambda each: min(row.bucket for row in each.rows))
    return [tuple(each) for each in portions(in_time, lambda each: (len(each.files), each.live_bytes))]
