"""The names that a try of a query has in Spark go with it; that Spark is gone by then is nobody's error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from mv_assets.query.execute.relations import Relations
from mv_assets.query.route.schema_cache import Cache
from mv_assets.spark.errors import EngineUnavailable, JobFailed


@dataclass
class Names:
    """A Spark that knows names, and nothing else."""

    known: list[str] = field(default_factory=list)
    asked: int = 0
    gone: bool = False

    @property
    def catalog(self) -> Names:
        return self

    def createOrReplaceTempView(self, name: str) -> None:  # noqa: N802 - Spark's own
        self.known.append(name)

    def dropTempView(self, name: str) -> None:  # noqa: N802 - Spark's own
        self.asked += 1
        if self.gone:
            raise ConnectionRefusedError
        self.known.remove(name)


def relations(spark: Any) -> Relations:
    nothing: Any = None
    return Relations(nothing, nothing, spark, Cache())


def named(spark: Any, then: Callable[[], None]) -> None:
    with relations(spark) as made:
        assert made.name(spark) != made.name(spark)
        assert len(spark.known) == 2
        then()


def test_names_are_dropped_at_the_end() -> None:
    named(spark := Names(), lambda: None)
    assert spark.known == []


def test_names_are_dropped_if_the_query_fails() -> None:
    spark = Names()

    def fail() -> None:
        raise JobFailed("division by zero")

    with pytest.raises(JobFailed):
        named(spark, fail)
    assert spark.known == []


def test_a_spark_that_is_gone_is_not_asked() -> None:
    spark = Names(gone=True)

    def fail() -> None:
        raise EngineUnavailable("its process ended")

    with pytest.raises(EngineUnavailable, match="its process ended"):
        named(spark, fail)
    assert spark.asked == 0


def test_a_spark_that_went_after_the_answer_spoils_nothing() -> None:
    named(spark := Names(gone=True), lambda: None)
    assert spark.asked == 1
