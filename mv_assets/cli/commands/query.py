"""`mv-assets query`: a SELECT answered by views as far as they can be trusted, by the base table else."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path

import click

from mv_assets.cli.answers.formats import FORMATS
from mv_assets.cli.answers.prompt import Prompt
from mv_assets.cli.answers.questions import Questions
from mv_assets.cli.options import own_spark_option
from mv_assets.cli.session import Session, finish
from mv_assets.config.values import duration_of
from mv_assets.query.route.eligibility import Freshness


class _Span(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A duration as the project file has them."""

    name = "duration"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        try:
            found = value if isinstance(value, timedelta) else timedelta(milliseconds=duration_of(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not found:
            self.fail(
                "0 is no time at all; for an answer that is not stale, ask with --freshness strict",
                param,
                ctx,
            )
        return found


_EXAMPLES = """\b
Examples:
  mv-assets query "SELECT zone_id, sum(fare) AS fare FROM trips GROUP BY ALL"
  mv-assets query --file week.sql --format parquet --output week.parquet
  mv-assets query --explain "SELECT count(*) FROM trips"
  mv-assets query --advise "SELECT zone_id, max(fare) FROM trips GROUP BY ALL"
  mv-assets query                          a prompt, if there is a terminal
"""


@click.command(epilog=_EXAMPLES)
@click.argument("sql", required=False)
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="The query is in this file."
)
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), help="json: one object per line.  [default: table]"
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the rows to this file, which appears once it is whole.",
)
@click.option(
    "--freshness",
    type=click.Choice([each.value for each in Freshness]),
    default=Freshness.STRICT.value,
    show_default=True,
    help="strict: as the base table is now; bounded: at most max_staleness old; off: without views; "
    "stored: a view's rows as they were last committed.",
)
@click.option(
    "--max-staleness",
    type=_Span(),
    help="With bounded: how old, for example 2h.  [default: what each view declares]",
)
@click.option("--explain", "explained", is_flag=True, help="No rows: what they would come from, and why.")
@click.option("--advise", "advised", is_flag=True, help="No rows: which view would answer it.")
@own_spark_option
@click.option("--json", "as_json", is_flag=True, help="For programs: columns, rows and what served them.")
@click.pass_context
def query(
    ctx: click.Context,
    sql: str | None,
    file: Path | None,
    form: str | None,
    output: Path | None,
    freshness: str,
    max_staleness: timedelta | None,
    *,
    explained: bool,
    advised: bool,
    own_spark: bool,
    as_json: bool,
) -> None:
    """Answer a SELECT over the project's tables and views; `-` reads it from stdin.

    The answer is the one that the base tables give; views make it faster.
    """
    session: Session = ctx.obj
    _refuse(form, output, freshness, max_staleness, explained=explained, advised=advised, as_json=as_json)
    text = _text(sql, file)
    if text is None and (form or output or explained or advised or as_json):
        raise click.UsageError("there is no query; give it as an argument, with --file, or as - on stdin")
    with session.project("query", own_spark=own_spark) as project:
        questions = Questions(project, freshness, max_staleness, session.spark.again)
        if text is None:
            Prompt(questions, session.home).run()
        elif advised:
            finish(ctx, project.advise(text), as_json=as_json)
        elif explained:
            questions.explain(text, as_json=as_json)
        elif as_json:
            questions.document(text, output)
        else:
            questions.rows(text, form or "table", output)


def _refuse(
    form: str | None,
    output: Path | None,
    freshness: str,
    max_staleness: timedelta | None,
    *,
    explained: bool,
    advised: bool,
    as_json: bool,
) -> None:
    if max_staleness is not None and freshness != Freshness.BOUNDED:
        raise click.UsageError("--max-staleness goes with --freshness bounded")
    if as_json and form is not None:
        raise click.UsageError("give either --json or --format")
    if explained and (form is not None or output is not None):
        raise click.UsageError("--explain has no rows to write; leave out --format and --output")
    if advised and (explained or form is not None or output is not None):
        raise click.UsageError("--advise only proposes a view; leave out --explain, --format and --output")
    if form == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    if output is not None and not output.absolute().parent.is_dir():
        raise click.UsageError(f"--output: there is no folder {output.absolute().parent}; make it first")


def _text(sql: str | None, file: Path | None) -> str | None:
    """The query; None if a person at a terminal is to be asked for it."""
    if sql is not None and file is not None:
        raise click.UsageError("give either a query or --file")
    try:
        if file is not None:
            return file.read_text(encoding="utf-8")
        if sql == "-" or (sql is None and not sys.stdin.isatty()):
            return sys.stdin.read()
    except (UnicodeDecodeError, OSError) as error:
        raise click.UsageError(f"the query can't be read: {error}") from error
    return sql
