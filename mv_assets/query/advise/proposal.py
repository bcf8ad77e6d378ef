"""A view that would answer a query, as it goes into the project file."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import indent

from mv_assets.buckets import iso
from mv_assets.config import MaterializedView


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
        joined = f"dimensions: [{', '.join(self.view.joined)}]\n" if self.view.joined else ""
        start = iso(self.view.start).removesuffix("T00:00:00Z")
        whole = (
            f"name: {self.view.name}\nbase: {self.view.base.table}\n{joined}"
            f"time_column: {self.view.time_column}\nbucket: {self.view.bucket}\nstart: {start}\n{sql}"
        )
        return f"- {indent(whole, '  ').removeprefix('  ')}"


@dataclass(frozen=True, slots=True)
class Advice:
    """The best proposal for each SELECT of a query that a view could answer; `reason` if there is none."""

    proposals: tuple[Proposal, ...] = ()
    reason: str | None = None
