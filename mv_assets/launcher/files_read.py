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


@dataclass(slots=True)
class FilesRead:
    """Each with its stamp. Files that were not there are not waited for."""

    stamps: dict[str, _Stamp] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def noted(cls) -> Iterator[FilesRead]:
        """Note those that this process opens to read in the block, and the sources of its modules."""
        found, opened, on = cls(), set[str](), True

        def note(event: str, arguments: tuple[Any, ...]) -> None:
            if on and event == "open":
                path, _mode, flags = arguments
                if isinstance(path, str) and not flags & (os.O_WRONLY | os.O_RDWR):
                    opened.add(str(Path(path).absolute()))

        # There is no way to take it off again.
        sys.addaudithook(note)
        yield found
        on = False
        # A module is read from its source, or from what was compiled of that, which anybody may do again.
        sources = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        for path in opened | sources:
            if path is not None and not path.endswith(".pyc") and (stamp := _stamp(path)) is not None:
                found.stamps[path] = stamp

    def changed(self) -> str | None:
        """One that is another now, or gone."""
        return next((path for path, stamp in self.stamps.items() if _stamp(path) != stamp), None)


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
