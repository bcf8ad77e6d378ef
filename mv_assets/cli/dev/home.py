"""Writing below the home."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mv_assets.config.errors import HomeUnwritable


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system refuses in the block becomes an error of ours.

    Raises:
        HomeUnwritable: the folder, or a file in it, can't be made or written.

    """
    try:
        yield
    except OSError as error:
        raise HomeUnwritable(str(folder), error.strerror or str(error)) from error
