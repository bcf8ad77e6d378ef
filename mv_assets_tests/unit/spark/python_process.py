"""A user's package on a Spark whose workers have Python but not the package: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from mv_assets.errors import MvError
from mv_assets.spark.failures import spark_errors
from mv_assets.spark.session import Engine
from mv_assets.spark.user_code import by_value, function_errors
from mv_assets.views.python import Loaded, load
from mv_assets_tests.support import engines

NAMES = """\
def bracket(x):
    if x == 3:
        raise ValueError("three\\nis bad")
    if x == 4:
        raise ConnectionRefusedError("Connection refused")
    return f"<{x}>"
"""
VIEWS = """\
import pandas as pd
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import LongType, StringType

from shop import names
from shop.names import bracket


@udf(StringType())
def bracketed(x):
    return bracket(x)


@pandas_udf(LongType())
def twice(x: pd.Series) -> pd.Series:
    return x * 2


def of_module(events):
    return events.select(bracketed("id").alias("a"), twice("id").alias("b"))


def of_function(events):
    inner = udf(lambda x: names.bracket(x), "string")
    return events.select(inner("id").alias("a"))


def divides(events):
    return events.limit(quotient())


def quotient():
    return 1 // 0


def unresolved(events):
    return events.select("nothing").schema


def refused(events):
    raise ConnectionRefusedError("Connection refused")


def leaves(events):
    raise SystemExit("I am\\ngone")
"""


def run(kind: str, folder: Path) -> dict[str, Any]:
    """What each of the functions came to."""
    package = folder / "shop"
    package.mkdir()
    for name, text in {"__init__": "", "names": NAMES, "views": VIEWS}.items():
        (package / f"{name}.py").write_text(text)
    ran = subprocess.run(  # noqa: S603 - this very file
        [sys.executable, "-m", __name__, kind, str(folder)],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert ran.stdout, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main(kind: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    # Before there is any session, as a project is loaded.
    names = ("of_module", "of_function", "divides", "unresolved", "refused", "leaves")
    functions = {name: load(f"shop.views:{name}", Path(folder)) for name in names}
    with ExitStack() as running:
        engine = Engine(running.enter_context(engines.running(kind)))
        with engine.session() as spark:
            found = _found(functions, spark.range, folder)
        if kind == "local":
            engine.stop()
    print(json.dumps(found))  # noqa: T201 - read by who started it
    sys.stdout.flush()
    # The client of a lost server would look for it again at the end.
    os._exit(0)


def _found(functions: dict[str, Loaded], rows: Callable[[int], Any], folder: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    # What was pickled once is kept, so this one is made anew each time.
    found["by reference"] = _outcome(functions["of_function"], rows(2))
    sent = functions.values()
    with by_value(sent):
        with by_value(sent):
            pass
        found["registered"] = sorted(_registered())
        for name, function in functions.items():
            found[name] = _outcome(function, rows(3))
        found["raises"] = _outcome(functions["of_module"], rows(4))
        found["raises in a write"] = _outcome(functions["of_module"], rows(4), f"file:{folder}/out")
        found["no connection"] = _outcome(functions["of_function"], rows(5).where("id > 3"))
    found["registered after"] = sorted(_registered())
    return found


def _registered() -> Any:
    pickle: Any = cloudpickle
    return pickle.list_registry_pickle_by_value()


def _outcome(function: Loaded, rows: Any, place: str | None = None) -> Any:
    try:
        with function_errors(function):
            made = function.function(rows)
        with spark_errors():
            if place is not None:
                made.write.parquet(place)
            return [list(row) for row in made.collect()]
    except MvError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
