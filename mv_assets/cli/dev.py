"""`mv-assets dev`: Dagster, a warm Spark and, for the demo, new files, all in the foreground."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from mv_assets.cli.serving import dagster
from mv_assets.cli.serving.lock import locked
from mv_assets.cli.serving.ports import LOOPBACK, free_port
from mv_assets.cli.serving.spark import WarmSpark, spark_server
from mv_assets.cli.serving.supervisor import Signals, Supervisor, feeding
from mv_assets.cli.session import Session
from mv_assets.demo import Demo
from mv_assets.engine.starting import REMOTE, is_local


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
    signals = Signals()
    with ExitStack() as stopped:
        lock = stopped.enter_context(locked(session.home))
        # Mistakes are told before anything runs.
        project = session.catalog(schemas=True).project
        stopped.enter_context(signals.counted())
        environment = _environment(session)
        logs = session.home / "logs"
        warm = None
        if is_local(project.spark):
            spark_port = free_port()
            child = spark_server(project.spark, spark_port, environment, logs)
            warm = WarmSpark(child, spark_port, out.print)
            environment[REMOTE] = warm.address
        ui_port = free_port(port)
        served = dagster.dagster_dev(ui_port, environment, logs)

        def up(how: dagster.Loaded) -> None:
            _announce(out, how, ui_port, warm, logs, demo=session.file is None)

        def before_dagster() -> None:
            if not os.environ.get("DAGSTER_HOME"):
                dagster.fail_leftovers(Path(environment["DAGSTER_HOME"]))

        out.print("starting Dagster" + (" and Spark ..." if warm else " ..."))
        if session.file is None:
            stopped.enter_context(feeding(Demo.here(), out.print))
        supervisor = Supervisor(served, ui_port, warm, up, out.print, signals)
        code = supervisor.run(before_dagster, lock)
    ctx.exit(code)


def _environment(session: Session) -> dict[str, str]:
    """What all that is started here has in common with the commands of this project."""
    given = dict(os.environ)
    ours = dagster.home(given.get("DAGSTER_HOME"), session.home / "dagster")
    here = Path(sys.executable).parent
    return {
        **given,
        "MV_ASSETS_HOME": str(session.home),
        "MV_ASSETS_PROJECT": str(session.project_file.absolute()),
        "DAGSTER_HOME": str(ours),
        "PATH": os.pathsep.join([str(here), given.get("PATH", os.defpath)]),
    }


def _announce(
    out: Console, how: dagster.Loaded, ui_port: int, warm: WarmSpark | None, logs: Path, *, demo: bool
) -> None:
    for name, error in how.errors.items():
        out.print(f"[bold red]{escape(name)} can't be loaded:[/] {escape(error.strip())}")
        out.print("  mend it, then reload the location in the UI, under Deployment")
    out.print(f"[bold]Dagster's UI[/]  http://{LOOPBACK}:{ui_port}")
    if warm is not None:
        out.print(f"[bold]Spark[/]         {warm.address}")
    out.print(f"[bold]logs[/]          {_short(logs)}")
    if demo:
        out.print(f"[bold]demo[/]          {_short(Demo.here().project)}; a new file every few seconds")
        out.print("              in another terminal: mv-assets status, then mv-assets demo late")
        out.print("              or correct, delete, backfill, poison, heal")
    out.print("Ctrl-C stops all of it")


def _short(path: Path) -> str:
    return escape(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
