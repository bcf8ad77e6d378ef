"""Compaction: what rows still need of a generation is copied to a new one, so that space stays bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

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
from mv_assets.state.model import Attempt, Copied, DataFile, Declaration, Header, PartitionRow, Snapshot
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store

# Readers open every file: more small generations than this become one.
_MANY = 32


@dataclass(frozen=True, slots=True)
class Holding:
    """A generation, and the rows that name it."""

    generation: str
    files: tuple[DataFile, ...]
    rows: tuple[PartitionRow, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def live_bytes(self) -> int:
        return sum(row.bytes for row in self.rows)

    @property
    def mostly_dead(self) -> bool:
        # A bucket's bytes are rounded down: only rows tell for sure that something is dead at all.
        some = sum(row.rows for row in self.rows) < sum(file.rows for file in self.files)
        return some and 2 * self.live_bytes < self.bytes

    @property
    def small(self) -> bool:
        return bool(self.files) and self.live_bytes < SMALL_BYTES

    def sources(self) -> list[Source]:
        live = [row.bucket for row in self.rows if row.rows]
        return [Source(file.path, file.bytes, live) for file in self.files]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Generations that become one."""

    holdings: tuple[Holding, ...]

    @property
    def generations(self) -> tuple[str, ...]:
        return tuple(holding.generation for holding in self.holdings)

    @property
    def rows(self) -> list[PartitionRow]:
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
        holdings = self._holdings(snapshot)
        small = [holding for holding in holdings if holding.small]
        candidates = small if len(small) > _MANY else []
        dead = [holding for holding in holdings if holding.mostly_dead]
        shapes = self._shapes(view, [*dead, *(each for each in candidates if not each.mostly_dead)], found)
        alike: dict[Shape, list[Holding]] = {}
        for holding in candidates:
            if holding.generation in shapes:
                alike.setdefault(shapes[holding.generation], []).append(holding)
        for group in alike.values():
            if len(group) > _MANY:
                found.bundles += _merges(group)
        merged = {generation for bundle in found.bundles for generation in bundle.generations}
        alone = shapes.keys() - merged
        found.bundles += [Bundle((holding,)) for holding in dead if holding.generation in alone]
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

    def _try(self, header: Header, bundle: Bundle, found: Compaction) -> None:
        try:
            size = self._copy(header, bundle)
        except (WarehouseUnusable, Miscounted) as error:
            found.errors.append(error)
        else:
            if size is not None:
                found.done.append((bundle, size))

    def _holdings(self, snapshot: Snapshot) -> list[Holding]:
        named: dict[str, list[PartitionRow]] = {}
        for row in snapshot.rows.values():
            if row.generation is not None:
                named.setdefault(row.generation, []).append(row)
        files = self.store.files(snapshot.header.view, named)
        return [Holding(name, files.get(name, ()), tuple(rows)) for name, rows in named.items()]

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


def _merges(holdings: Iterable[Holding]) -> list[Bundle]:
    """Small generations, neighbours in time together."""
    in_time = sorted(holdings, key=lambda each: min(row.bucket for row in each.rows))
    together = portions(in_time, lambda each: (len(each.files), each.live_bytes))
    return [Bundle(tuple(portion)) for portion in together if len(portion) > 1]
