"""Files in columns, in parts that listings share: of a million, those that did not change are not copied."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, compress
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from mv_assets.state.model import Segment

T = TypeVar("T")
Numbers = npt.NDArray[np.int64]

NUMBERS = ("crcs", "starts", "ends", "sizes", "changed", "identities")
# Of so many names each is looked for among all; of more, each of all is looked for among them.
_FEW = 16
# Neighbours of so many numbers are put together: a step for each of a thousand tiny ones would take longer.
_TINY = 4_096


@dataclass(slots=True, eq=False)
class Part:
    """Files that have a range, in columns; by name what differs per file, where there is something to say.

    Once it is in a listing it does not change any more.
    """

    names: list[str] = field(default_factory=list)
    crcs: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))
    sizes: array[int] = field(default_factory=lambda: array("q"))
    changed: array[int] = field(default_factory=lambda: array("q"))
    identities: array[int] = field(default_factory=lambda: array("q"))
    nulls: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, Mapping[str, str | None]] = field(default_factory=dict)
    # Where those outside of the table are.
    elsewhere: dict[str, str] = field(default_factory=dict)
    _hashes: Numbers | None = field(default=None, repr=False)

    def segment(self, at: int) -> Segment:
        return Segment(self.names[at], self.crcs[at], self.starts[at], self.ends[at])

    def among(self, names: AbstractSet[str]) -> Sequence[int]:
        """The places of those of its files that have one of these names."""
        if len(names) > _FEW:
            return list(compress(range(len(self.names)), map(names.__contains__, self.names)))
        if self._hashes is None or len(self._hashes) < len(self.names):
            self._hashes = np.fromiter(map(hash, self.names), np.int64, len(self.names))
        wanted = np.fromiter(map(hash, names), np.int64, len(names))
        found: list[int] = np.flatnonzero(np.isin(self._hashes, wanted)).tolist()
        return [at for at in found if self.names[at] in names]


class Joined(Sequence[T]):
    """Columns of parts, one behind the other, as one; what is appended is its own."""

    __slots__ = ("_columns", "_firsts")

    def __init__(self, columns: Iterable[MutableSequence[T]], own: MutableSequence[T]) -> None:
        self._columns = [*(column for column in columns if len(column)), own]
        self._firsts = [0]
        for column in self._columns[:-1]:
            self._firsts.append(self._firsts[-1] + len(column))

    def __len__(self) -> int:
        return self._firsts[-1] + len(self._columns[-1])

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._columns)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
            if at < 0:
                raise IndexError(at)
        which = bisect_right(self._firsts, at) - 1
        return self._columns[which][at - self._firsts[which]]

    def __contains__(self, value: object) -> bool:
        return any(value in column for column in self._columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence | array) and [*self] == [*other]

    def __hash__(self) -> int:
        raise TypeError("it grows")

    def __repr__(self) -> str:
        return repr([*self])

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        for at, each in enumerate(self):
            if each == value and at >= start and (stop is None or at < stop):
                return at
        raise ValueError(f"{value!r} is not there")

    def append(self, value: T) -> None:
        self._columns[-1].append(value)

    def some(self, places: Iterable[int]) -> list[T]:
        """The values at some places, of which those that follow each other are mostly in one column."""
        found: list[T] = []
        column, first, stop = self._columns[0], 0, 0
        for at in places:
            if not first <= at < stop:
                which = bisect_right(self._firsts, at) - 1
                column, first = self._columns[which], self._firsts[which]
                stop = first + len(column)
            found.append(column[at - first])
        return found

    def columns(self) -> Iterator[Any]:
        return (column for column in self._columns if len(column))


class Merged(MutableMapping[str, T]):
    """What parts say by name, as one; put together when it is first asked for a name.

    What is set is its own.
    """

    __slots__ = ("_found", "_parts")

    def __init__(self, parts: Iterable[Mapping[str, T]]) -> None:
        self._parts = [part for part in parts if part]
        self._found: dict[str, T] | None = None if self._parts else {}

    @property
    def _all(self) -> dict[str, T]:
        if self._found is None:
            found: dict[str, T] = {}
            for part in self._parts:
                found |= part
            self._found = found
        return self._found

    def __bool__(self) -> bool:
        return bool(self._parts) if self._found is None else bool(self._found)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __getitem__(self, name: str) -> T:
        return self._all[name]

    def __setitem__(self, name: str, value: T) -> None:
        self._all[name] = value

    def __delitem__(self, name: str) -> None:
        del self._all[name]

    def __repr__(self) -> str:
        return repr(self._all)


def some(column: Sequence[T] | Joined[T], places: Iterable[int]) -> list[T]:
    """The values of a column at some places."""
    return column.some(places) if isinstance(column, Joined) else [column[at] for at in places]


def pieces(column: array[int] | Joined[int]) -> list[Numbers]:
    """A column for numpy, without a copy of what is large; columns of one listing come in alike pieces."""
    if isinstance(column, array):
        return [np.frombuffer(column, np.int64)] if column else []
    found: list[Numbers] = []
    tiny: list[Numbers] = []
    for each in column.columns():
        numbers = np.frombuffer(each, np.int64)
        if len(numbers) < _TINY:
            tiny.append(numbers)
            continue
        if tiny:
            found.append(np.concatenate(tiny))
            tiny = []
        found.append(numbers)
    if tiny:
        found.append(np.concatenate(tiny))
    return found
