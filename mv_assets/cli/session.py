"""What the commands share: the project file that was named, and the project opened for one command."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any

import click

from mv_assets.cli.bars import Bars
from mv_assets.cli.warm_spark import SparkOfHome
from mv_assets.clock import clock
from mv_assets.config.home import home
from mv_assets.demo import Demo, lying_here
from mv_assets.progress import NO_PROGRESS
from mv_assets.project import Project, user
from mv_assets.reports import show
from mv_assets.reports.shown import Shown
from mv_assets.spark.interrupts import listening
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

    def catalog(self, **how: Any) -> Catalog:
        """The tables and views that the file declares."""
        return self._loaded(self.project_file, **how)

    @cached_property
    def spark(self) -> SparkOfHome:
        return SparkOfHome(self.home, lambda line: click.echo(line, err=True))

    @contextmanager
    def project(self, command: str, *, bars: bool = False, own_spark: bool = False) -> Iterator[Project]:
        """The project for one command, with `bars` for its progress on a terminal; Spark stops at its end."""
        logging.getLogger().addFilter(_not_of_py4j)
        with Bars() if bars else nullcontext(NO_PROGRESS) as progress:
            who = f"{user()} with mv-assets {command}"
            own = None if own_spark else self.spark.start
            opened = Project(partial(self._loaded, self.project_file), who=who, own=own, progress=progress)
            try:
                yield opened
            finally:
                # It takes a second, in which an impatient Ctrl-C would leave half of it.
                with listening(signal.SIG_IGN):
                    opened.close()

    def _loaded(self, file: Path, **how: Any) -> Catalog:
        catalog = load(file, **how)
        if not catalog.views:
            click.echo(f"{file} declares no view yet; add one under views:", err=True)
        return catalog


def finish(ctx: click.Context, found: Shown, *, as_json: bool) -> None:
    """Print what a command came to, and end with 1 if something is wrong."""
    if as_json:
        print_json(found.as_json())
    else:
        found.print(show.console())
    if found.is_wrong:
        ctx.exit(1)


def print_json(value: Any) -> None:
    """JSON goes to stdout alone; in ASCII, which every pipe knows.

    Only people want its lines broken: a map of many buckets takes several times as long that way.
    """
    click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None))


def _tell(written: Path) -> None:
    click.echo(f"{_UNNAMED}: the demo was written to {written}", err=True)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not py4j's, which leaves a trace of each interrupted call in everybody's log."""
    return "py4j" not in PurePath(record.pathname).parts
