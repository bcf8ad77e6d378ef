"""Questions that views once answered otherwise than the base table; and what must not be read at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.engine.session import Engine
from mv_assets.errors import QueryRefused
from mv_assets.project import Spark
from mv_assets.query.answering import Answer, Answers, Question
from mv_assets.query.fitness import Freshness
from mv_assets.state.store import Store
from mv_assets_tests.lake import day, view
from mv_assets_tests.refinery import Refinery

Make = Callable[..., Refinery]
HOURLY = """
    SELECT date_trunc('hour', at) AS hour, zone, x, name, f, count(*) AS n, sum(b) AS b, count(b) AS bs,
           bool_and(x > 1) AS a FROM events GROUP BY ALL
"""
SINGLE = "SELECT at, zone, fare FROM events WHERE zone > 1"
TEXTS = """
    SELECT date_trunc('day', at) AS hour, cast(x AS string) AS xs, date_trunc('day', cast(s AS date)) AS sd,
           count(*) AS n FROM events GROUP BY ALL
"""
AS_THE_BASE = [
    "SELECT coalesce(zone, 0) AS zone, count(*) n FROM events GROUP BY zone HAVING zone IS NULL",
    "SELECT zone AS x, count(*) n FROM events GROUP BY zone HAVING max(x) > 2",
    "SELECT count(DISTINCT *) FROM events WHERE zone > 1",
    "SELECT zone, struct(*) h FROM events WHERE zone > 1",
    "SELECT count(*) FROM events WHERE zone > 1 AND hash(*) % 2 = 0",
    "SELECT count(*) FROM events WHERE concat(*) LIKE '%a%'",
    "SELECT count(*) FROM events WHERE at >= current_date() - INTERVAL 40000 DAYS AND name = 'it''s'",
    "SELECT count(*) FROM events WHERE at >= current_date() - (SELECT max(21000) FROM events)",
    "SELECT cast(f AS STRING) s, count(*) FROM events GROUP BY 1",
    "SELECT date_trunc('day', s), count(*) FROM events GROUP BY 1",
    "SELECT 1 AS one FROM events HAVING (bool_and(x > 1))",
    "SELECT hour(to_date(at)), count(*) FROM events GROUP BY 1",
    "SELECT x, count(*) FROM events WHERE (x > 1) GROUP BY x",
]
FROM_VIEWS = [
    "SELECT zone AS z, count(*) n FROM events GROUP BY zone HAVING n > 2 AND z > 1",
    "SELECT count(*) FROM events WHERE at >= current_date() - INTERVAL 40000 DAYS AND name = 'a'",
    "SELECT date_trunc('day', date_trunc('hour', at)), count(*) FROM events GROUP BY 1",
    "SELECT upper(name), count(*) FROM events GROUP BY 1",
    "SELECT cast(x AS STRING), count(*) FROM events GROUP BY 1",
]
OF_A_WIDER_TYPE = [
    "SELECT cast(x AS STRING) s, count(*) FROM events GROUP BY 1",
    "SELECT count(*) FROM events WHERE cast(x AS STRING) = '1'",
    "SELECT concat(x, 'k'), count(*) FROM events GROUP BY 1",
    "SELECT x, count(*) FROM events WHERE at < '1970-01-03' GROUP BY x",
]


@pytest.fixture
def unchecked(tmp_path: Path, engine: Engine) -> Iterator[Make]:
    """Lakes whose views DuckDB would compute otherwise, as it knows one type a column and no wrapping."""
    opened = Store(f"sqlite:///{tmp_path}/state.db")
    yield lambda *views, **options: Refinery(
        tmp_path / "lake", opened, views, **{"engine": engine, **options}
    )
    opened.close()


def write(lake: Refinery, number: int, kind: pa.DataType | None = None) -> None:
    chance, count = random.Random(number), 40
    rows: dict[str, Any] = {
        "at": pa.array([day(number, chance.random() * 24) for _ in range(count)], pa.timestamp("us", "UTC")),
        "zone": pa.array([chance.choice([None, 1, 2, 3]) for _ in range(count)], pa.int32()),
        "fare": pa.array([Decimal(chance.randrange(1000)) / 100 for _ in range(count)], pa.decimal128(10, 2)),
        "x": pa.array([chance.randrange(4) for _ in range(count)], kind or pa.int32()),
        "b": pa.array([1 << 62 for _ in range(count)], pa.int64()),
        "name": [chance.choice(["its", "it's", "a"]) for _ in range(count)],
        "f": [chance.choice([0.0, -0.0, 1.5]) for _ in range(count)],
        "s": [chance.choice(["1970-01-02 00:30:00+05:00", "1970-01-03"]) for _ in range(count)],
    }
    pq.write_table(pa.table(rows), lake.folder / "events" / f"day-{number}.parquet")


def filled(refinery: Make, *views: str) -> Refinery:
    named = {"hourly": HOURLY.replace("sum(b) AS b, count(b) AS bs,", ""), "texts": TEXTS}
    declared = [view(name, sql=named[name]) for name in views if name in named]
    if "single" in views:
        declared.append(view("single", sql=SINGLE, time_column="at"))
    lake = refinery(*declared)
    for number in range(3):
        write(lake, number)
    lake.run()
    return lake


def asked(lake: Refinery, text: str) -> Answer:
    """The answer, which must be the base table's."""
    answers = Answers(lake.place())
    found, base = answers.answer(Question(text)), answers.answer(Question(text, Freshness.OFF))
    mine, theirs = found.frame.toArrow(), base.frame.toArrow()
    assert sorted(map(str, mine.to_pylist())) == sorted(map(str, theirs.to_pylist())), text
    assert (mine.schema.names, mine.schema.types) == (theirs.schema.names, theirs.schema.types), text
    return found


def test_what_two_readers_of_sql_read_otherwise_is_as_the_base_says(refinery: Make) -> None:
    lake = filled(refinery, "hourly", "single", "texts")
    for text in AS_THE_BASE:
        asked(lake, text)
    for text in FROM_VIEWS:
        assert asked(lake, text).served.views, text


def test_a_wider_type_in_a_later_file_is_the_type_of_all(unchecked: Make) -> None:
    lake = filled(unchecked, "hourly", "texts")
    write(lake, 5, pa.float64())
    for text in OF_A_WIDER_TYPE:
        asked(lake, text)
    lake.run()
    for text in OF_A_WIDER_TYPE:
        asked(lake, text)


@pytest.mark.parametrize("inside", ["(TABLE secret)", "(table `secret`)", "(1 + (TABLE events))"])
def test_a_table_is_not_read_by_a_word_that_looks_like_a_column(refinery: Make, inside: str) -> None:
    lake = filled(refinery, "hourly")
    with pytest.raises(QueryRefused):
        Answers(lake.place()).answer(Question(f"SELECT {inside} AS s, count(*) FROM events"))


def test_a_refresh_leaves_no_names_for_queries_to_find(refinery: Make) -> None:
    lake = filled(refinery, "hourly", "single")
    with lake.engine.session() as spark:
        assert [table.name for table in spark.catalog.listTables()] == []


def test_without_ansi_means_of_integers_are_the_bases(unchecked: Make, engine: Engine) -> None:
    conf = {**engine.declared.conf, "spark.sql.ansi.enabled": "false"}
    wrapping = Engine(Spark(master=engine.declared.master, remote=engine.declared.remote, conf=conf))
    wrapping.attach(engine.shared())
    lake = unchecked(view("hourly", sql=HOURLY), engine=wrapping)
    for number in range(3):
        write(lake, number)
    lake.run()
    assert asked(lake, "SELECT zone, avg(b) FROM events GROUP BY zone").served.views == ()
    assert asked(lake, "SELECT zone, sum(b) FROM events GROUP BY zone").served.views
