"""Which files were read to load code, and whether one of them has changed since."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_Stamp = tuple[int, int, int, int]
_OF_THE_SYSTEM = ("/proc/", "/sys/", "/dev/")
_TEMPORARY = ("tempfile.mkdtemp", "tempfile.mkstemp")

# Of the clocks that file systems stamp files by.
_COARSE_NS = 2_000_000_000


@dataclass(slots=True)
class FilesRead:
    """Each with its stamp; None for one that was not there."""

    stamps: dict[str, _Stamp | None] = field(default_factory=dict)
    # Those that may have changed between being read and being stamped.
    uncertain: set[str] = field(default_factory=set)
    # Temporary files and folders that were made meanwhile.
    made: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def noted(cls, since_ns: int) -> Iterator[FilesRead]:
        """Note those that this process opens to read in the block, and the sources of its modules.

        Nothing was read before `since_ns`: a file that is as it was then has not changed after it was read.
        """
        found, opened, written, on = cls(), set[str](), set[str](), True

        def note(event: str, arguments: tuple[Any, ...]) -> None:
            if on and event in _TEMPORARY:
                found.made.add(os.fsdecode(arguments[0]))
            if on and event == "open":
                path, _mode, flags = arguments
                if isinstance(path, str):
                    writes = flags & (os.O_WRONLY | os.O_RDWR)
                    (written if writes else opened).add(str(Path(path).absolute()))

        # There is no way to take it off again.
        sys.addaudithook(note)
        yield found
        on = False
        # A module is read from its source, or from what was compiled of that, which anybody may do again.
        sources = {path for module in list(sys.modules.values()) if (path := _source(module)) is not None}
        for path in opened | sources:
            if not path.endswith(".pyc"):
                stamp = found.stamps[path] = _stamp(path)
                # What the code writes itself is no edit.
                if stamp is not None and stamp[-1] >= since_ns - _COARSE_NS and path not in written:
                    found.uncertain.add(path)

    def left(self) -> list[str]:
        """The temporary files and folders that are still there."""
        return sorted(path for path in self.made if Path(path).exists())

    def changed(self) -> str | None:
        """One that is another now, or gone, or there; or that may be another than the one that was read."""
        if self.uncertain:
            return min(self.uncertain)
        return next((path for path, stamp in self.stamps.items() if _stamp(path) != stamp), None)


def _source(module: object) -> str | None:
    path = getattr(module, "__file__", None)
    return str(Path(path).absolute()) if isinstance(path, str) else None


def _stamp(path: str) -> _Stamp | None:
    """None for what is no file of a disk: the system's own tell each reader something else."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or path.startswith(_OF_THE_SYSTEM):
        return None
    # The last of them nobody can set: a file may be put in another's place under its number.
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
