"""Rows that are in a file and no longer in its table: by their places in it, or by the values they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from mv_assets.spark.errors import Unreadable
from mv_assets.tables.listing import Listing, RowDeletes
from mv_assets.tables.parquet.footer import Unusable

# A bit for each row, in words of 64 and stretches of rows: where none is deleted, a stretch is null.
_STRETCH, _WORD = 14, 6
_WORDS = 1 << (_STRETCH - _WORD)
# What a job sends to each of Spark's processes. If it is more, the job is done in parts.
_LARGEST = 128 << 20

Array = np.ndarray[Any, np.dtype[Any]]
# The places of a file's deleted rows, ascending.
Deleted = Callable[[str], pa.Int64Array]


class WithDeletes(Protocol):
    """A table that knows which rows of its files are deleted."""

    def deleted(self, listing: Listing, name: str) -> pa.Int64Array: ...


def deletes_of(listing: Listing, names: Iterable[str]) -> dict[str, RowDeletes]:
    """What takes rows out of some files, as far as it is out of any.

    Raises:
        Unreadable: it can't be told.

    """
    known = listing.details.deletes
    found = {name: known[name] for name in names if name in known}
    for name, deletes in found.items():
        if deletes.refused is not None:
            raise Unreadable(f"file {name}: {deletes.refused}")
    return found


def deleted_in(table: WithDeletes, listing: Listing) -> Deleted:
    """The places of deleted rows, by the name of the file that they are in."""

    def places(name: str) -> pa.Int64Array:
        try:
            return table.deleted(listing, name)
        except Unusable as error:
            raise Unreadable(f"file {name}: which of its rows are deleted is not known: {error}") from error

    return places


@dataclass(frozen=True, slots=True)
class Bits:
    """Which rows of a file are deleted: the stretches in which there are such, and the words of these."""

    touched: Array
    words: Array

    @property
    def size(self) -> int:
        return self.words.nbytes + 8 * len(self.touched)


def bits(places: pa.Int64Array) -> Bits:
    """The same rows, as Spark is to know them."""
    numbers = places.to_numpy()
    stretches, which = np.unique(numbers >> _STRETCH, return_inverse=True)
    rows = np.zeros((len(stretches), 1 << _STRETCH), dtype=np.bool_)
    rows[which, numbers & ((1 << _STRETCH) - 1)] = True
    touched = np.zeros(stretches.max(initial=-1) + 1, dtype=np.bool_)
    touched[stretches] = True
    return Bits(touched, np.packbits(rows, axis=1, bitorder="little").view(np.int64))


def as_lists(files: Iterable[Bits]) -> pa.ListArray:
    """The words of several files, each a list of stretches.

    Raises:
        Unreadable: they are too many to be sent around.

    """
    each = list(files)
    if sum(some.size for some in each) > _LARGEST:
        raise Unreadable(
            f"which rows of {len(each)} files are deleted takes more than {_LARGEST >> 20} MB to say; "
            "compact the table"
        )
    touched = np.concatenate([some.touched for some in each])
    words = np.concatenate([some.words for some in each]).reshape(-1)
    stretches = _lists(touched * _WORDS, pa.array(words), pa.array(~touched))
    return _lists(np.array([len(some.touched) for some in each]), stretches)


def _lists(lengths: Array, values: pa.Array, nulls: pa.BooleanArray | None = None) -> pa.ListArray:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=nulls)


def is_kept(lists: str, row: str) -> str:
    """The condition, as SQL, that a row is not deleted by such a list, from its place in the file."""
    stretch = f"get({lists}, CAST(shiftright({row}, {_STRETCH}) AS INT))"
    word = f"get({stretch}, CAST(shiftright({row}, {_WORD}) & {_WORDS - 1} AS INT))"
    return f"coalesce(getbit({word}, CAST({row} & 63 AS INT)), 0) = 0"
