"""`mv-assets dev`: Dagster, a warm Spark and, for the demo, new files, all in the foreground."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from mv_assets.cli.dev import dagster
from mv_assets.cli.dev.edits import Edits, watching
from mv_assets.cli.dev.kept import Kept
from mv_assets.cli.dev.lock import locked
from mv_assets.cli.dev.ports import LOOPBACK, free_port
from mv_assets.cli.dev.spark import Address, WarmSpark, spark_server
from mv_assets.cli.dev.supervisor import Signals, Supervisor, feeding
from mv_assets.cli.session import Session
from mv_assets.cli.warm_spark import told
from mv_assets.config.file import ACCEPTED, INTERVAL
from mv_assets.demo import Demo
from mv_assets.spark.proxies import direct
from mv_assets.spark.startup import REMOTE, is_local

# Dagster comes to its sensors every five seconds, and to one of five seconds now and then only every ten.
_INTERVAL_S = "2"


@click.command(epilog="Example: mv-assets dev")
@click.option(
    "--port",
    default=3000,
    show_default=True,
    type=click.IntRange(1, 65_535),
    help="Port of the UI, or the next free one after it.",
)
@click.pass_context
def dev(ctx: click.Context, port: int) -> None:
    """Start Dagster's UI and daemon and a warm Spark; Ctrl-C stops them all.

    Without a project this is the demo, to whose files new ones are added every few seconds.
    """
    session: Session = ctx.obj
    out = Console(stderr=True, highlight=False, soft_wrap=True)
    signals, logs = Signals(), session.home / "logs"
    # First of all: if another project was meant, there is nothing to be written here.
    file = session.project_file
    with ExitStack() as stopped:
        lock = stopped.enter_context(locked(session.home))
        # Mistakes are told before anything runs.
        edits = Edits.begun(
            file,
            session.home / "dev.project.yaml",
            lambda version: session.catalog(schemas=True, version=version),
            out.print,
        )
        stopped.enter_context(signals.counted())
        environment = _environment(session, file) | {ACCEPTED: str(edits.accepted)}
        if os.environ.get("DAGSTER_HOME"):
            out.print(
                escape(f"DAGSTER_HOME is in use: {environment['DAGSTER_HOME']}, with its runs and settings")
            )
        # Should this process be killed, what it started goes on, and must not get a second one beside it.
        keep = [lock.descriptor]
        warm = None
        if is_local(edits.spark):
            at = Address(free_port())
            warm = WarmSpark(spark_server(edits.spark, at, environment, logs, keep), at, out.print)
            environment[REMOTE] = at.url
            stopped.enter_context(told(session.home, at.url, edits.spark))
        ui_port = _ui_port(port, out)
        child = dagster.dagster_dev(ui_port, environment, logs, keep)
        served = Kept(
            child,
            lambda: (how := dagster.loaded_by(child, ui_port)) is not None and not how.lost,
            out.print,
            # What the last one left unfinished nobody else would ever end.
            lambda: _fail_leftovers(environment),
        )
        out.print("starting Dagster" + (" and Spark ..." if warm else " ..."))
        if session.file is None:
            stopped.enter_context(feeding(Demo.here(), out.print))
        stopped.enter_context(watching(edits, lambda: dagster.reloaded(child, ui_port)))
        notice = _Notice(out, ui_port, warm, logs, file, demo=session.file is None)
        code = Supervisor(served, ui_port, warm, notice.print, signals).run(lock)
    ctx.exit(code)


def _environment(session: Session, file: Path) -> dict[str, str]:
    """What all that is started here has in common with the commands of this project."""
    given = dict(os.environ)
    ours = dagster.home(given.get("DAGSTER_HOME"), session.home / "dagster")
    here = Path(sys.executable).parent
    return {
        **given,
        **direct(given),
        "MV_ASSETS_HOME": str(session.home),
        "MV_ASSETS_PROJECT": str(file.absolute()),
        "DAGSTER_HOME": str(ours),
        INTERVAL: given.get(INTERVAL) or _INTERVAL_S,
        "PATH": os.pathsep.join([str(here), given.get("PATH", os.defpath)]),
    }


def _ui_port(wanted: int, out: Console) -> int:
    found = free_port(wanted)
    if found != wanted:
        out.print(f"port {wanted} is taken; Dagster's UI gets {found}")
    return found


def _fail_leftovers(environment: Mapping[str, str]) -> None:
    """Those of our own home, which is locked; who else uses somebody's own is not known."""
    if not os.environ.get("DAGSTER_HOME"):
        dagster.fail_leftovers(Path(environment["DAGSTER_HOME"]))


@dataclass(frozen=True, slots=True)
class _Notice:
    """What to say once all is up."""

    out: Console
    ui_port: int
    warm: WarmSpark | None
    logs: Path
    file: Path
    demo: bool

    def print(self, how: dagster.Loaded) -> None:
        for name, error in how.errors.items():
            self.out.print(f"[bold red]{escape(name)} can't be loaded:[/] {escape(error.strip())}")
            self.out.print("  mend it, then reload the location in the UI, under Deployment")
        self._line("Dagster's UI", f"http://{LOOPBACK}:{self.ui_port}")
        if self.warm is not None:
            self._line("Spark", f"{self.warm.at}, for you alone")
        self._line("logs", _short(self.logs))
        self._line("project", f"{_short(self.file.absolute())}; loaded anew when you save it")
        if self.demo:
            self._line("demo", "a new file every few seconds; in another terminal: mv-assets status, then")
            self._line("", "mv-assets demo late, or correct, delete, backfill, poison, heal")
        self.out.print("Ctrl-C stops all of it")

    def _line(self, what: str, said: str) -> None:
        self.out.print(f"[bold]{what:<14}[/]{escape(said)}")


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
