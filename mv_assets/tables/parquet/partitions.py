"""Hive partitions: columns whose values stand in the folders' names, `day=2024-01-31/part-0.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from mv_assets.tables.times import TimeColumn, of_text

NULL = "__HIVE_DEFAULT_PARTITION__"
_INT = 1 << 31
_LONG = 1 << 63

Values = Mapping[str, str | None]


def values_of(name: str) -> Values:
    """The partition values of a file, by its name."""
    folder, _, _ = name.rpartition("/")
    return _of_folder(folder) if "=" in folder else {}


def value_of(name: str, column: str) -> tuple[bool, str | None]:
    """Whether a file's folders give a column its value, and which; Spark does not care for case."""
    for key, value in values_of(name).items():
        if key.lower() == column.lower():
            return True, value
    return False, None


@lru_cache(maxsize=65_536)
def _of_folder(folder: str) -> Values:
    pairs = (part.split("=", 1) for part in folder.split("/") if "=" in part)
    return {unquote(key): None if value == NULL else unquote(value) for key, value in pairs}


@dataclass(frozen=True, slots=True)
class HivePartitions(Mapping[str, Values]):
    """The partition values of many files, worked out when asked for."""

    names: Sequence[str]

    def __getitem__(self, name: str) -> Values:
        return values_of(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def types_of(folders: Iterable[str], time: TimeColumn | None = None) -> dict[str, str]:
    """The Spark type of each partition column, by the folders that have files in them.

    It follows from the values of the whole table: a job that reads some of the folders must not come to
    another type than one that reads others. But a folder that should say a time and does not is an error of
    its files, not of all.
    """
    found: dict[str, set[str]] = {}
    for folder in folders:
        for key, value in (_of_folder(folder) if "=" in folder else {}).items():
            values = found.setdefault(key, set())
            if value is not None and (time is None or _may_be(key, value, time)):
                values.add(value)
    return {key: _type(values) for key, values in found.items()}


def _may_be(key: str, value: str, time: TimeColumn) -> bool:
    return key.lower() != time.name.lower() or of_text(value, time.unit) is not None


def _type(values: set[str]) -> str:
    if not values:
        return "string"
    if all(_is_integer(value) for value in values):
        return "int" if all(-_INT <= int(value) < _INT for value in values) else "bigint"
    if any(of_text(value, None) is None for value in values):
        return "string"
    return "date" if all(len(value) == len("2024-01-31") for value in values) else "timestamp"


def _is_integer(value: str) -> bool:
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and -_LONG <= int(value) < _LONG
