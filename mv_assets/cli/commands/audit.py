"""`mv-assets audit`: compute stored buckets again, and quarantine those that differ."""

from __future__ import annotations

import click

from mv_assets.cli.options import own_spark_option
from mv_assets.cli.session import Session, finish


@click.command(epilog="Example: mv-assets audit trips_hourly --sample 25")
@click.argument("view")
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many buckets: the newest, and others by chance.  [default: 10]",
)
@click.option("--all", "whole", is_flag=True, help="Every bucket.")
@own_spark_option
@click.option("--json", "as_json", is_flag=True, help="For programs, with every bucket.")
@click.pass_context
def audit(
    ctx: click.Context, view: str, sample: int | None, *, whole: bool, own_spark: bool, as_json: bool
) -> None:
    """Compute buckets once more and compare them with what is stored.

    A bucket that differs, or whose files are missing or damaged, is marked STALE: the next refresh mends it.
    """
    session: Session = ctx.obj
    if whole and sample is not None:
        raise click.UsageError("give either --sample or --all")
    with session.project("audit", bars=True, own_spark=own_spark) as project:
        found = session.spark.again(lambda: project.audit(view, sample=None if whole else sample or 10))
    finish(ctx, found, as_json=as_json)
