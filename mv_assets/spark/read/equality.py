"""Rows that are deleted by their values: what equals a row of a delete file, where that applies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import DataType, StringType, StructField, StructType

from mv_assets.config import Storage
from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read.files import Held, Part, frame, quoted
from mv_assets.tables.listing import EqualityDelete, Listing
from mv_assets.tables.places import Place

# Files to which the same delete files apply have the same number: with it a row, and with all that it applies
# to a row of a delete file. However many they are, each side is read in one scan.
GROUP = "_mv_group"
_GROUPS, _GONE = "_mv_groups", "_mv_gone_"

# Columns by their ids, with their types.
_Columns = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Equality:
    """The delete files that apply to some files of a table."""

    listing: Listing
    names: Sequence[str]
    type_of: Callable[[str], DataType]
    storage: Storage | None = None

    @cached_property
    def _sets(self) -> dict[tuple[EqualityDelete, ...], str]:
        applied = dict.fromkeys(self.listing.details.deletes[name].equal for name in self.names)
        return {each: str(number) for number, each in enumerate(applied)}

    @property
    def groups(self) -> dict[str, str]:
        """The group of each file."""
        return {name: self._sets[self.listing.details.deletes[name].equal] for name in self.names}

    @cached_property
    def compared(self) -> dict[int, StructField]:
        """The columns whose values decide, by their ids; the table may have them no more."""
        names = {place.field_id: name for name, place in self.listing.details.columns.items()}
        return {
            number: StructField(names[number], self.type_of(self.listing.schema[names[number]]))
            if number in names
            else StructField(f"_mv_dropped_{number}", self.type_of(kind))
            for some in self._sets
            for each in some
            for number, kind in each.columns
        }

    @property
    def places(self) -> dict[str, Place]:
        """How these columns are found in files."""
        known = self.listing.details.columns
        return {
            part.name: known.get(part.name, Place(part.name, number))
            for number, part in self.compared.items()
        }

    def kept(self, spark: SparkSession, rows: DataFrame) -> DataFrame:
        """The rows, which have their groups and what is compared, without those that are deleted.

        Raises:
            Unreadable: a delete file is not there.

        """
        for columns, files in self._files().items():
            try:
                gone = self._gone(spark, columns, files)
            except Unreadable as error:
                others = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
                raise Unreadable(
                    f"what is deleted of file {self.names[0]}{others} is not known: {error}"
                ) from error
            rows = rows.join(gone, self._same(columns, rows, gone), "left_anti")
        return rows

    def _files(self) -> dict[_Columns, dict[str, list[str]]]:
        """Delete files by what they compare, each with the groups that it applies to."""
        found: dict[_Columns, dict[str, list[str]]] = {}
        for some, number in self._sets.items():
            for each in some:
                found.setdefault(each.columns, {}).setdefault(each.path, []).append(number)
        return found

    def _gone(self, spark: SparkSession, columns: _Columns, files: Mapping[str, Iterable[str]]) -> DataFrame:
        kinds = {f"{_GONE}{number}": (number, self.type_of(kind)) for number, kind in columns}
        held = {name: Held(name, kind, number) for name, (number, kind) in kinds.items()}
        fields = [StructField(name, kind) for name, (_, kind) in kinds.items()]
        texts = {path: (",".join(numbers),) for path, numbers in files.items()}
        part = Part(held, (_GROUPS,), texts)
        return frame(spark, [part], StructType([*fields, StructField(_GROUPS, StringType())]), self.storage)

    def _same(self, columns: _Columns, rows: DataFrame, gone: DataFrame) -> Column:
        """Nulls are equal here."""
        equal = [
            rows[quoted(self.compared[number].name)].eqNullSafe(gone[f"{_GONE}{number}"])
            for number, _ in columns
        ]
        return reduce(Column.__and__, equal, sql.find_in_set(rows[GROUP], gone[_GROUPS]) > 0)
