"""Nothing but the declared tables can be read by SQL, and nothing can be written or run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from mv_assets.buckets import Buckets
from mv_assets.query.errors import QueryRefused
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.match.statement import statement_of
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission.analysis import analyse
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.spark_lake import SparkLake

# Each stands for an expression; `{}` is a place outside of the project.
EXPRESSIONS = [
    "(SELECT value FROM text.`{}`)",
    "(SELECT value FROM csv.`../{}` LIMIT 1)",
    "(SELECT value FROM delta.`{}`)",
    "(SELECT value FROM spark_catalog.default.secret)",
    "(SELECT value FROM global_temp.secret)",
    "(SELECT value FROM a.b.c.d.e)",
    "(TABLE secret)",
    "(TABLE 1secret)",
    "(table/**/`secret`)",
    '(TABLE "secret")',
    "(FROM secret)",
    "(WITH a AS (SELECT value FROM secret) SELECT value FROM a)",
    "(SELECT value FROM IDENTIFIER('secret'))",
    "(SELECT value FROM read_files('{}'))",
    "(SELECT value FROM sql_keywords())",
    "(SELECT value FROM explode((SELECT collect_list(value) FROM secret)) AS e(value))",
    "x IN (SELECT value FROM secret)",
    "EXISTS (SELECT value FROM secret)",
    "count(*) FILTER (WHERE EXISTS (SELECT 1 FROM secret))",
    "sum(x) OVER (PARTITION BY (SELECT value FROM secret))",
    "transform(array(1), a -> a IN (SELECT value FROM secret))",
    "java_method('java.lang.System', 'getenv', 'HOME')",
    "try_reflect('java.lang.System', 'getenv', 'HOME')",
    "`reflect`/**/('java.lang.System', 'getenv', 'HOME')",
    "system.builtin.reflect('java.lang.System', 'getenv', 'HOME')",
    "transform(array('HOME'), a -> reflect('java.lang.System', 'getenv', a))",
    "session.my_function(x)",
    "my_function(x)",
    "from_xml('<a>1</a>', '_VALUE STRING', map('rowValidationXSDPath', '{}'))",
    "schema_of_xml('<a>1</a>', map('rowValidationXSDPath', '{}'))",
    "from_avro(x, '\"int\"', map('avroSchemaUrl', '{}'))",
    "from_protobuf(x, 'M', '{}')",
    "(SELECT TRANSFORM(x) USING 'touch {}' AS (y) FROM events)",
    "(MAP x USING 'touch {}' FROM events)",
    "(REDUCE x USING 'touch {}' FROM events)",
    "(FROM events MAP x USING 'touch {}')",
    "@@version",
    ":x",
]
# Each comes after a whole SELECT.
ENDINGS = [
    "; DROP TABLE events",
    "UNION ALL TABLE secret",
    "UNION ALL SELECT value, value FROM secret",
    ", LATERAL (SELECT value FROM secret)",
    "JOIN text.`{}`",
    "LATERAL VIEW my_generator(x) t",
    "|> SELECT x",
    "|> UNION ALL (TABLE secret)",
    "VERSION AS OF 1",
    "ORDER BY (SELECT value FROM secret)",
]
STATEMENTS = [
    "SELECT /*+ a('*/ at AS hour, ') */ (SELECT value FROM secret), ' AS x FROM events",
    "INSERT INTO events SELECT * FROM events",
    "INSERT OVERWRITE DIRECTORY '{}' USING csv SELECT * FROM events",
    "FROM events INSERT OVERWRITE DIRECTORY '{}' USING csv SELECT *",
    "WITH a AS (SELECT 1) INSERT INTO events SELECT * FROM a",
    "CREATE TABLE t USING csv LOCATION '{}' AS SELECT * FROM events",
    "COPY INTO events FROM '{}'",
    "LOAD DATA INPATH '{}' INTO TABLE events",
    "ADD JAR '{}'",
    "SET spark.sql.runSQLOnFiles = true",
    "CACHE TABLE t AS SELECT * FROM events",
    "ANALYZE TABLE events COMPUTE STATISTICS",
    "REFRESH '{}'",
    "EXECUTE IMMEDIATE 'SELECT * FROM events'",
    "CALL system.run()",
    "EXPLAIN SELECT * FROM events",
    "DESCRIBE events",
    "SHOW TABLES",
    "DECLARE x = (SELECT 1)",
    "BEGIN SELECT * FROM events; END",
]


def whole() -> list[str]:
    asked = [
        *(f"SELECT date_trunc('hour', at) AS hour, {each} AS x FROM events" for each in EXPRESSIONS),
        *(f"SELECT at AS hour, x FROM events {each}" for each in ENDINGS),
        *STATEMENTS,
    ]
    return [each.replace("{}", "/outside") for each in asked]


@pytest.mark.parametrize("text", whole())
def test_sql_that_gets_at_more_than_the_tables_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        statement_of(text, ("events", "hourly"))
    # Nor is it a view, whether the columns of its base are known or not.
    for columns in (None, {"at": "timestamp", "x": "int"}):
        base = Source("events", columns, "at")
        found, mistakes = analyse(
            text, base=base, dimensions=[], time_column="hour", buckets=Buckets.of("1d")
        )
        assert found is None
        assert mistakes


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("SELECT x -- \\\n, y FROM t", "SELECT x     \n, y FROM t"),
        ("SELECT x /* /*+ */ , y -- */\nFROM t", "SELECT x \nFROM t"),
        ("SELECT 'a -- b', \"/* c */\", `-- d` FROM t", "SELECT 'a -- b', \"/* c */\", `-- d` FROM t"),
        ("SELECT /*+ BROADCAST(t) */ 10L, r'\\', 'it''s' FROM t", None),
    ],
)
def test_spark_is_given_what_was_read_without_its_comments(text: str, bare: str | None) -> None:
    given = statement_of(text, ("t",)).text
    assert given.split() == (bare or text).split()


def test_spark_reads_no_file_that_stands_behind_a_comment(
    spark_lake: Callable[..., SparkLake], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    hidden = f"/* /*+ */ UNION ALL SELECT timestamp'1970-01-01', length(value) FROM text.`{secret}` -- */"
    lake = spark_lake(view(sql=f"SELECT at AS hour, x FROM events {hidden}"))
    lake.days(0, 1)
    lake.run()
    assert lake.stored()["x"].to_pylist() == [0, 0, 1, 1]
    asked = Question(f"SELECT x, 'b' FROM events /* /*+ */ UNION SELECT 1, value FROM text.`{secret}` -- */")
    assert "hunter2" not in str(Answers(lake.open()).answer(asked).frame.collect())
    # Should a text ever get through, Spark does not take a path for a table either.
    with lake.engine.session() as spark, pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"SELECT * FROM text.`{secret}`").collect()
