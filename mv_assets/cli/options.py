"""Options that name buckets of a view, the same for every command that has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def range_options(command: Command) -> Command:
    """--bucket, or --from and --to; and --extend."""
    for option in (
        click.option("--extend", is_flag=True, help="Let the view cover buckets before its start."),
        click.option("--to", "last", metavar="BUCKET", help="Last bucket of the range, included."),
        click.option("--from", "first", metavar="BUCKET", help="First bucket of a range."),
        click.option("--bucket", help="One bucket, by its start: 2024-01-31 or 2024-01-31T15:00."),
    ):
        command = option(command)
    return command


own_spark_option = click.option(
    "--own-spark",
    is_flag=True,
    help="Start a Spark of this command's own, whatever `mv-assets dev` keeps warm.",
)


def asked(
    bucket: str | None, first: str | None, last: str | None, *, extend: bool, views: Sequence[str] = ("",)
) -> str | tuple[str, str] | None:
    """The buckets that were asked for, by their keys; None for the whole view."""
    if (bucket or first or last or extend) and len(views) != 1:
        raise click.UsageError(
            "--bucket, --from, --to and --extend are for one view: mv-assets refresh VIEW --bucket ..."
        )
    if bucket is None and first is None and last is None:
        if extend:
            raise click.UsageError("--extend goes with --bucket or --from and --to")
        return None
    if bucket is not None and (first is not None or last is not None):
        raise click.UsageError("give either --bucket or --from and --to")
    if bucket is not None:
        return bucket
    if first is None or last is None:
        raise click.UsageError("a range has both --from and --to")
    return first, last
