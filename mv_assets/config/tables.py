"""Base tables and dimensions as they are declared, by format."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from mv_assets.config.declared import written
from mv_assets.config.storage import Stored
from mv_assets.config.values import Duration, Location, MaybeLocation, OwnName, Text

# Properties that say which catalog to ask, not how to reach files.
_OF_A_CATALOG = ("name", "type", "uri", "py-catalog-impl")


class _Table(Stored):
    name: OwnName
    """What the SQL of views calls it: lower-case letters, digits and underscores, a letter first."""
    time_column: Text | None = None
    """Column that places a row in time; a table without one is a dimension."""
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    """Unit of an integer time column, counted from 1970."""
    settle: Duration = written("5s")
    """A bucket is refreshed once its files have been quiet this long."""
    settle_at_most: Duration = written("1m")
    """A bucket whose files never rest is refreshed after this long all the same."""

    @model_validator(mode="after")
    def _consistent(self) -> _Table:
        if self.time_unit is not None and self.time_column is None:
            raise ValueError("time_unit is given without time_column; name the integer column it belongs to")
        if self.settle_at_most < self.settle:
            raise ValueError("settle_at_most is shorter than settle; make it at least as long")
        return self


class ParquetTable(_Table):
    """A folder of Parquet files, flat or with hive partitions (`day=2024-01-31/`)."""

    format: Literal["parquet"] = "parquet"
    """The default is parquet."""
    path: Location
    """Folder or URI; a relative path starts at the project file's folder."""
    files: Text = written("*")
    """Pattern of the names of data files. Hidden files and those with an underscore first never count."""


class DeltaTable(_Table):
    """A Delta table, by the files its log lists."""

    format: Literal["delta"] = "delta"
    """delta for a Delta table."""
    path: Location
    """Folder or URI of the table; a relative path starts at the project file's folder."""
    reader: Literal["files", "spark"] = "files"
    """Who reads the data: Spark reads the listed files itself, or through the format's own connector."""
    storage_options: dict[str, str] = Field(default={}, repr=False)
    """More that the deltalake library is to know of the store, in its own words."""


class IcebergTable(_Table):
    """An Iceberg table, by its path or through a catalog."""

    format: Literal["iceberg"] = "iceberg"
    """iceberg for an Iceberg table."""
    path: MaybeLocation = written(None)
    """Location of the table, whose version-hint.text says which metadata file is current; or such a file."""
    catalog: dict[str, str] | None = Field(default=None, repr=False)
    """With `identifier`, the catalog as pyiceberg takes it: type, uri, ..., and for type sql the `name` that
    its rows carry, if that is not default. With `path` no catalog is asked: these properties say how files
    are reached, in pyiceberg's own words, where `storage` does not say enough."""
    identifier: Text | None = None
    """Name of the table in the catalog: namespace.table."""
    unsafe: bool = False
    """With `path`, and without a version-hint.text: take the newest metadata file for the current one, though
    it may be of a commit that never happened."""
    reader: Literal["files", "spark"] = "files"
    """Who reads the data: Spark reads the listed files itself, or through the format's own connector."""

    @model_validator(mode="after")
    def _located(self) -> IcebergTable:
        if (self.path is None) == (self.identifier is None) or (self.path is None and self.catalog is None):
            raise ValueError("an Iceberg table has either a path, or a catalog and an identifier")
        if self.identifier is not None and self.unsafe:
            raise ValueError("unsafe is for a table by its path; a catalog says what is current, take it out")
        asked = [key for key in _OF_A_CATALOG if key in (self.catalog or {})]
        if self.path is not None and asked:
            raise ValueError(
                f"with a path no catalog is asked, but catalog has {', '.join(asked)}; "
                "give the identifier instead of the path, or keep only how files are reached (s3.endpoint)"
            )
        if not (self.catalog or {}).get("name", "default").strip():
            raise ValueError("catalog has an empty name; write the one its tables were made under")
        return self


FORMATS: dict[str, type[ParquetTable | DeltaTable | IcebergTable]] = {
    "parquet": ParquetTable,
    "delta": DeltaTable,
    "iceberg": IcebergTable,
}
Table = Annotated[ParquetTable | DeltaTable | IcebergTable, Field(discriminator="format")]
