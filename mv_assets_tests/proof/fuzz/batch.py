"""Many queries at once: each is planned for itself, and Spark computes them together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType, TimestampNTZType, TimestampType

from mv_assets.errors import MvError
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.execute.planner import Planned
from mv_assets.query.execute.served import Served
from mv_assets.query.route.eligibility import Freshness
from mv_assets.query.route.pinned import Pinned
from mv_assets.spark.errors import JobFailed
from mv_assets.spark.failures import spark_errors
from mv_assets.spark_sql.canonical import NotPlain
from mv_assets_tests.proof.fuzz.comparison import Row, from_spark
from mv_assets_tests.proof.fuzz.sql.profiles import NAMED
from mv_assets_tests.proof.fuzz.world import World

# Longer than any lake is old.
EVER = 1 << 60


@dataclass
class Found:
    """What came of a query: rows, or the error that it raised."""

    rows: list[Row]
    schema: StructType | None = None
    served: Served | None = None
    error: MvError | None = None
    # Why the views could not, although they had been chosen.
    gave_up: str | None = None


class Batch:
    """Asks the queries of one moment of a world."""

    def __init__(self, world: World, spark: SparkSession) -> None:
        self._project = world.lake.open()
        self._answers = Answers(self._project)
        self._spark = spark
        spark.conf.set("spark.sql.adaptive.enabled", "false")

    def declare(self) -> None:
        """Empty tables and views by their names: they tell what the base's answer looks like."""
        for name in (*self._project.catalog.tables, *NAMED):
            with ExitStack() as held:
                planned = self._plan(Question(f"SELECT * FROM {name}", Freshness.OFF), held)
                self._spark.createDataFrame([], planned.frame.schema).createOrReplaceTempView(name)

    def schema(self, text: str) -> StructType:
        with spark_errors():
            return self._spark.sql(text).schema

    def together(self, questions: Sequence[Question]) -> list[Found]:
        """All answers, from one job."""
        found: list[Found] = []
        with ExitStack() as held:
            texts = []
            for at, question in enumerate(questions):
                frame, each = self._planned(question, held)
                found.append(each)
                if frame is not None:
                    texts.append(self._as_text(frame, at, held))
            if not texts:
                return found
            try:
                with spark_errors():
                    answers = self._spark.sql(" UNION ALL ".join(texts)).toArrow()
            except JobFailed:
                return [self.alone(question) for question in questions]
        for at, values in zip(answers["q"].to_pylist(), answers["v"].to_pylist(), strict=True):
            kinds = [field.dataType for field in found[at].schema or ()]
            found[at].rows.append(tuple(map(from_spark, values, kinds)))
        return found

    def alone(self, question: Question) -> Found:
        """As users ask."""
        try:
            answer = self._answers.answer(question, self._spark)
        except MvError as error:
            return Found([], error=error)
        schema = answer.frame.schema
        kinds = [field.dataType for field in schema]
        with ExitStack() as held:
            texts = self._spark.sql(self._as_text(answer.frame, 0, held)).toArrow()["v"].to_pylist()
        return Found([tuple(map(from_spark, each, kinds)) for each in texts], schema, answer.served)

    def _planned(self, question: Question, held: ExitStack) -> tuple[DataFrame | None, Found]:
        gave_up = None
        try:
            try:
                planned = self._plan(question, held)
            except (JobFailed, NotPlain) as failed:
                if not self._answers._on_base_tables(self._answers._statement(question)):
                    raise
                gave_up = f"{type(failed).__name__}: {failed}"
                planned = self._plan(Question(question.text, Freshness.OFF), held)
            return planned.frame, Found([], planned.frame.schema, planned.served, gave_up=gave_up)
        except MvError as error:
            return None, Found([], error=error, gave_up=gave_up)

    def _plan(self, question: Question, held: ExitStack) -> Planned:
        statement = self._answers._statement(question)
        pinned = held.enter_context(Pinned(self._project))
        return held.enter_context(self._answers._planned(question, statement, pinned, self._spark))

    def _as_text(self, frame: DataFrame, number: int, held: ExitStack) -> str:
        """Rows of any columns in one form, as a SELECT."""
        name = f"_fuzz_{number}"
        frame.createOrReplaceTempView(name)
        held.callback(self._spark.catalog.dropTempView, name)
        fields = frame.schema.fields
        values = ", ".join(_text(f"c{at}", field.dataType) for at, field in enumerate(fields))
        columns = ", ".join(f"c{at}" for at in range(len(fields)))
        return f"SELECT {number} AS q, array({values}) AS v FROM {name} AS t({columns})"


def _text(column: str, kind: DataType) -> str:
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        return f"string(unix_micros(timestamp({column})))"
    return f"string({column})"
