"""What is known of Spark's functions, against the registry of the Spark that is here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mv_assets.spark.session import Engine
from mv_assets.spark_sql.functions import REFUSALS
from mv_assets.spark_sql.spark_functions import AGGREGATES, BUILT_IN, GENERATORS

pytestmark = pytest.mark.slow
EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
AGGREGATE = (
    f"{EXPRESSIONS}.aggregate.AggregateFunction",
    f"{EXPRESSIONS}.RuntimeReplaceableAggregate",
)
# Where Spark keeps the builders of aggregates, which are no expressions themselves.
AGGREGATE_PACKAGE = f"{EXPRESSIONS}.aggregate."


@dataclass
class Registered:
    """A function as Spark knows it: its group in the documentation, and the class that it is made of."""

    group: str
    made_of: Any

    def is_one(self, *kinds: Any) -> bool:
        return any(kind.isAssignableFrom(self.made_of) for kind in kinds)


class Registry:
    def __init__(self, spark: SparkSession) -> None:
        self._java: Any = spark._jvm
        self._registry: Any = spark._jsparkSession.sessionState().functionRegistry()

    def kind(self, name: str) -> Any:
        loader = self._java.java.lang.Thread.currentThread().getContextClassLoader()
        return self._java.java.lang.Class.forName(name, False, loader)  # noqa: FBT003 - Java knows no other

    def functions(self) -> Mapping[str, Registered]:
        found, listed = dict[str, Registered](), self._registry.listFunction().iterator()
        while listed.hasNext():
            function = listed.next()
            info = self._registry.lookupFunction(function).get()
            # Others are operators.
            if function.funcName().isidentifier():
                found[function.funcName()] = Registered(info.getGroup(), self.kind(info.getClassName()))
        return found


@pytest.fixture
def registry(engine: Engine) -> Registry:
    with engine.session() as spark:
        if not hasattr(spark, "_jsparkSession"):
            pytest.skip("a Spark behind a server shows no classes")
        return Registry(spark)


def test_every_aggregate_of_this_spark_is_known(registry: Registry) -> None:
    kinds = [registry.kind(name) for name in AGGREGATE]
    found = {
        name
        for name, function in registry.functions().items()
        if function.group == "agg_funcs"
        or function.made_of.getName().startswith(AGGREGATE_PACKAGE)
        or (function.is_one(*kinds) and function.group != "window_funcs")
    }
    assert found == AGGREGATES & registry.functions().keys()


def test_every_function_that_makes_several_rows_is_known(registry: Registry) -> None:
    kind = registry.kind(f"{EXPRESSIONS}.Generator")
    functions = registry.functions().items()
    found = {name for name, each in functions if each.group == "generator_funcs" or each.is_one(kind)}
    assert found <= GENERATORS


def test_every_function_that_spark_calls_non_deterministic_is_refused(registry: Registry) -> None:
    kind = registry.kind(f"{EXPRESSIONS}.Nondeterministic")
    found = {name for name, each in registry.functions().items() if each.is_one(kind)}
    assert found <= {name for refusal in REFUSALS for name in refusal.functions}


def test_every_function_is_known_at_all(registry: Registry) -> None:
    words = {"and", "between", "in", "not", "or", "when"}
    assert registry.functions().keys() - words <= BUILT_IN
