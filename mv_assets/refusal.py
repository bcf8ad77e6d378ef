"""No, because: what a layer gives in place of a value that can't be had."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, as a part of a sentence."""

    reason: str

    def __str__(self) -> str:
        return self.reason
