"""Which files a folder holds, with what tells that each is still the same object."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

import pyarrow as pa

from mv_assets.tables.fingerprint import hashed

_WRAP = 1 << 64


class Entry(NamedTuple):
    """A file as found.

    `changed` is when it last changed, in ms: None where the store does not say, so that no identity can be
    trusted. `checksum` is what the store says of the content, if anything.
    """

    identity: int
    size: int
    changed: int | None
    checksum: str | None = None


@dataclass(slots=True)
class Walk:
    """All files of a folder, in columns. `version` changes when a file comes, goes or changes.

    `root` is what the names are relative to, as Spark is told.
    """

    root: str
    names: list[str] = field(default_factory=list)
    identities: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    changed: array[int] = field(default_factory=lambda: array("q"))
    # Those that have files in them.
    folders: set[str] = field(default_factory=set)
    # Things that stand where files should be, and why they can't be read.
    unusable: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """A sum, so that the order in which a store lists its files does not matter."""
        total = sum(self.identities) + hashed(repr(sorted(self.unusable)))
        return f"{len(self.names)}:{total % _WRAP:016x}"

    def add(self, name: str, entry: Entry) -> None:
        self.names.append(name)
        self.folders.add(name.rpartition("/")[0])
        self.identities.append(entry.identity)
        self.sizes.append(entry.size)
        self.changed.append(entry.changed or 0)


class Folder(Protocol):
    """Where the files of a table are. `threads` is how many readers at once it rewards."""

    threads: ClassVar[int]

    def walk(self) -> Walk:
        """Find all files.

        Raises:
            OSError: a part could not be listed.

        """
        ...

    def holds(self, name: str) -> bool:
        """Whether there is a file or folder of that name, hidden or not."""
        ...

    def entry(self, name: str) -> Entry | None:
        """One file as it is now; None if it is gone."""
        ...

    def open(self, name: str) -> pa.NativeFile: ...


def hidden(name: str) -> bool:
    """Spark's rule for what in a table's folder is not data: `_col=value` is, `_SUCCESS` is not."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")
