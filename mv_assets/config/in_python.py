"""A project declared in Python: the same checks as for a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from pydantic import BaseModel

from mv_assets.config.checks import Sketch, check, check_whole
from mv_assets.config.file import Draft
from mv_assets.config.models import (
    DeclaredProject,
    Function,
    MaterializedView,
    Spark,
    StateDatabase,
    WarehouseFolder,
)
from mv_assets.config.storage import Storage
from mv_assets.config.tables import Table
from mv_assets.config.targets import Target


def declare(
    tables: Iterable[Table],
    views: Iterable[MaterializedView],
    *,
    functions: Iterable[Function] = (),
    state: str | StateDatabase | Mapping[str, Any] | None = None,
    warehouse: str | PathLike[str] | WarehouseFolder | Mapping[str, Any] | None = None,
    storage: Storage | Mapping[str, Any] | None = None,
    spark: Spark | Mapping[str, Any] | None = None,
    publish: Target | None = None,
) -> Draft:
    """A draft of a project, with every mistake between its declarations."""
    given: dict[str, Any] = {
        "state": state,
        "warehouse": warehouse,
        "storage": storage,
        "spark": spark,
        "publish": publish,
    }
    named = {key: value for key, value in given.items() if value is not None}
    draft = Draft("the declarations in Python", DeclaredProject())
    project = draft.project = draft.understood(
        DeclaredProject,
        {"tables": tuple(tables), "functions": tuple(functions), "views": tuple(views), **named},
    )
    sketches = (_sketches(each) for each in (project.tables, project.views, project.functions))
    draft.add([*check(*sketches), *check_whole(project)])
    return draft


def _sketches(declared: Iterable[BaseModel]) -> list[Sketch]:
    found = [Sketch.of(each.model_dump()) for each in declared]
    return [sketch for sketch in found if sketch is not None]
