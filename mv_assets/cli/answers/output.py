"""Where an answer goes: stdout, or a file that is whole once it is there."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mv_assets.cli.errors import OutputUnwritable


@contextmanager
def opened(file: Path | None) -> Iterator[IO[bytes]]:
    """Stdout, or a file that takes the place of what was there when the block has ended well.

    Raises:
        OutputUnwritable: the file can't be written.

    """
    if file is None:
        out = sys.stdout.buffer
        yield out
        out.flush()
        return
    try:
        # A link stays one; a device or a pipe is written to, and never replaced.
        place = file.resolve()
        if place.exists() and not place.is_file():
            with place.open("wb") as out:
                yield out
            return
        with _beside(place) as out:
            yield out
    except OSError as error:
        raise OutputUnwritable(str(file), error.strerror or str(error)) from error


@contextmanager
def _beside(place: Path) -> Iterator[IO[bytes]]:
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            yield out
        if place.exists():
            shutil.copymode(place, part)
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
