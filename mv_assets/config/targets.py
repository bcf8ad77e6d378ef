"""Where views appear as tables for other tools, as it is declared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from mv_assets.config.declared import Declared, written
from mv_assets.config.storage import has_credentials
from mv_assets.config.values import Duration, Text


class _Target(Declared):
    keep: Duration = written("1d")
    """How long a snapshot can still be read after the next one has come; gc keeps its files meanwhile."""


class IcebergTarget(_Target):
    """An Iceberg catalog in which views appear as tables."""

    format: Literal["iceberg"] = "iceberg"
    """The default is iceberg."""
    # It may hold a password or a token.
    catalog: dict[str, str] = Field(repr=False)
    """The catalog as pyiceberg takes it: type, uri, warehouse, ..., and the `name` that it goes by. Without
    a `warehouse`, one of type sql keeps the tables' metadata beside the views' data."""
    namespace: Text
    """Where in the catalog the tables are: a view is the table NAMESPACE.VIEW."""

    @field_validator("namespace")
    @classmethod
    def _names_no_folder(cls, namespace: str) -> str:
        """Metadata of the tables is in a folder of that name."""
        for part in namespace.split("."):
            if not part.strip() or not part.isprintable() or not {"/", "\\"}.isdisjoint(part):
                raise ValueError(f"{namespace!r} is no namespace; write NAME, or NAME.NAME, without slashes")
        return namespace


class DeltaTarget(_Target):
    """A folder in which views appear as Delta tables."""

    format: Literal["delta"] = "delta"
    """delta for Delta tables."""
    folder: Text | None = None
    """Folder or URI; a view is the table FOLDER/VIEW. By default that is the warehouse: in another one, only
    readers that follow paths out of a table's folder find the files."""
    storage_options: dict[str, str] = Field(default={}, repr=False)
    """Access to an object store, as the deltalake library takes it."""

    @field_validator("folder")
    @classmethod
    def _without_credentials(cls, folder: str | None) -> str | None:
        """It is shown: in Dagster, in messages, and to whoever reads the table."""
        if folder is not None and has_credentials(folder):
            raise ValueError("folder has credentials in it; write them below `storage_options`")
        return folder


TARGETS: dict[str, type[IcebergTarget | DeltaTarget]] = {"iceberg": IcebergTarget, "delta": DeltaTarget}
Target = IcebergTarget | DeltaTarget


def buckets_table(view: str) -> str:
    """The table beside that of a view, with a row a bucket."""
    return f"{view}__buckets"
