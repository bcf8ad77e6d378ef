"""The command and its exit codes: 0 done, 1 something is wrong with the data, 2 usage or project file."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from mv_assets.cli.terminal import usable
from mv_assets.errors import MvError
from mv_assets.spark.interrupts import ignored

# Each with what `--help` says of it: to load them all for that would take Spark's seconds.
_COMMANDS = {
    "status": "Show each view's buckets, watermark, lag and failures.",
    "plan": "Show what a refresh would do, why, and how many bytes it would read.",
    "refresh": "Compute what is missing or STALE: of all views, or of some and those they are based on.",
    "publish": "Show views as tables to other tools: what is missing there, of all views or of some.",
    "explain": "Say why a bucket is what it is: its files then and now, its last events and errors.",
    "query": "Answer a SELECT over the project's tables and views; `-` reads it from stdin.",
    "mark": "Mark a whole view, a range or one bucket STALE: it is computed again, changed or not.",
    "audit": "Compute buckets once more and compare them with what is stored.",
    "gc": "Delete view data that no bucket and no reader needs, and rewrite data that is mostly dead.",
    "adopt": "Put an earlier definition of a view in force again; by default the one this project declares.",
    "drop": "Forget a view's buckets and delete its data; a refresh computes it all again.",
    "metrics": "Print metrics of the views as OpenMetrics text, or serve them to a scraper.",
    "project": "Check the project file, or print its JSON schema for editors.",
    "demo": "Let something happen to the demo's files, and watch the views follow.",
    "dev": "Start Dagster's UI and daemon and a warm Spark; Ctrl-C stops them all.",
}
# What an interrupted command leaves behind.
_INTERRUPTED = {
    "refresh": "; what was committed stays, and another refresh goes on from there",
    "audit": "; another audit begins anew",
    "gc": "; another gc goes on from there",
    "publish": "; what is shown is whole, and another publish goes on from there",
}


class _Commands(click.Group):
    """Every error of ours is one message and an exit code, never a traceback.

    A command's module is loaded when it is called: `status` should not wait for what only `plan` needs.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        with usable():
            return super().main(*args, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"mv_assets.cli.commands.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MvError as error:
            click.echo(str(error), err=True)
            ctx.exit(2 if error.is_usage else 1)
        except KeyboardInterrupt:
            # Once is enough: all that is left is to go.
            ignored()
            click.echo(f"interrupted{_INTERRUPTED.get(str(ctx.invoked_subcommand), '')}", err=True)
            ctx.exit(1)


_EXAMPLES = """\b
Examples:
  mv-assets dev                                   the demo, with Dagster and Spark
  mv-assets --project project.yaml project check
  mv-assets plan                                  of project.yaml in this folder
  mv-assets refresh
"""


@click.group(cls=_Commands, epilog=_EXAMPLES)
@click.version_option(package_name="mv_assets")
@click.option(
    "--project",
    "file",
    envvar="MV_ASSETS_PROJECT",
    type=click.Path(path_type=Path),
    help="The project file; by default the one that MV_ASSETS_PROJECT names, else project.yaml in this "
    "folder, else the demo's, which is written to .mv_assets on first use.",
)
@click.pass_context
def main(ctx: click.Context, file: Path | None) -> None:
    """Self-healing materialized views for the data lake."""
    # Names of files have characters that not every pipe knows.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    from mv_assets.cli.session import Session  # noqa: PLC0415 - what `--help` need not wait for

    ctx.obj = Session(file)
