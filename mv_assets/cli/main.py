"""The command and its exit codes: 0 done, 1 something is wrong with the data, 2 usage or project file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mv_assets.cli.adopt import adopt
from mv_assets.cli.dev import dev
from mv_assets.cli.explain import explain
from mv_assets.cli.mark import mark
from mv_assets.cli.plan import plan
from mv_assets.cli.project import project
from mv_assets.cli.session import Session
from mv_assets.cli.status import status
from mv_assets.errors import BucketError, MvError, ProjectError, Refused


class _Commands(click.Group):
    """Every error of ours is one message and an exit code, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MvError as error:
            click.echo(str(error), err=True)
            ctx.exit(2 if isinstance(error, ProjectError | Refused | BucketError) else 1)


@click.group(cls=_Commands)
@click.version_option(package_name="mv_assets")
@click.option(
    "--project",
    "file",
    envvar="MV_ASSETS_PROJECT",
    type=click.Path(path_type=Path),
    help="The project file; by default the one that MV_ASSETS_PROJECT names.",
)
@click.pass_context
def main(ctx: click.Context, file: Path | None) -> None:
    """Self-healing materialized views for the data lake."""
    ctx.obj = Session(file)


for command in (status, plan, explain, mark, adopt, project, dev):
    main.add_command(command)
