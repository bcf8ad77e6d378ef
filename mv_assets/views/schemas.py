"""A declared table held against the real one: its columns, and whether its time column is one."""

from __future__ import annotations

from collections.abc import Mapping

from mv_assets.config import Table
from mv_assets.config.checks import suggestion
from mv_assets.config.errors import Mistake
from mv_assets.errors import MvError
from mv_assets.spark_sql.scope import Source
from mv_assets.tables.listing import refusals
from mv_assets.tables.open import open_table
from mv_assets.tables.types import INTEGERS, TIMES
from mv_assets.views.view import unseen

# The columns of a table that views may mean, by the views' names; None are all.
Mentioned = Mapping[str, frozenset[str] | None]


def known(
    table: Table, used: frozenset[str], mentioned: Mentioned, *, listed: bool
) -> tuple[Source, list[Mistake]]:
    """The table with its columns, and what is wrong with it.

    That it can't be listed, or not all that is used of it can be read, counts only if it has to be listed.
    """
    wanted = used if table.time_column is None else used | {table.time_column}
    opened = open_table(table, None, lambda: 0)
    try:
        columns = opened.columns(wanted, everywhere=True)
        refused = opened.refused() if listed else {}
    except MvError as error:
        return unseen(table), [Mistake(f"tables.{table.name}.path", str(error))] if listed else []
    mistakes = [
        Mistake(f"views.{view}", why)
        for view, names in mentioned.items()
        for why in refusals(table.name, refused, names)
    ]
    if columns is None or table.time_column is None:
        return Source(table.name, columns, table.time_column, table.time_unit), mistakes
    kind, wrong = _time_type(table, columns)
    grain = "day" if kind == "date" else None
    return Source(table.name, columns, table.time_column, table.time_unit, grain), [*mistakes, *wrong]


def _time_type(table: Table, columns: Mapping[str, str]) -> tuple[str | None, list[Mistake]]:
    where = f"tables.{table.name}"
    folded = {name.lower(): kind for name, kind in columns.items()}
    kind = folded.get(str(table.time_column).lower())
    if kind is None:
        close = suggestion(str(table.time_column), list(columns))
        what = f"the table has no column {table.time_column}; {close}"
        return None, [Mistake(f"{where}.time_column", what)]
    if kind in INTEGERS and table.time_unit is None:
        what = f"{table.time_column} holds integers ({kind}); give their time_unit: s, ms, us or ns"
        return kind, [Mistake(f"{where}.time_column", what)]
    if kind in TIMES and table.time_unit is not None:
        what = f"{table.time_column} is a {kind} already; take time_unit out"
        return kind, [Mistake(f"{where}.time_unit", what)]
    if kind not in TIMES | INTEGERS:
        wanted = "a time column is a date, a timestamp, or an integer with a time_unit"
        what = f"{table.time_column} has type {kind}; {wanted}"
        return kind, [Mistake(f"{where}.time_column", what)]
    return kind, []
