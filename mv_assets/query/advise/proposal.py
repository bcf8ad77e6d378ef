"""A view that would answer a query, as it goes into the project file."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

import yaml

from mv_assets.config import MaterializedView
from mv_assets.config.values import WITH_THE_DATA


@dataclass(frozen=True, slots=True)
class Proposal:
    """A view to declare, or one that is declared and to be changed: then `change` says how."""

    view: MaterializedView
    change: str | None = None

    @property
    def yaml(self) -> str:
        """What to write: a whole view, or a changed view's SQL."""
        sql = f"sql: |\n{indent(str(self.view.sql), '  ')}\n"
        if self.change is not None:
            return sql
        view = self.view
        # A name may be a word that means something else to YAML.
        about = yaml.safe_dump(
            {
                "name": view.name,
                "base": view.base.table,
                **({"dimensions": list(view.joined)} if view.joined else {}),
                "time_column": view.time_column,
                "bucket": view.bucket,
                "start": WITH_THE_DATA,
            },
            sort_keys=False,
        )
        return f"- {indent(about + sql, '  ').removeprefix('  ')}"


@dataclass(frozen=True, slots=True)
class Advice:
    """The best proposal for each SELECT of a query that a view could answer; `reason` if there is none.

    `left` says why a SELECT around those stays with the base table.
    """

    proposals: tuple[Proposal, ...] = ()
    reason: str | None = None
    left: str | None = None
