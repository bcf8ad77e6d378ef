"""What a sensor remembers between ticks: only what it told Dagster. All else is in the map."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError


class Memory(BaseModel):
    """By view: up to where in the map Dagster knows everything, when the checks were made, the last wipe."""

    told: dict[str, tuple[int, int]] = {}
    checked: dict[str, str] = {}
    observed: dict[str, str] = {}
    wiped: dict[str, float] = {}

    @classmethod
    def of(cls, cursor: str | None) -> Memory:
        """A cursor of another version can't be read, perhaps: that costs only that things are told twice."""
        try:
            return cls.model_validate_json(cursor or "{}")
        except ValidationError:
            return cls()
