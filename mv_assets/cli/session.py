"""What the commands share: the project file that was named, and the state it points to."""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from mv_assets.clock import clock
from mv_assets.config.home import home
from mv_assets.demo import Demo, lying_here
from mv_assets.errors import NoState
from mv_assets.state.manager import PartitionManager
from mv_assets.state.shared_clock import SharedClock
from mv_assets.state.store import Store, open_state
from mv_assets.views.catalog import Catalog, load

_UNNAMED = "no project was named (--project, MV_ASSETS_PROJECT)"


@dataclass(frozen=True)
class Session:
    """One call of the command line, with the project file that it named."""

    named: Path | None

    @cached_property
    def file(self) -> Path | None:
        """The file that was named, else one that lies here, which is then said; None means the demo."""
        if self.named is not None:
            return self.named
        found = next(iter(lying_here()), None)
        if found is not None:
            click.echo(f"{_UNNAMED}: it is {found}", err=True)
        return found

    def catalog(
        self,
        *,
        schemas: bool = False,
        listed: bool = False,
        only: Sequence[str] = (),
        version: Path | None = None,
    ) -> Catalog:
        catalog = load(self.project_file, schemas=schemas, listed=listed, only=only, version=version)
        if not catalog.views:
            click.echo(f"{self.project_file} declares no view yet; add one under views:", err=True)
        return catalog

    @property
    def project_file(self) -> Path:
        """The file to work with; the demo's is made if need be."""
        return Demo.here().ensured(clock(), _tell) if self.file is None else self.file

    @property
    def home(self) -> Path:
        """The folder of all that the embedded defaults write; a project's is beside its file."""
        if self.file is None:
            return Path(home()).absolute()
        return (self.file.parent / (os.environ.get("MV_ASSETS_HOME") or ".mv_assets")).absolute()

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
    click.echo(f"{_UNNAMED}: the demo was written to {written}", err=True)


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
