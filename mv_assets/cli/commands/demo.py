"""`mv-assets demo`: something happens to the demo's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mv_assets.cli.session import Session, print_json
from mv_assets.clock import clock
from mv_assets.demo import Demo
from mv_assets.reports import show

if TYPE_CHECKING:
    from mv_assets.demo.events import Happened

_HELP = {
    "late": "A file with trips of some days ago arrives.",
    "correct": "A file is rewritten with other fares.",
    "delete": "The files of the oldest day are deleted, as retention does.",
    "backfill": "The day that was deleted last comes back.",
    "poison": "A file is damaged.",
    "heal": "The damaged file is whole again.",
}


_EXAMPLES = """\b
Examples:
  mv-assets demo late
  mv-assets demo poison
"""


@click.group(epilog=_EXAMPLES)
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Let something happen to the demo's files, and watch the views follow."""
    session: Session = ctx.obj
    if session.file is not None and session.file.absolute() != Demo.here().project:
        instead = "go to a folder without one" if session.named is None else "unset MV_ASSETS_PROJECT"
        raise click.UsageError(
            f"the project is {session.file}, and these events happen to the demo's files only; "
            f"{instead} to work with the demo"
        )


def _event(name: str) -> click.Command:
    @click.command(name, help=_HELP[name], epilog=f"Example: mv-assets demo {name}")
    @click.option("--json", "as_json", is_flag=True, help="For programs.")
    def command(*, as_json: bool) -> None:
        import numpy as np  # noqa: PLC0415 - `mv-assets demo --help` needs neither this nor Arrow

        from mv_assets.demo.events import happen  # noqa: PLC0415

        happened = happen(name, Demo.here(), clock(), np.random.default_rng())
        if as_json:
            print_json(
                {
                    "event": name,
                    "files": list(happened.files),
                    "buckets": {"trips_hourly": happened.hours, "trips_daily": happened.days},
                    "message": f"{happened.what}: {happened.follows}",
                }
            )
        else:
            _print(happened)

    return command


def _print(happened: Happened) -> None:
    out, hours = show.console(), happened.hours
    where = hours[0] if len(hours) == 1 else f"{hours[0]} to {hours[-1]}"
    out.print(f"[bold]{show.plain(happened.what)}[/]: {show.plain(happened.follows)}.")
    out.print(f"  concerned   trips_hourly {where}, trips_daily {', '.join(happened.days)}")
    out.print(f"  watch       mv-assets status, or mv-assets explain trips_hourly {hours[0]}")
    out.print("              or trips_hourly in Dagster's UI; without `mv-assets dev`, run mv-assets refresh")


for _name in _HELP:
    demo.add_command(_event(_name))
