"""`mv-assets project`: the project file itself."""

from __future__ import annotations

import click

from mv_assets.cli.session import Session, print_json
from mv_assets.config import DeclaredProject
from mv_assets.reports import show

_EXAMPLES = """\b
Examples:
  mv-assets --project project.yaml project check
  mv-assets project schema > project.schema.json
"""


@click.group(epilog=_EXAMPLES)
def project() -> None:
    """Check the project file, or print its JSON schema for editors."""


@project.command(epilog="Example: mv-assets project schema > project.schema.json")
def schema() -> None:
    """Print the JSON schema of the project file."""
    print_json(DeclaredProject.model_json_schema())


@project.command(epilog="Example: mv-assets --project project.yaml project check")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_context
def check(ctx: click.Context, *, as_json: bool) -> None:
    """Check the project file against the real tables.

    Every mistake is named at once, with its line. Where something is in an object store, Spark is started to
    see that it reaches it.
    """
    session: Session = ctx.obj
    catalog = session.catalog(schemas=True, listed=True)
    with session.project("project check") as opened:
        opened.check_stores()
    if as_json:
        names = {"tables": catalog.tables, "functions": catalog.functions, "views": catalog.views}
        print_json({key: list(found) for key, found in names.items()})
        return
    tables, views = show.count(len(catalog.tables), "table"), show.count(len(catalog.views), "view")
    click.echo(f"{session.project_file}: {tables} and {views}, no mistakes")
