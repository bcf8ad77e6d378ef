"""Which view would answer a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from rich.console import Console
from rich.text import Text

from mv_assets.query.advise.proposal import Advice, Proposal
from mv_assets.reports import show
from mv_assets.reports.shown import Line, Shown
from mv_assets.text import printable


@dataclass(frozen=True, slots=True, repr=False)
class Advised(Shown):
    """Views to declare or to change; each was admitted and would answer."""

    advice: Advice

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        return self.advice.proposals

    @property
    def reason(self) -> str | None:
        """Why there is no proposal."""
        return self.advice.reason

    def as_json(self) -> dict[str, Any]:
        return {
            "proposals": [
                {
                    "view": each.view.name,
                    "new": each.change is None,
                    "change": each.change,
                    "sql": each.view.sql,
                    "yaml": each.yaml,
                }
                for each in self.proposals
            ],
            "reason": self.reason,
            "left": self.advice.left,
        }

    def lines(self, out: Console) -> Iterator[Line]:
        del out
        for each in self.proposals:
            if each.change is None:
                yield "a new view would answer it; add under views:"
            else:
                name = each.view.name
                yield f"view {name} would answer it, and be computed again: {show.plain(each.change)}"
            # Whoever copies it needs each line whole.
            for line in indent(each.yaml.rstrip(), "  ").splitlines():
                yield Text(printable(line), no_wrap=True)
        if self.reason is not None:
            yield show.plain(f"no view is proposed: {self.reason}")
        if self.advice.left is not None:
            yield show.plain(f"the SELECT around is left to the base table: {self.advice.left}")
