"""What all parts of a project have in common."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Declared(BaseModel):
    """A part of a project. Unknown keys are errors, and no message of pydantic's repeats what is given."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )


def written(default: Any) -> Any:
    """A default as people write it: an editor that knows the schema shows it."""
    return Field(default, validate_default=True)
