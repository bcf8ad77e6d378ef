"""What the commands share: the project file that was named, and the state it points to."""

from __future__ import annotations

import getpass
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mv_assets.errors import NoState
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.catalog import Catalog, load


def clock() -> int:
    """Now, in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Session:
    """One call of the command line."""

    file: Path | None

    def catalog(self, *, schemas: bool = False, only: Sequence[str] = ()) -> Catalog:
        return load(self.project_file, schemas=schemas, only=only)

    @property
    def project_file(self) -> Path:
        if self.file is None:
            raise click.UsageError("no project file; name one with --project FILE or MV_ASSETS_PROJECT")
        return self.file

    @contextmanager
    def state(self, catalog: Catalog) -> Iterator[Store]:
        """The state database, made if need be."""
        store = Store(catalog.project.state)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def existing_state(self, catalog: Catalog) -> Iterator[Store | None]:
        """The state database as it is; None if nobody has used it yet."""
        try:
            store = Store(catalog.project.state, create=False)
        except NoState:
            yield None
            return
        try:
            yield store
        finally:
            store.close()

    def manager(self, store: Store, command: str) -> PartitionManager:
        return PartitionManager(store, clock=clock, who=f"{_user()} with mv-assets {command}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that nobody has given a name.
        return f"user {os.getuid()}"


def print_json(value: Any) -> None:
    """JSON goes to stdout alone."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
