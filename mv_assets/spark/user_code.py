"""Code of users: how it gets to Spark's workers, and what is said of it when it fails."""

from __future__ import annotations

import functools
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from mv_assets.spark.errors import JobFailed, ReadFailed
from mv_assets.spark.failures import in_short, one_line, spark_errors
from mv_assets.views.code import Home
from mv_assets.views.python import Loaded

# Who sends what by value at the moment: sessions work side by side, and Spark knows one set for all.
_SENT: Counter[str] = Counter()
_LOCK = Lock()
_OF_SPARK = frozenset({"pyspark", "py4j", "grpc"})


@contextmanager
def by_value(functions: Iterable[Loaded]) -> Iterator[None]:
    """While plans are made and run, have workers sent the code itself that functions are kept with.

    By default they are told where to import it from, and need not have it.
    """
    from pyspark.sql import is_remote  # noqa: PLC0415 - comes with Spark

    if is_remote():
        _let_udfs_be_remote()
    homes = [Home.of(function.module) for function in functions]
    packages = {name.partition(".")[0] for home in homes for name in home.loaded()}
    _send(packages)
    try:
        yield
    finally:
        _send(packages, done=True)


def _send(packages: Iterable[str], *, done: bool = False) -> None:
    from pyspark import cloudpickle  # noqa: PLC0415

    pickle: Any = cloudpickle
    with _LOCK:
        for name in packages:
            _SENT[name] += -1 if done else 1
            module = sys.modules.get(name)
            if not done and _SENT[name] == 1 and module is not None:
                pickle.register_pickle_by_value(module)
            elif done and not _SENT[name] and name in pickle.list_registry_pickle_by_value():
                pickle.unregister_pickle_by_value(module or _Forgotten(name))


class _Forgotten:
    """A module that was imported anew, or not again, while it was sent."""

    def __init__(self, name: str) -> None:
        self.__name__ = name


@functools.cache
def _let_udfs_be_remote() -> None:
    """Have a UDF that was made before anybody knew of the Connect server be one of its.

    What a module makes when it is imported is made then, and would look for a Spark of this process.
    """
    from pyspark.sql.connect.udf import UserDefinedFunction as Remote  # noqa: PLC0415
    from pyspark.sql.udf import UserDefinedFunction  # noqa: PLC0415

    def call(made: Any, *columns: Any, **named: Any) -> Any:
        kind, name = made._returnType, made._name  # noqa: SLF001 - parsing it would ask a Spark of this process
        return Remote(made.func, kind, name, made.evalType, made.deterministic)(*columns, **named)

    setattr(UserDefinedFunction, "__call__", call)  # noqa: B010 - nobody else should


@contextmanager
def function_errors(function: Loaded) -> Iterator[None]:
    """Whatever a function of a user's raises in the block is a job that failed, at a line of the user's.

    Raises:
        JobFailed: what it raised, in one sentence.
        EngineUnavailable: nothing can be done with this Spark.

    """
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = _own(function, frames)
        said = f"{type(error).__name__}: {in_short(error) if _is_sparks(error, frames) else one_line(error)}"
        failed = JobFailed(f"{function.name}{_place(own)}: {said}")
        if not _is_sparks(error, frames):
            raise failed from error
        try:
            with spark_errors():
                raise
        except ReadFailed:
            raise
        except JobFailed:
            raise failed from error


def _own(function: Loaded, frames: traceback.StackSummary) -> traceback.FrameSummary | None:
    """The last place in the code that the function is kept with."""
    files = {str(sys.modules[name].__file__) for name in Home.of(function.module).loaded()}
    files.add(function.function.__code__.co_filename)
    return next((frame for frame in reversed(frames) if frame.filename in files), None)


def _place(frame: traceback.FrameSummary | None) -> str:
    return "" if frame is None else f" ({frame.filename}:{frame.lineno} in {frame.name})"


def _is_sparks(error: BaseException, frames: traceback.StackSummary) -> bool:
    """Whether it comes from Spark, and not from something else that the function calls."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    if isinstance(error, ConnectionError):
        return bool(frames) and not _OF_SPARK.isdisjoint(Path(frames[-1].filename).parts)
    return isinstance(error, (PySparkException, Py4JError))
