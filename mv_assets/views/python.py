"""Python that views are made of: functions by their names, what they must take, and what is known of them."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, ClassVar, Literal, TypedDict, Unpack

from mv_assets.config import Function, MaterializedView, Target
from mv_assets.config.checks import suggestion
from mv_assets.config.models import BaseTable, Dimension, FurtherTable
from mv_assets.config.values import python_name
from mv_assets.refusal import Refusal
from mv_assets.spark_sql.merge import Merging
from mv_assets.spark_sql.outputs import Column
from mv_assets.views.code import CodeChanged, CodeUnknown, Home, code_hash, home_of, remember

BUCKET = "bucket"
_IMPORT_SYSTEM = "importlib"
_NO_SESSION = "SESSION_OR_CONTEXT_NOT_EXISTS"
_NO_SESSION_YET = "; Spark starts later: give UDFs their types as StringType() and make columns in functions"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket that a view's function is to make, for one that asks for it.

    `[start, end)` in the view's time zone, and its key, as in Dagster.
    """

    start: datetime
    end: datetime
    key: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A function that was found, and the hash of what it does."""

    name: str
    function: Callable[..., Any] = field(compare=False, repr=False)
    code: str

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]


@dataclass(frozen=True, slots=True)
class ViewFunction:
    """The body of a view that is a function: it makes a bucket's rows of the rows of the windows.

    What it reads of its tables, and which columns it gives, is known when it runs.
    """

    loaded: Loaded
    parameters: tuple[str, ...]
    version: str | None = None

    columns: ClassVar[tuple[str, ...] | None] = None
    grain: ClassVar[str | None] = None
    # As far as anybody knows.
    aggregates: ClassVar[bool] = True
    reads_all: ClassVar[bool] = True
    reaches_inside: ClassVar[bool] = True
    used: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({})
    mentioned: ClassVar[Mapping[str, frozenset[str]]] = MappingProxyType({})
    lineage: ClassVar[Mapping[str, tuple[Column, ...]]] = MappingProxyType({})
    approximate: ClassVar[frozenset[str]] = frozenset()
    calls: ClassVar[frozenset[str]] = frozenset()
    merging: ClassVar[Merging | Refusal] = Refusal("it is a function")

    @property
    def name(self) -> str:
        """Where the function is: package.module:function."""
        return self.loaded.name

    @property
    def function(self) -> Callable[..., Any]:
        return self.loaded.function

    @property
    def code(self) -> str:
        return self.loaded.code

    @property
    def takes_bucket(self) -> bool:
        """Whether it asks for the bucket."""
        return BUCKET in self.parameters


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A declared function, ready to be called by SQL."""

    declared: Function
    loaded: Loaded

    @property
    def definition(self) -> list[str | None]:
        """What it gives depends on this."""
        return [self.declared.name, self.loaded.code, self.declared.returns, self.declared.version]


class NotLoaded(Exception):
    """There is no such function, or none that can be used; a sentence."""


def load(python: str | Callable[..., Any], folder: Path | None = None) -> Loaded:
    """A function by its name, first looked for in `folder`; or one that is given itself.

    Raises:
        NotLoaded: there is none, or its code can't be told.

    """
    name = python_name(python)
    try:
        if not isinstance(python, str):
            return Loaded(name, _usable(name, python), code_hash(python))
        function = _usable(name, _found(name, folder))
        with suppress(CodeChanged):
            return Loaded(name, function, code_hash(function, name))
        # What was imported is no longer what the files say.
        _forget(home_of(function, name.partition(":")[0]))
        function = _usable(name, _found(name, folder))
        return Loaded(name, function, code_hash(function, name))
    except CodeUnknown as why:
        raise NotLoaded(f"what {name} does can't be told: {why}") from None


def _found(name: str, folder: Path | None) -> Any:
    place, _, attribute = name.partition(":")
    module = _imported(place, folder)
    try:
        return getattr(module, attribute)
    except AttributeError:
        functions = [each for each, value in vars(module).items() if isinstance(value, FunctionType)]
        raise NotLoaded(f"module {place} has no {attribute}; {suggestion(attribute, functions)}") from None


def _imported(name: str, folder: Path | None) -> ModuleType:
    top = name.partition(".")[0]
    if folder is not None:
        # As Python looks beside a script.
        sys.path[:0] = [] if str(folder) in sys.path else [str(folder)]
        _refuse_another(top, folder)
    importlib.invalidate_caches()
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            first = "" if folder is None else f"in {folder} and "
            raise NotLoaded(f"there is no module {error.name}; looked for {first}on Python's path") from None
        raise NotLoaded(_failed(name, error)) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is code of the user's
        raise NotLoaded(_failed(name, error)) from None
    if folder is not None:
        _refuse_another(top, folder)
    remember(Home.of(name).loaded())
    return module


def _refuse_another(top: str, folder: Path) -> None:
    """A namesake of what is in the folder must not be taken for it."""
    loaded, there = sys.modules.get(top), PathFinder.find_spec(top, [str(folder)])
    other = getattr(loaded, "__file__", None)
    if other is not None and there is not None and there.origin is not None:
        with suppress(OSError):
            if not Path(other).samefile(there.origin):
                raise NotLoaded(f"{top} was imported from {other}, not from {folder}; rename one of them")


def _forget(home: Home) -> None:
    for name in list(home.loaded()):
        del sys.modules[name]


def _failed(name: str, error: BaseException) -> str:
    """What an import came to: the last line of it that is the user's."""
    said = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
    if isinstance(error, SyntaxError):
        return f"{name} can't be imported ({error.filename}:{error.lineno}): {said}"
    every = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    home = Home.of(name)
    frames = [frame for frame in every if home.holds(frame.filename)] or every
    at = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    instead = _NO_SESSION_YET if _NO_SESSION in said else ""
    return f"{name} can't be imported{at}: {said}{instead}"


def _is_ours(file: str) -> bool:
    return file == __file__ or _IMPORT_SYSTEM in Path(file).parts or file.startswith("<frozen importlib")


def _usable(name: str, found: Any) -> Callable[..., Any]:
    if isinstance(found, MaterializedView):
        instead = "declare it there or here, and take the decorator or this away"
        raise NotLoaded(f"{name} is a view by itself, made with @mv_assets.view; {instead}")
    if not isinstance(found, FunctionType):
        what = "a class" if isinstance(found, type) else f"a value of type {type(found).__name__}"
        raise NotLoaded(f"{name} is {what}; name a function")
    if (
        inspect.iscoroutinefunction(found)
        or inspect.isasyncgenfunction(found)
        or inspect.isgeneratorfunction(found)
    ):
        raise NotLoaded(f"{name} is async or a generator; it should return what it makes")
    return found


def parameter_mistakes(function: Callable[..., Any], sources: Sequence[str]) -> Iterator[str]:
    """What is wrong with what a view's function takes: a data frame for each source, and the bucket."""
    kinds = inspect.Parameter
    given = inspect.signature(function).parameters
    for name, parameter in given.items():
        if parameter.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            sign = "*" if parameter.kind is kinds.VAR_POSITIONAL else "**"
            yield f"the function takes {sign}{name}; name each table that it reads as a parameter of its own"
        elif parameter.kind is kinds.POSITIONAL_ONLY:
            yield f"parameter {name} stands before a /, but tables are given by name; take the / out"
        elif name not in (*sources, BUCKET):
            close = suggestion(name, [*sources, BUCKET])
            yield f"the function takes {name}, which is no table that the view reads; {close}"
    for name in sources:
        if name == BUCKET:
            yield "a table called bucket can't be told from the bucket; declare it by another name"
        elif name not in given:
            yield f"the function does not take {name}, which the view reads; add it as a parameter"


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


class _Named(TypedDict, total=False):
    name: str
    description: str


class _Further(_Named, total=False):
    with_: list[FurtherTable] | tuple[FurtherTable, ...] | list[dict[str, Any]]
    dimensions: list[str | dict[str, Any] | Dimension] | list[str] | tuple[str, ...]
    version: str
    timezone: str
    buffer: str
    closes: str | None
    max_staleness: str | None
    stall_after: str
    max_buckets_per_run: int
    max_runs: int
    every: str | None
    answers: bool
    on_base_delete: str
    publish: Literal[False] | Target
    owners: list[str] | tuple[str, ...]
    key_prefix: list[str] | tuple[str, ...]
    group: str
    tags: dict[str, str]
    kinds: list[str] | tuple[str, ...]


def view(
    *,
    base: str | dict[str, str] | BaseTable,
    time_column: str,
    bucket: str,
    start: str | datetime,
    **further: Unpack[_Further],
) -> Callable[[Callable[..., Any]], MaterializedView]:
    """Make a view of a function, which gets a data frame for each table and gives the bucket's rows.

        @mv_assets.view(base="events", time_column="day", bucket="1d", start="2024-01-01")
        def daily_actives(events: DataFrame, bucket: Bucket) -> DataFrame: ...

    What is left is the declaration, to be given to `build_definitions`; called, it is the function.

    Args:
        base: the table whose rows are put in buckets, alone or with its window.
        time_column: the output column that places a row in its bucket.
        bucket: how wide a bucket is.
        start: the first bucket.
        further: all else that a `MaterializedView` takes; its name is the function's, unless one is given.

    """
    given: dict[str, Any] = {
        "base": base,
        "time_column": time_column,
        "bucket": bucket,
        "start": start,
        **further,
    }

    def declared(function: Callable[..., Any]) -> MaterializedView:
        remember(home_of(function).loaded())
        about = (inspect.getdoc(function) or "").partition("\n")[0]
        named = {"name": function.__name__, "description": about}
        return MaterializedView.model_validate({**named, **given, "python": function, "scope": "bucket"})

    return declared
