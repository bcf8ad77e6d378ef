"""Reading a project file: every mistake in it at once, each with its line and field."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from mv_assets.errors import Mistake, ProjectError
from mv_assets.project.checks import Sketch, check, suggestion
from mv_assets.project.document import Document, Place
from mv_assets.project.models import FORMATS, MaterializedView, Project, Spark

_SQLITE = "sqlite:///"


@dataclass(slots=True)
class Draft:
    """A project as far as it could be understood: what was declared well, and all mistakes so far."""

    file: str
    project: Project
    mistakes: list[Mistake] = field(default_factory=list)
    lines: Mapping[str, int] = field(default_factory=dict)

    def add(self, mistakes: Iterable[Mistake]) -> None:
        """Take in further mistakes, each at the line of its field."""
        self.mistakes += [replace(mistake, line=self._line(mistake.where)) for mistake in mistakes]

    def finished(self) -> Project:
        """The project.

        Raises:
            ProjectError: there are mistakes.

        """
        if self.mistakes:
            raise ProjectError(self.file, sorted(self.mistakes, key=lambda mistake: mistake.line or 0))
        return self.project

    def _line(self, where: str) -> int | None:
        while where and where not in self.lines:
            where = where.rpartition(".")[0]
        return self.lines.get(where)


def read(path: Path, variables: Mapping[str, str] = os.environ) -> Draft:
    """Read a project file.

    Raises:
        ProjectError: there is no such file, or nothing in it could be understood.

    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ProjectError(str(path), [Mistake("", f"can't be read: {why}")]) from None
    folder = path.absolute().parent
    home = variables.get("MV_ASSETS_HOME") or str(folder / ".mv_assets")
    document = Document(text, str(path), {**variables, "MV_ASSETS_HOME": home})
    reader = _Reader(document, folder, home)
    draft = Draft(str(path), reader.project(), lines=reader.lines())
    draft.add(reader.mistakes)
    return draft


class _Reader:
    """Builds the models one by one, so that a wrong one does not hide the mistakes of the others."""

    def __init__(self, document: Document, folder: Path, home: str) -> None:
        self._document = document
        self._folder = folder
        self._home = home
        self._names: dict[Place, str] = {}
        self.mistakes: list[Mistake] = []

    def lines(self) -> dict[str, int]:
        # Of two items with one name the first keeps it.
        return {self._where(place): line for place, line in reversed(self._document.lines.items())}

    def project(self) -> Project:
        content = self._document.content
        for key in content.keys() - Project.model_fields.keys():
            self._mistake((key,), f"not a key of a project; {suggestion(key, list(Project.model_fields))}")
        self._name(content, "tables")
        self._name(content, "views")
        tables = [t for at, item in self._items("tables") if (t := self._table(item, ("tables", at)))]
        views = [
            v for at, item in self._items("views") if (v := self._one(MaterializedView, item, ("views", at)))
        ]
        spark = self._one(Spark, content.get("spark") or {}, ("spark",))
        for place, what in self._document.mistakes:
            self._mistake(place, what)
        self.mistakes += check(self._sketches("tables"), self._sketches("views"))
        return Project(
            state=self._database(self._text("state", f"{_SQLITE}{self._home}/state.db")),
            warehouse=self._path(self._text("warehouse", f"{self._home}/warehouse")),
            spark=spark or Spark(),
            tables=tuple(table for table in tables if table is not None),
            views=tuple(view for view in views if view is not None),
        )

    def _items(self, key: str) -> list[tuple[int, Any]]:
        items = self._document.content.get(key) or []
        if isinstance(items, list):
            return list(enumerate(items))
        self._mistake((key,), "not a list; start each item with a dash")
        return []

    def _sketches(self, key: str) -> list[Sketch]:
        items = self._document.content.get(key)
        dicts = [item for item in (items if isinstance(items, list) else []) if isinstance(item, dict)]
        return [sketch for item in dicts if (sketch := Sketch.of(item)) is not None]

    def _name(self, content: Mapping[str, Any], key: str) -> None:
        """Items are known by their names in messages, where they have one."""
        items = content.get(key)
        for at, item in enumerate(items if isinstance(items, list) else []):
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                self._names[key, at] = item["name"]

    def _table(self, value: Any, place: Place) -> Any:
        named = value.get("format", "parquet") if isinstance(value, dict) else "parquet"
        model = FORMATS.get(named) if isinstance(named, str) else None
        if model is None:
            self._mistake((*place, "format"), f"{named!r} is not a format; use {', '.join(FORMATS)}")
            return None
        table = self._one(model, value, place)
        path = getattr(table, "path", None)
        return table if path is None else table.model_copy(update={"path": self._path(path)})

    def _one(self, model: type[BaseModel], value: Any, place: Place) -> Any:
        try:
            return model.model_validate(value)
        except ValidationError as error:
            for problem in error.errors(include_url=False):
                self._mistake((*place, *problem["loc"]), _sentence(problem, model))
            return None

    def _text(self, key: str, default: str) -> str:
        value = self._document.content.get(key, default)
        if isinstance(value, str) and value.strip():
            return value
        self._mistake((key,), f"{value!r} is not a text")
        return default

    def _mistake(self, place: Place, what: str) -> None:
        self.mistakes.append(Mistake(self._where(place), what))

    def _where(self, place: Place) -> str:
        """`views.trips_hourly.bucket`, or with its position for an item without a name."""
        if len(place) > 1 and isinstance(place[1], int):
            name = self._names.get(place[:2])
            first = f"{place[0]}[{place[1]}]" if name is None else f"{place[0]}.{name}"
            return ".".join([first, *map(str, place[2:])])
        return ".".join(map(str, place))

    def _path(self, path: str) -> str:
        return path if "://" in path else str(self._folder / path)

    def _database(self, url: str) -> str:
        name = url.removeprefix(_SQLITE)
        if not url.startswith(_SQLITE) or not name or name.startswith((":", "file:")):
            return url
        return _SQLITE + self._path(name)


def _sentence(problem: Any, model: type[BaseModel]) -> str:
    """Pydantic's finding as a sentence that says what would be right."""
    kind, given = problem["type"], problem["input"]
    if kind == "missing":
        return "missing"
    if kind == "extra_forbidden":
        return f"not a known key; {suggestion(str(problem['loc'][-1]), list(model.model_fields))}"
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    said = str(problem["msg"])
    shown = f", not {given!r}" if isinstance(given, str | int | float | bool) else ""
    return f"{said[0].lower()}{said[1:]}{shown}"
