"""The files of a table's last listed version: kept in this process, and in the state database for others.

A cache that can be thrown away. It is used only if the commit it was made at is still that commit, and for so
long after the list was read as a whole: were a file lost from it, no commit would bring it back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from mv_assets.tables.delta.codec import decoded, encoded
from mv_assets.tables.delta.columns import DeltaColumns, columns_of
from mv_assets.tables.delta.files import FileList
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.recent import Recent, is_due

# Goes up when lists of an earlier mv_assets are not to be used.
_FORMAT = 1
# A list is saved when its changes since the last time are this part of it, or came in this many commits:
# what a process that starts has to read of the log, against what is written.
_PART_CHANGED, _COMMITS = 8, 48
_NEVER = 0


class Head(NamedTuple):
    """A version of a table, without its files. `how` says what the list of files depends on besides."""

    id: str
    version: int
    # A hash: a table that was restored from a backup gets the same numbers once more.
    commit: str
    schema: str
    partitioning: tuple[str, ...]
    mode: str
    features: tuple[str, ...]
    how: str

    @property
    def columns(self) -> DeltaColumns:
        return columns_of(self.schema, self.partitioning, self.mode)

    def to_bytes(self) -> bytes:
        return json.dumps([_FORMAT, *self]).encode()

    @classmethod
    def of_bytes(cls, content: bytes) -> Head | None:
        """The head; None if it is of another mv_assets, or damaged."""
        try:
            form, *said = json.loads(content)
            found = cls(*said)
        except (ValueError, TypeError):
            return None
        if form != _FORMAT:
            return None
        return found._replace(partitioning=tuple(found.partitioning), features=tuple(found.features))


class _Kept(NamedTuple):
    head: Head
    files: FileList
    # When the files were read by nothing that was remembered.
    whole_at: int
    # The version that the database has, and how many files changed since.
    saved: int
    changes: int


# So many tables at most.
KEPT: Recent[_Kept] = Recent(64)


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of one table, by its place and by what else the list of its files depends on."""

    inventory: Inventory
    place: str
    how: str

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.inventory.table, self.place, self.how

    def head(self) -> Head | None:
        """The version that is remembered."""
        kept = KEPT.get(self._key)
        if kept is not None:
            return kept.head
        content = self.inventory.recall("head")
        head = None if content is None else Head.of_bytes(content)
        return head if head is not None and head.how == self.how else None

    def files(self, head: Head) -> FileList | None:
        """The files of the version that was remembered; None if another one is by now."""
        kept = KEPT.get(self._key)
        if kept is not None and kept.head == head:
            return kept.files
        content = self.inventory.recall("files")
        found = None if content is None else decoded(content, _version_of(head))
        if found is not None:
            whole_at = _time_of(self.inventory.recall("whole_at"))
            KEPT.put(self._key, _Kept(head, found, whole_at, head.version, 0), 1)
        return found

    def is_due(self, now: int) -> bool:
        """Whether the files are to be read as a whole again."""
        kept = KEPT.get(self._key)
        return kept is None or is_due(kept.whole_at, now)

    def keep(self, head: Head, files: FileList, now: int, changes: int | None = None) -> None:
        """Remember a version, by how many files it differs from the last; None: it was read as a whole."""
        last = KEPT.get(self._key)
        whole_at = now if changes is None else _NEVER if last is None else last.whole_at
        due = last is None or changes is None
        if last is not None and changes is not None:
            changes += last.changes
            due = head.version - last.saved >= _COMMITS or changes * _PART_CHANGED >= len(files)
        if due:
            content = {"head": head.to_bytes(), "files": encoded(files, _version_of(head))}
            self.inventory.remember(content | {"whole_at": str(whole_at).encode()})
        saved = head.version if due or last is None else last.saved
        KEPT.put(self._key, _Kept(head, files, whole_at, saved, 0 if due else changes or 0), 1)


def _time_of(content: bytes | None) -> int:
    """A time as it was saved; that of nothing if it was not, or is damaged."""
    return int(content) if content is not None and content.isdigit() else _NEVER


def _version_of(head: Head) -> str:
    """What tells that a list of files is that of a version."""
    return f"{head.id} {head.version} {head.commit}"
