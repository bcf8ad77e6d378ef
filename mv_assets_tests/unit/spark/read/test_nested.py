"""Fields inside columns, however a table finds its columns in the files; DuckDB says what is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import LongType, StringType

from mv_assets.config import MaterializedView, Spark
from mv_assets.maintain.audit import audit
from mv_assets.maintain.recomputation import Finding
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets.spark.read import files, places
from mv_assets.spark.read.conversion import Conversion
from mv_assets.spark.session import Engine
from mv_assets.views import view as definitions
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.spark_lake import plainly
from mv_assets_tests.unit.spark.read import nested
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily

Make = Callable[..., UncheckedLake]
PRUNING = "spark.sql.optimizer.nestedSchemaPruning.enabled"
BY_ID = ["iceberg 2", "delta id"]
FORMATS = [
    *BY_ID,
    *(
        pytest.param(kind, marks=pytest.mark.slow)
        for kind in ("iceberg 1", "delta name", "delta none", "parquet")
    ),
]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    with nested.catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def filled(unchecked_lake: Make, catalog: SqlCatalog) -> Callable[..., UncheckedLake]:
    """A lake with two days of rows, in a table of some kind."""

    def make(kind: str, *views: MaterializedView, **options: Any) -> UncheckedLake:
        table, _, how = kind.partition(" ")
        lake = unchecked_lake(
            *views,
            table={"format": table, **({"unsafe": True} if table == "iceberg" else {})},
            oracle=oracle(how),
            **options,
        )
        root = lake.folder / "events"
        if table == "iceberg":
            put: nested.Put = nested.iceberg(catalog, root, int(how)).append
        elif table == "delta":
            put = nested.delta(root, how)
        else:
            names = iter("ab")
            put = lambda rows: lake.put(f"{next(names)}.parquet", rows)  # noqa: E731
        put(nested.rows(0))
        put(nested.rows(1))
        return lake

    return make


def views() -> list[MaterializedView]:
    return [view(name, sql=ours, time_column="at") for name, (ours, _) in nested.QUERIES.items()]


def oracle(how: str) -> dict[str, str]:
    """What DuckDB is asked, of files that may call columns otherwise."""
    names = ", ".join(f'"col-{number}" AS "{name}"' for number, name in enumerate(nested.SCHEMA.names, 1))
    before = f"WITH events AS (SELECT {names} FROM main.events) " if how in ("id", "name") else ""
    return {name: before + theirs for name, (_, theirs) in nested.QUERIES.items()}


@pytest.mark.parametrize("kind", FORMATS)
def test_views_on_fields_of_every_kind_and_depth(filled: Make, kind: str) -> None:
    lake = filled(kind, *views())
    lake.run()
    lake.check()


@pytest.mark.parametrize("kind", BY_ID)
@pytest.mark.parametrize("freshness", [Freshness.OFF, Freshness.STRICT])
def test_questions_on_fields_of_every_kind_and_depth(filled: Make, kind: str, freshness: Freshness) -> None:
    lake = filled(kind, *views())
    answers = Answers(lake.open())
    for name, (ours, _) in nested.QUERIES.items():
        found = answers.answer(Question(ours, freshness)).frame.toArrow()
        assert by_value(found) == by_value(expected(lake, lake.oracle[name])), ours


def by_value(rows: pa.Table) -> list[Any]:
    return sorted((tuple(map(plainly, row.values())) for row in rows.to_pylist()), key=repr)


def expected(lake: UncheckedLake, sql: str) -> pa.Table:
    read = [str(path) for path in (lake.folder / "events").rglob("*.parquet")]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({read}, union_by_name = true)")
        return connection.sql(sql).to_arrow_table()


def nothing(_spark: object) -> None:
    """What a session would be told."""


WHOLE = view("whole", sql=nested.QUERIES["whole"][0], time_column="at")
FIELDS = view("fields", sql=nested.QUERIES["fields"][0], time_column="at")


def test_what_a_project_sets_for_spark_does_not_matter(filled: Make, engine: Engine) -> None:
    declared = Spark(conf={PRUNING: "true"})
    lake = filled("iceberg 2", FIELDS, engine=Engine(declared, start=lambda _: engine.shared().newSession()))
    lake.run()
    lake.check()


def test_the_next_job_of_a_session_reads_no_more_than_it_needs(filled: Make, engine: Engine) -> None:
    lake = filled("iceberg 2", FIELDS)
    lake.run()
    with engine.session() as spark:
        assert spark.conf.get(PRUNING) == "true"


def test_columns_that_changed_names_and_types_beside_partitions(
    unchecked_lake: Make, catalog: SqlCatalog
) -> None:
    """What was `s` is `was`, and another column is called `s` now; fields were added, and hold more."""
    small = pa.struct({"x": pa.int32(), "y": pa.string()})
    schema = pa.schema({"at": nested.SCHEMA.field("at").type, "zone": pa.string(), "s": small, "t": small})
    lake = unchecked_lake(
        daily("zone", "s.x AS sx", "s.added AS added", "was.y AS y", "typeof(s.x) AS kind"),
        table={"format": "iceberg", "unsafe": True},
    )
    made = nested.iceberg(catalog, lake.folder / "events", 2, by="zone", schema=schema)
    at = nested.rows(0)["at"].to_pylist()[-1:]
    first = {"at": at, "zone": ["a/b"], "s": [{"x": 1, "y": "was"}], "t": [{"x": 2, "y": "is"}]}
    made.append(pa.table(first, schema))
    for old, new in (("s", "was"), ("t", "s")):
        with made.update_schema() as update:
            update.rename_column(old, new)
    with made.update_schema() as update:
        update.update_column(("s", "x"), LongType())
        update.add_column(("s", "added"), StringType())
    wide = pa.struct({"x": pa.int64(), "y": pa.string(), "added": pa.string()})
    schema = pa.schema({"at": schema.field("at").type, "zone": pa.string(), "was": small, "s": wide})
    at = nested.rows(1)["at"].to_pylist()[-1:]
    second = {"at": at, "zone": [None], "was": [None], "s": [{"x": 2**40, "y": None, "added": "new"}]}
    made.append(pa.table(second, schema))
    lake.run()
    assert lake.rows("zone", "sx", "added", "y", "kind") == [
        ("a/b", 2, None, "was", "bigint"),
        (None, 2**40, "new", None, "bigint"),
    ]
    assert [(each.verdict, each.reread) for each in audited(lake, "v")] == [("equal", True)] * 2


@pytest.mark.parametrize("kind", FORMATS)
def test_arrow_reads_the_same_of_every_kind_and_depth(filled: Make, kind: str) -> None:
    lake = filled(kind, *(each for each in views() if not each.name.startswith("select")))
    lake.run()
    for name in lake.catalog.views:
        assert [(each.verdict, each.reread) for each in audited(lake, name)] == [("equal", True)] * 2


def audited(lake: UncheckedLake, name: str = "fields") -> list[Finding]:
    return audit(lake.open(), lake.catalog.view(name), None)


@pytest.fixture
def pruned(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Spark as it is by itself: it reads some fields of a column only, and loses the column's id.

    Asked for fields by their own ids it reads all, as the cast to their names takes the whole column.
    """
    with monkeypatch.context() as patch:
        patch.setattr(files, "read_whole_columns", nothing)
        patch.setattr(places, "_assumed", lambda _, kind: (kind, Conversion(kind)))
        yield patch


@pytest.mark.parametrize(("kind", "wrong"), [("iceberg 2", 6), ("delta id", 5)])
def test_an_audit_finds_what_spark_reads_wrong_each_time(
    filled: Make, pruned: pytest.MonkeyPatch, kind: str, wrong: int
) -> None:
    lake = filled(kind, FIELDS)
    lake.run()
    assert lake.stored("fields")["c0"].null_count == 12
    found = audited(lake)
    assert [each.verdict for each in found] == ["different"] * 2
    says = (
        f"{wrong} of 6 rows differ from a recomputation of what Arrow reads, though not of what Spark reads"
    )
    assert all(str(each.reason).startswith(says) for each in found)
    pruned.undo()
    lake.run()
    lake.check()
    assert [(each.verdict, each.reread) for each in audited(lake)] == [("equal", True)] * 2


def test_buckets_of_before_are_computed_again(filled: Make, pruned: pytest.MonkeyPatch) -> None:
    pruned.setattr(definitions, "INSIDE_FORMAT", definitions.ENGINE_FORMAT)
    lake = filled("iceberg 2", FIELDS, WHOLE)
    lake.run()
    kept = lake.snapshot("whole").rows
    pruned.undo()
    lake.declare(FIELDS, WHOLE)
    assert lake.outcomes("fields") == {0: "committed", 1: "committed"}
    assert lake.outcomes("whole") == {}
    assert lake.snapshot("whole").rows == kept
    lake.check()
