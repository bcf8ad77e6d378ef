"""Reading a project file: every mistake in it at once, each with its line and field."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from mv_assets.config.checks import Sketch, check, check_whole, suggestion
from mv_assets.config.document import Document, Place
from mv_assets.config.errors import Mistake, ProjectError
from mv_assets.config.models import (
    DeclaredProject,
    Dimension,
    Function,
    MaterializedView,
    Spark,
    StateDatabase,
    WarehouseFolder,
)
from mv_assets.config.storage import Storage
from mv_assets.config.tables import FORMATS
from mv_assets.config.targets import TARGETS, DeltaTarget, IcebergTarget, Target
from mv_assets.config.values import StateUrl, Text

Model = TypeVar("Model", bound=BaseModel)

_SQLITE = "sqlite:///"
# Where the version of the project file is that `mv-assets dev` has accepted, for all that it starts.
ACCEPTED = "MV_ASSETS_PROJECT_ACCEPTED"
# Seconds between the looks at a table.
INTERVAL = "MV_ASSETS_SENSOR_INTERVAL"
# Where passwords and tokens stand.
_SECRET = frozenset({"state", "spark", "storage", "storage_options", "catalog"})
# They let the rest of a view be looked through for further mistakes; every grain but weeks fits a month.
_STAND_INS = {"start": "1970-01-01", "bucket": "1mo"}
_PLAIN = {
    "model_type": "not a mapping; write its keys and values below it, indented",
    "model_attributes_type": "not a mapping; write its keys and values below it, indented",
    "dict_type": "not a mapping; write its keys and values below it, indented",
    "tuple_type": "not a list; write it in brackets: [a, b]",
    "string_type": "not a text; put it in quotes",
}


class _State(BaseModel):
    state: StateUrl


class _Warehouse(BaseModel):
    warehouse: Text


@dataclass(slots=True)
class Draft:
    """A project as far as it could be understood: what was declared well, and all mistakes so far.

    `folder` is where the file is, and with it the Python that it names.
    """

    file: str
    project: DeclaredProject
    mistakes: list[Mistake] = field(default_factory=list)
    lines: Mapping[str, int] = field(default_factory=dict)
    folder: Path | None = None

    def add(self, mistakes: Iterable[Mistake]) -> None:
        """Take in further mistakes, each at the line of its field."""
        self.mistakes += [replace(mistake, line=self._line(mistake.where)) for mistake in mistakes]

    def understood(self, model: type[Model], given: Mapping[str, Any]) -> Model:
        """What is declared beside the project; what is wrong in it is a mistake, and left out."""
        try:
            return model.model_validate(given)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        self.add(mistakes_of(problems, model))
        wrong = {problem["loc"][0] for problem in problems if problem["loc"]}
        return model.model_validate({key: value for key, value in given.items() if key not in wrong})

    def finished(self) -> DeclaredProject:
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


def read(path: Path, variables: Mapping[str, str] = os.environ, *, version: Path | None = None) -> Draft:
    """Read a project file; a `version` of it that is elsewhere is read as if it were there.

    Raises:
        ProjectError: there is no such file, or nothing in it could be understood.

    """
    try:
        text = (version or path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            why += "; name the file with --project or MV_ASSETS_PROJECT, or neither to work with the demo"
        if isinstance(error, IsADirectoryError):
            why = f"it is a folder; name the file in it, such as {path / 'project.yaml'}"
        raise ProjectError(str(path), [Mistake("", f"can't be read: {why}")]) from None
    return _understood(text, str(path), path.absolute().parent, variables)


def read_content(
    content: Mapping[str, Any],
    file: str,
    folder: Path,
    variables: Mapping[str, str] = os.environ,
    *,
    lines: Mapping[Place, int],
) -> Draft:
    """A project that stands in a file of somebody else's, who has read it; `lines` are those of that file."""
    return _understood(yaml.safe_dump(dict(content)), file, folder, variables, lines)


def lines_below(key: str, text: str) -> dict[Place, int]:
    """The lines of all that stands below a key of a file; none of one that is not a single document."""
    try:
        document = Document(text, key, {})
    except ProjectError:
        return {}
    return {place[1:]: line for place, line in document.lines.items() if place[:1] == (key,)}


def _understood(
    text: str,
    file: str,
    folder: Path,
    variables: Mapping[str, str],
    lines: Mapping[Place, int] | None = None,
) -> Draft:
    home = variables.get("MV_ASSETS_HOME") or str(folder / ".mv_assets")
    document = Document(text, file, {**variables, "MV_ASSETS_HOME": home})
    reader = _Reader(document, folder, home)
    project = reader.project()
    found = Draft(
        file, project, lines=reader.named(document.lines if lines is None else lines), folder=folder
    )
    found.add(reader.mistakes)
    return found


class _Reader:
    """Builds the models one by one, so that a wrong one does not hide the mistakes of the others."""

    def __init__(self, document: Document, folder: Path, home: str) -> None:
        self._document = document
        self._folder = folder
        self._home = home
        self._named: dict[tuple[str, str], int] = {}
        self.mistakes: list[Mistake] = []

    def named(self, lines: Mapping[Place, int]) -> dict[str, int]:
        """Lines by what mistakes call their fields."""
        return {self._where(place): line for place, line in lines.items()}

    def project(self) -> DeclaredProject:
        content = self._document.content
        for key in content.keys() - DeclaredProject.model_fields.keys():
            self._mistake(
                (key,), f"not a key of a project; {suggestion(key, list(DeclaredProject.model_fields))}"
            )
        tables, functions, views = (self._items(key) for key in ("tables", "functions", "views"))
        made_tables = [self._table(item, ("tables", at)) for at, item in enumerate(tables)]
        made_functions = [self._one(Function, item, ("functions", at)) for at, item in enumerate(functions)]
        made_views = [self._view(item, ("views", at)) for at, item in enumerate(views)]
        publish = self._target(content.get("publish"), ("publish",))
        spark = self._one(Spark, {} if content.get("spark") is None else content["spark"], ("spark",))
        for place, what in self._document.mistakes:
            self._mistake(place, what)
        self.mistakes += check(_sketches(tables), _sketches(views), _sketches(functions))
        settings = self._settings()
        found = DeclaredProject(
            **settings,
            spark=spark or Spark(),
            publish=publish,
            tables=tuple(table for table in made_tables if table is not None),
            functions=tuple(function for function in made_functions if function is not None),
            views=tuple(view for view in made_views if view is not None),
        )
        self.mistakes += check_whole(found)
        return found

    def _settings(self) -> dict[str, Any]:
        """State, storage and warehouse, as given or by default, with their paths resolved."""
        content = self._document.content
        given = content.get("storage")
        storage = None if given is None else self._one(Storage, given, ("storage",))
        reached = {"storage": storage, "warehouse": self._warehouse()}
        return {key: value for key, value in reached.items() if value is not None} | self._state()

    def _warehouse(self) -> WarehouseFolder | None:
        given = self._document.content.get("warehouse", f"{self._home}/warehouse")
        if not isinstance(given, dict):
            text = self._one(_Warehouse, {"warehouse": given}, ())
            given = None if text is None else {"path": text.warehouse}
        found = None if given is None else self._one(WarehouseFolder, given, ("warehouse",))
        return None if found is None else found.model_copy(update={"path": self._path(found.path)})

    def _state(self) -> dict[str, Any]:
        content = self._document.content
        unwritten = f"{_SQLITE}{self._home}/state.db"
        state = content.get("state", unwritten)
        more = self._one(StateDatabase, state, ("state",)) if isinstance(state, dict) else None
        if isinstance(state, dict):
            state = unwritten if more is None else more.url
        found = self._one(_State, {"state": state}, ())
        if found is None:
            return {}
        url = self._database(found.state)
        kept = StateDatabase(url=url) if more is None else more.model_copy(update={"url": url})
        return {"state": kept}

    def _items(self, key: str) -> list[Any]:
        items = self._document.content.get(key)
        if items is None:
            return []
        if not isinstance(items, list):
            self._mistake((key,), "not a list; start each item with a dash")
            return []
        for at, item in enumerate(items):
            name = item.get("name") if isinstance(item, dict) else None
            # Of namesakes only the first is known by the name.
            if isinstance(name, str) and (key, name) not in self._named:
                self._named[key, name] = at
        return items

    def _table(self, value: Any, place: Place) -> Any:
        named = value.get("format", "parquet") if isinstance(value, dict) else "parquet"
        model = FORMATS.get(named) if isinstance(named, str) else None
        if model is None:
            self._mistake((*place, "format"), f"{named!r} is not a format; use {', '.join(FORMATS)}")
            return None
        table = self._one(model, value, place)
        if (path := getattr(table, "path", None)) is not None:
            table = table.model_copy(update={"path": self._path(path)})
        catalog = getattr(table, "catalog", None) or {}
        if "uri" in catalog:
            table = table.model_copy(update={"catalog": catalog | {"uri": self._database(catalog["uri"])}})
        return table

    def _view(self, value: Any, place: Place) -> MaterializedView | None:
        """A view; its target is read by itself, as its mistakes have places of their own."""
        given = value.get("publish") if isinstance(value, dict) else None
        if given is None or given is False:
            made: MaterializedView | None = self._one(MaterializedView, value, place)
            return made
        target = self._target(given, (*place, "publish"))
        return self._one(MaterializedView, {**value, "publish": target}, place)  # type: ignore[no-any-return]

    def _target(self, value: Any, place: Place) -> Target | None:
        """Where views are published; None if nowhere, or if that can't be understood."""
        if value is None:
            return None
        named = value.get("format", "iceberg") if isinstance(value, dict) else "iceberg"
        model = TARGETS.get(named) if isinstance(named, str) else None
        if model is None:
            self._mistake((*place, "format"), f"{named!r} is not a format; use {', '.join(TARGETS)}")
            return None
        target = self._one(model, value, place)
        if isinstance(target, DeltaTarget):
            folder = None if target.folder is None else self._path(target.folder)
            return target.model_copy(update={"folder": folder})
        if isinstance(target, IcebergTarget):
            places: dict[str, Callable[[str], str]] = {"uri": self._database}
            if target.catalog.get("type") == "sql":
                # Of other catalogs it may be a name.
                places["warehouse"] = self._path
            resolved = {
                key: resolve(target.catalog[key]) for key, resolve in places.items() if key in target.catalog
            }
            return target.model_copy(update={"catalog": target.catalog | resolved})
        return None

    def _one(self, model: type[BaseModel], value: Any, place: Place) -> Any:
        """The model; with mistakes, as much of it as further mistakes can be found in."""
        try:
            return model.model_validate(value)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        for problem in problems:
            inner = (*place, *problem["loc"])
            if inner not in self._document.unset:
                self._mistake(inner, _sentence(problem, model, inner))
        wrong = {problem["loc"][0] for problem in problems if problem["loc"]}
        if not isinstance(value, dict) or not wrong:
            return None
        rest = {key: given for key, given in value.items() if key not in wrong}
        try:
            return model.model_validate({k: v for k, v in _STAND_INS.items() if k in wrong} | rest)
        except ValidationError:
            return None

    def _mistake(self, place: Place, what: str) -> None:
        self.mistakes.append(Mistake(self._where(place), what))

    def _where(self, place: Place) -> str:
        """`views.trips_hourly.bucket`, or with its position for an item without a name of its own."""
        if len(place) > 1 and isinstance(place[1], int):
            names = [name for (key, name), at in self._named.items() if (key, at) == place[:2]]
            first = f"{place[0]}.{names[0]}" if names else f"{place[0]}[{place[1]}]"
            return ".".join([first, *map(str, place[2:])])
        return ".".join(map(str, place))

    def _path(self, path: str) -> str:
        return path if "://" in path else str(self._folder / path)

    def _database(self, url: str) -> str:
        name = url.removeprefix(_SQLITE)
        return url if name == url or name.startswith("file:") else _SQLITE + self._path(name)


def _sketches(items: list[Any]) -> list[Sketch]:
    found = [Sketch.of(item) for item in items if isinstance(item, dict)]
    return [sketch for sketch in found if sketch is not None]


# Parts of a declaration with keys of their own.
_INSIDE: dict[str, type[BaseModel]] = {"storage": Storage, "dimensions": Dimension}


def mistakes_of(problems: Iterable[Any], model: type[BaseModel]) -> list[Mistake]:
    """Pydantic's findings, each with its field."""
    return [Mistake(".".join(map(str, p["loc"])), _sentence(p, model, p["loc"])) for p in problems]


def _sentence(problem: Any, model: type[BaseModel], place: Place) -> str:
    """Pydantic's finding in a user's words; with the value, unless that may be a secret."""
    kind, given = problem["type"], problem["input"]
    if kind == "missing":
        return "missing; it has no default"
    if kind == "extra_forbidden":
        known = next((inner for part, inner in _INSIDE.items() if part in place[:-1]), model)
        return f"not a known key; {suggestion(str(place[-1]), list(known.model_fields))}"
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    if kind in _PLAIN:
        return _PLAIN[kind]
    said = str(problem["msg"]).removeprefix("Input should be ")
    secret = any(part in _SECRET for part in place)
    shown = f", not {given!r}" if isinstance(given, str | int | float | bool) and not secret else ""
    return f"it should be {said}{shown}"
