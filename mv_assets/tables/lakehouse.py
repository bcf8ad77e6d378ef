"""What Delta and Iceberg tables share: a log names their files, and mostly states their time ranges."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import MappingProxyType
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.errors import MvError
from mv_assets.state.model import Segment
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets.tables.fingerprint import hashed
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.listing import ALWAYS, Broken, Listing, OnRead
from mv_assets.tables.parquet.footer import DamagedPages, Extent, Footer, Unusable, extent
from mv_assets.tables.parquet.statistics import ranged
from mv_assets.tables.parts import Part
from mv_assets.tables.places import Place, find, has_ids
from mv_assets.tables.times import TimeColumn, Unit, milliseconds, of_text
from mv_assets.tables.types import INTEGERS, shapes_in
from mv_assets.text import cause, silent

# Who reads the rows: Spark from the listed files, or Spark through the format's own connector.
Reader = Literal["files", "spark"]

BY_SPARK = "set `reader: spark`, so that Spark reads this version through the format's own connector"
LEAVE_OUT = f"leave it out of the view, or {BY_SPARK}"

_THREADS = 8
# What a look that is cut short may cost, in files; only their footers and times are read.
_BATCH = 200
_LONGEST = 300
_SPARK_UNITS: Mapping[str, Unit | Literal["d"]] = {"date": "d", "timestamp": "us", "timestamp_ntz": "us"}


class Active(NamedTuple):
    """A file of the listed version. Where `extent` is None, only the file's footer knows it.

    One that is `refused` fails its buckets, for that reason.
    """

    name: str
    crc: int
    size: int
    changed: int
    extent: Extent | None
    refused: str | None = None


def content(name: str, size: int, partition: Mapping[str, str | None], deletes: Sequence[str] = ()) -> int:
    """The crc of a file that never changes under its name: of all that decides which rows it gives."""
    return hashed(json.dumps([name, size, sorted(partition.items()), sorted(deletes)]))


def stated(
    rows: int | None, nulls: int | None, first: int | None, last: int | None, unit: Unit | Literal["d"]
) -> Extent | None:
    """The extent that statistics state; None if they don't."""
    if rows == 0:
        return Extent(None)
    if first is not None and last is not None and first <= last:
        return Extent(milliseconds(first, last, unit), nulls or 0, rows or 0)
    if rows is not None and nulls == rows:
        return Extent(None, nulls, rows)
    return None


def timeless(rows: int | None) -> Extent:
    """The extent of a dimension's file."""
    return Extent(None if rows == 0 else ALWAYS, rows=rows or 0)


def named(columns: Iterable[str], wanted: str) -> str | None:
    """The column of that name as the table spells it; Spark does not care for case."""
    listed = list(columns)
    if wanted in listed:
        return wanted
    return next((name for name in listed if name.lower() == wanted.lower()), None)


def time_of(
    table: str, where: str, columns: Mapping[str, str], time: TimeColumn
) -> tuple[str, Unit | Literal["d"]]:
    """The time column as the table spells it, and the unit of its values.

    Raises:
        TableUnreadable: there is none, or its type is not one for times.

    """
    name = named(columns, time.name)
    if name is None:
        raise TableUnreadable(table, where, f"it has no column {time.name}, which should be its time column")
    kind = columns[name]
    if kind in INTEGERS and time.unit is not None:
        return name, time.unit
    if kind in INTEGERS:
        why = f"its time column {name} holds integers, but the table declares no time_unit"
        raise TableUnreadable(table, where, why)
    if kind not in _SPARK_UNITS or time.unit is not None:
        wanted = "an integer" if time.unit is not None else "a date or timestamp"
        raise TableUnreadable(table, where, f"its time column {name} has type {kind}, not {wanted}")
    return name, _SPARK_UNITS[kind]


def of_footer(source: pa.NativeFile, time: TimeColumn, place: Place) -> Extent:
    """A file's extent by its footer, where its time column has that place.

    A file that was written before the column was added has its default value there, or nulls.

    Raises:
        Unusable: it is no Parquet file that could be read, or its column can't be found.

    """
    try:
        shapes = shapes_in(pq.ParquetFile(source))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Unusable(f"it can't be read as Parquet ({short(error)})") from error
    inside = find(place, shapes, ids=has_ids(shapes))
    if inside is not None:
        return extent(source, TimeColumn(inside.name, time.unit))
    rows = extent(source, None).rows
    if place.default is None:
        return Extent(None, rows, rows)
    span = of_text(place.default, time.unit)
    if span is None:
        raise Unusable(f"its time column {time.name} has the default {place.default}, which is not a time")
    return Extent(span if rows else None, rows=rows)


def enter(
    listing: Listing,
    files: Sequence[Active],
    read: Callable[[Active], Extent],
    how: str,
    inventory: Inventory,
    settle_ms: int,
    on_read: OnRead,
    gone: Iterable[str] | None = None,
) -> None:
    """Enter the files into the listing; read the footers of those whose extent is not known, once.

    `how` says by which column: an extent that was remembered by another one is not used. Files that are not
    among these are forgotten, or, where it is known which are `gone`, those only.

    Raises:
        TableRefused: a file is listed twice, so that its rows count twice.

    """
    refuse_twice(listing.table, [file.name for file in files])
    unread = {file.name: file for file in files if file.extent is None}
    found = _examined(unread, files, gone, read, hashed(how), inventory, on_read) if unread else {}
    for file in files:
        known = found.get(file.name)
        start_end, nulls = (file.extent or Extent(None))[:2] if known is None else (known.range, known.nulls)
        if nulls:
            listing.nulls[file.name] = nulls
        if known is not None and known.error is not None:
            listing.broken[file.name] = Broken(file.name, known.error, known.start_ms, known.end_ms)
            # The file may come back without a new version of its table.
            listing.recheck(listing.at + settle_ms)
        if start_end is None:
            listing.timeless.add(file.name)
            if known is not None and known.error is not None:
                listing.unread.add(file.name)
        else:
            segment = Segment(file.name, file.crc, *start_end)
            listing.add(segment, size=file.size, changed=file.changed, identity=identity(file))
            if file.refused is not None:
                listing.broken[file.name] = Broken(file.name, file.refused, *start_end)


def refuse_twice(table: str, names: Sequence[str]) -> None:
    """Refuse a table that lists a file twice, so that its rows count twice.

    Raises:
        TableRefused: it does.

    """
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise TableRefused(table, f"lists {twice} twice", "rewrite that file's rows")


def refuse_twice_in(
    table: str, parts: Sequence[Part], known: Collection[int], others: Sequence[str] = ()
) -> None:
    """The same for the files of parts, and others.

    Parts whose columns of names are `known`, by their ids, have no file twice, nor have two of them the same.

    Raises:
        TableRefused: a file is listed twice.

    """
    old = {id(part.names): part for part in parts if id(part.names) in known}
    left, new = dict(old), [*others]
    for part in parts:
        # A part that comes twice is new the second time.
        if left.pop(id(part.names), None) is None:
            new += part.names
    names = set(new)
    for part in old.values():
        new += (part.names[at] for at in part.among(names))
    refuse_twice(table, new)


def identity(file: Active) -> int:
    """What tells that a file is still the same."""
    return hashed(f"{file.name}\0{file.size}")


def _examined(
    unread: Mapping[str, Active],
    files: Sequence[Active],
    gone: Iterable[str] | None,
    read: Callable[[Active], Extent],
    how: int,
    inventory: Inventory,
    on_read: OnRead,
) -> dict[str, Known]:
    """What is known of files by their footers. The inventory keeps `how` in place of a checksum."""
    remembered = dict(inventory.known(None if gone is None else unread))
    known = {name: entry for name, entry in remembered.items() if name in unread and entry.crc == how}
    if gone is None:
        gone = remembered.keys() - {file.name for file in files}
    fresh = {
        name
        for name, entry in known.items()
        if entry.error is None and entry.identity == identity(unread[name])
    }
    # Those that failed before come last: read at each look, they must not use up its time for the others.
    left = sorted((file for name, file in unread.items() if name not in fresh), key=lambda f: f.name in known)

    def one(file: Active) -> tuple[Known, Footer | None]:
        last, footer = known.get(file.name), None
        try:
            found, error = read(file), None
        except (Unusable, OSError, MemoryError) as failed:
            found, error = Extent(last.range if last else None), _why(failed)
            if isinstance(failed, DamagedPages) and not _asked_before(last, file, error):
                footer = failed.footer
        start, end = found.range or (None, None)
        return Known(identity(file), how, start, end, found.nulls, error=error), footer

    whole, size = sum(file.size for file in left), 0
    found: dict[str, Known] = {}
    with ThreadPoolExecutor(_THREADS) as pool:
        for at in range(0, len(left), _BATCH):
            batch = left[at : at + _BATCH]
            examined = dict(zip((file.name for file in batch), pool.map(one, batch), strict=True))
            footers = {name: footer for name, (_, footer) in examined.items() if footer is not None}
            entries = ranged({name: entry for name, (entry, _) in examined.items()}, footers)
            # Before `on_read`, which may end the look: the next one goes on from here.
            inventory.save(entries)
            found |= entries
            size += sum(file.size for file in batch)
            on_read(len(found), size, len(left), whole)
    inventory.forget(gone)
    return {name: entry for name, entry in known.items() if name in fresh} | found


def _asked_before(last: Known | None, file: Active, error: str) -> bool:
    """Whether the footer was asked at an earlier look: files that can't be read are read at each."""
    return last is not None and last.trusted and (last.identity, last.error) == (identity(file), error)


def _why(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the table lists it, but it is not there"
    return str(error) if isinstance(error, Unusable) else f"it can't be opened ({short(error)})"


@contextmanager
def readable(table: str, where: str, options: Mapping[str, str]) -> Iterator[None]:
    """Whatever a format's library raises becomes the reason why the table can't be listed.

    It is said without the secrets among the options that the library was given.

    Raises:
        TableUnreadable: something was raised.

    """
    try:
        yield
    except MvError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the trouble of this table
        raise TableUnreadable(table, where, short(error, options)) from cause(error, options)


def short(error: BaseException, options: Mapping[str, str] = MappingProxyType({})) -> str:
    """What an error says, without secrets of the options, and the traces that some libraries append."""
    said = silent(str(error), options).strip().split("\n", 1)[0][:_LONGEST]
    return said or type(error).__name__
