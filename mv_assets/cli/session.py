"""What the commands share: the project file that was named, and the state it points to."""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mv_assets.demo import unnamed
from mv_assets.errors import NoState
from mv_assets.state.manager import PartitionManager
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, open_state
from mv_assets.views.catalog import Catalog, load


@dataclass(frozen=True, slots=True)
class Session:
    """One call of the command line."""

    file: Path | None

    def catalog(self, *, schemas: bool = False, listed: bool = False, only: Sequence[str] = ()) -> Catalog:
        catalog = load(self.project_file, schemas=schemas, listed=listed, only=only)
        if not catalog.views:
            click.echo(f"{self.project_file} declares no view yet; add one under views:", err=True)
        return catalog

    @property
    def project_file(self) -> Path:
        """The file that was named, else the demo's."""
        return unnamed(_tell) if self.file is None else self.file

    @property
    def home(self) -> Path:
        """The folder of all that the embedded defaults write; a project's is beside its file."""
        beside = Path() if self.file is None else self.file.parent
        return (beside / (os.environ.get("MV_ASSETS_HOME") or ".mv_assets")).absolute()

    @contextmanager
    def state(self, catalog: Catalog) -> Iterator[Store]:
        """The state database, made if need be."""
        store = open_state(catalog.project.state)
        try:
            yield store
        finally:
            store.close()

    @contextmanager
    def existing_state(self, catalog: Catalog) -> Iterator[Store | None]:
        """The state database as it is; None if nobody has used it yet."""
        try:
            store = open_state(catalog.project.state, create=False)
        except NoState:
            yield None
            return
        try:
            yield store
        finally:
            store.close()

    def manager(self, store: Store, command: str) -> PartitionManager:
        who = f"{_user()} with mv-assets {command}"
        return PartitionManager(store, clock=SharedClock(store), who=who)


def _tell(written: Path) -> None:
    message = f"no project was named (--project, MV_ASSETS_PROJECT): the demo was written to {written}"
    click.echo(message, err=True)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that nobody has given a name.
        return f"user {os.getuid()}"


def print_json(value: Any) -> None:
    """JSON goes to stdout alone; in ASCII, which every pipe knows.

    Only people want its lines broken: a map of many buckets takes several times as long that way.
    """
    click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None))
