"""What an Iceberg table's metadata files say, each read once: they never change under their names.

The process remembers it as blocks of a listing, and the state database as it was read. Losing either costs
time only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mv_assets.tables.iceberg.entries import LAYOUT, Entry, Manifest, packed, unpacked
from mv_assets.tables.inventory import Inventory

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_THREADS = 8
# What a look that is cut short may lose, in manifests; and how many are in memory at a time.
_BATCH = 16


@dataclass(slots=True)
class Metadata:
    """The metadata files of one table, for one look. `time` is the id of its time column."""

    io: FileIO
    inventory: Inventory
    time: int | None
    # All that the look was about, and whether some of it was read anew.
    used: set[str] = field(default_factory=set)
    fresh: bool = False
    # What is yet to be saved.
    _taken: dict[str, bytes] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        return f"{LAYOUT} {self.time}"

    def manifests(self, path: str) -> list[Manifest]:
        """The manifests of a manifest list."""
        from mv_assets.tables.iceberg import avro  # noqa: PLC0415 - of an extra

        self.used.add(path)
        known = self._known([path], Manifest)
        if path in known:
            return known[path]
        found = avro.manifests(self.io, path)
        self._save({path: packed(found, Manifest)})
        return found

    def entries(self, manifests: Sequence[Manifest]) -> Iterator[tuple[Manifest, list[Entry]]]:
        """The files of manifests, deleted ones too, in the manifests' order."""
        for at in range(0, len(manifests), _BATCH):
            batch = manifests[at : at + _BATCH]
            self.note(batch)
            known = self._known([place_of(each) for each in batch], Entry)
            yield from zip(batch, self._read(batch, known), strict=True)

    def note(self, manifests: Iterable[Manifest]) -> None:
        """Say that manifests are still wanted, which need not be read."""
        self.used.update(map(place_of, manifests))

    def aside(self) -> Metadata:
        """The same, but for what was used; what it reads is saved with all else."""
        return replace(self, used=set(), fresh=False)

    def finish(self) -> None:
        """Remember what was read, and forget files that are no longer the table's."""
        if self.fresh:
            self.inventory.save_metadata(self._taken, self.layout, but=self.used)

    def _read(self, manifests: Sequence[Manifest], known: dict[str, list[Entry]]) -> list[list[Entry]]:
        from mv_assets.tables.iceberg import avro  # noqa: PLC0415 - of an extra

        new = [each for each in manifests if place_of(each) not in known]
        if new:
            with ThreadPoolExecutor(_THREADS) as pool:
                # Mostly it is one, for which no thread is worth starting.
                each_of = map if len(new) == 1 else pool.map
                found = each_of(lambda each: avro.entries(self.io, each, self.time), new)
                taken = {place_of(each): entries for each, entries in zip(new, found, strict=True)}
            self._save({place: packed(entries, Entry) for place, entries in taken.items()})
            known |= taken
        return [known[place_of(each)] for each in manifests]

    def _known(self, places: list[str], kind: type[Any]) -> dict[str, list[Any]]:
        found = self.inventory.metadata(places, self.layout)
        return {place: rows for place, content in found.items() if (rows := _rows(content, kind)) is not None}

    def _save(self, taken: dict[str, bytes]) -> None:
        self.fresh = True
        self._taken |= taken
        if len(self._taken) >= _BATCH:
            self.inventory.save_metadata(self._taken, self.layout)
            self._taken.clear()


def _rows(content: bytes, kind: type[Any]) -> list[Any] | None:
    try:
        return unpacked(content, kind)
    except (pa.ArrowException, OSError, TypeError, ValueError):
        # It is not what was written there. The file says it again.
        return None


def place_of(manifest: Manifest) -> str:
    """Under which name it is remembered: what its entries inherit belongs to it."""
    path, *inherited = manifest[:-1]
    return f"{path} {inherited}"
