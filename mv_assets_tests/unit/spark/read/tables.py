"""Tables whose files and deleted rows the tests make themselves, as a listing would tell of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from mv_assets.spark.read.arrow import ArrowReader
from mv_assets.spark.read.deletes import deleted_in
from mv_assets.spark.read.readers import LakehouseReader, Reader
from mv_assets.tables.listing import Details, EqualityDelete, Listing, RowDeletes
from mv_assets.tables.parquet.footer import Unusable
from mv_assets.tables.places import Place


@dataclass
class HandMade:
    """A table in a folder. Which rows are deleted is written into `places`, as if into a vector's file."""

    root: Path
    schema: Mapping[str, str]
    places: dict[str, Sequence[int]] = field(default_factory=dict)
    decoded: list[str] = field(default_factory=list)
    details: Details = field(default_factory=Details)

    def __post_init__(self) -> None:
        columns = {name: Place(name, number) for number, name in enumerate(self.schema, 1)}
        self.details = Details(str(self.root), columns=columns, partitions={}, deletes={})

    @property
    def listing(self) -> Listing:
        return Listing("events", "1", 0, schema=self.schema, details=self.details)

    def put(self, name: str, rows: pa.Table, **options: Any) -> Path:
        """Write a file whose columns have the ids of the table's."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(self.with_ids(rows), path, **options)
        return path

    def with_ids(self, rows: pa.Table, ids: Mapping[str, int] | None = None) -> pa.Table:
        known = {**{name: place.field_id for name, place in self.details.columns.items()}, **(ids or {})}
        fields = [
            part.with_metadata({"PARQUET:field_id": str(known[part.name])}) if part.name in known else part
            for part in rows.schema
        ]
        return rows.cast(pa.schema(fields))

    def give(self, name: str, **values: str | None) -> None:
        self.details = replace(self.details, partitions={**self.details.partitions, name: values})

    def delete(self, name: str, places: Iterable[int] = (), equal: Sequence[EqualityDelete] = ()) -> None:
        self.places[name] = sorted(places)
        told = ("told elsewhere",) if self.places[name] else ()
        deletes = {**self.details.deletes, name: RowDeletes(told, tuple(equal))}
        self.details = replace(self.details, deletes=deletes)

    def deleted(self, listing: Listing, name: str) -> pa.Int64Array:
        assert listing.details.deletes[name].places
        self.decoded.append(name)
        if name not in self.places:
            raise Unusable(f"vector v-{name} is not there")
        return pa.array(self.places[name], pa.int64())

    def reader(self, spark: SparkSession, wanted: Iterable[str] | None = None) -> LakehouseReader:
        return LakehouseReader(spark, self.listing, wanted, self.open, deleted_in(self, self.listing))

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(str(self.root / name))

    def by_arrow(self, spark: SparkSession, wanted: Iterable[str] | None = None) -> Reader:
        return ArrowReader(
            spark,
            self.reader(spark, wanted),
            self.listing,
            self.open,
            deleted_in(self, self.listing),
            pa.OSFile,
        )


def rows_of(reader: Reader, names: Sequence[str], where: str = "true") -> list[tuple[Any, ...]]:
    """What a reader gives, in order."""
    frame = reader.frame(names, reader.schema(names)).where(where)
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@contextmanager
def set_all(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """While the block runs, have a session set so."""
    before = {key: str(spark.conf.get(key)) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def plan_of(frame: DataFrame) -> str:
    """How Spark would compute a frame."""
    with redirect_stdout(StringIO()) as said:
        frame.explain(mode="formatted")
    return said.getvalue()


def scans_in(frame: DataFrame) -> int:
    """How many scans a frame is."""
    return len(re.findall(r"\) Scan parquet", plan_of(frame)))
