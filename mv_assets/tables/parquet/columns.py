"""Which columns the files of a folder have, by as few footers as tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nlargest
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.tables.files.folders import Folder, Walk
from mv_assets.tables.types import Sampled, common_type, is_one_type, types_in

_SAMPLE = 16
_NEWEST = 3
_ALWAYS_READ = 3
# A column may be in any one file; but for one that is misspelt, a lake of a million is not gone through.
_MOST = 2_000


def columns_in(
    folder: Folder, walk: Walk, wanted: frozenset[str], *, everywhere: bool
) -> dict[str, str] | None:
    """The columns of a few files, and of more while a `wanted` one is missing; None if none can be read.

    Unless all were read, and no column has types that do not go together, others may have wider ones.
    """
    missing, read = {name.lower() for name in wanted}, 0
    kinds: dict[str, Counter[str]] = {}
    for tried, types in enumerate(_footers(folder, _places(walk, everywhere=everywhere)), 1):
        for column, kind in types.items():
            kinds.setdefault(column, Counter())[kind] += 1
        read, missing = read + bool(types), missing - {column.lower() for column in types}
        # Where nothing can be read, each try may take its time.
        if (read >= _ALWAYS_READ and not missing) or (tried > _SAMPLE and not read):
            break
    found = {column: common_type(counted) for column, counted in kinds.items()}
    mixed = [column for column, counted in kinds.items() if not is_one_type(counted)]
    unsure = mixed if read == len(walk.names) else found
    return (Sampled(found, unsure) if unsure else found) or None


def _footers(folder: Folder, names: Iterable[str]) -> Iterator[dict[str, str]]:
    """The columns of each file, as many at once as the folder rewards."""
    left = iter(names)
    with ThreadPoolExecutor(folder.threads) as pool:
        while some := list(islice(left, folder.threads)):
            yield from pool.map(partial(_types, folder), some)


def _types(folder: Folder, name: str) -> dict[str, str]:
    """A file's columns; none if it can't be read, which is that file's error."""
    try:
        with folder.open(name) as file:
            return types_in(pq.ParquetFile(file))
    except (pa.ArrowException, OSError, ValueError):
        return {}


def _places(walk: Walk, *, everywhere: bool) -> Iterable[str]:
    """Names to look for columns in: the last and the newest, the first, some between; then more between."""
    names = sorted(walk.names)
    if not names:
        return ()
    newest = nlargest(_NEWEST, range(len(names)), key=walk.changed.__getitem__)
    found = [names[-1], *(walk.names[at] for at in newest), names[0], *_spread(names, _SAMPLE)]
    return dict.fromkeys(found + _spread(names, _MOST) if everywhere else found)


def _spread(names: list[str], parts: int) -> list[str]:
    return [names[(len(names) - 1) * part // parts] for part in range(1, parts)]
