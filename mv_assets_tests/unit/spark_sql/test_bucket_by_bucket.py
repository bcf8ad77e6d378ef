"""SQL that is accepted over the whole table gives, bucket by bucket, what it gives there: DuckDB says so."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pytest

from mv_assets.views.admission.decomposition import Decomposition
from mv_assets_tests.unit.spark_sql.analysed import look

FIRST = datetime(2024, 1, 30)  # noqa: DTZ001 - DuckDB's timestamps have no zone
DAYS = 4


class Query:
    """Random SELECTs on top of each other, each with a time h, a zone z and a value v."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._steps: list[str] = []

    def sql(self) -> str:
        relation = "(SELECT pickup_at AS h, zone_id AS z, fare AS v FROM trips)"
        for _ in range(self._chance.randint(1, 4)):
            relation = self._named(self._step(relation))
        last = self._step(relation).replace("AS h", "AS hour", 1)
        if self._chance.random() < 0.2:
            last = f"{last} UNION ALL {self._step(relation)}"
        steps = f"WITH {', '.join(self._steps)} " if self._steps else ""
        return f"{steps}{last}"

    def _named(self, query: str) -> str:
        if self._chance.random() < 0.5:
            return f"({query})"
        self._steps.append(f"c{len(self._steps)} AS ({query})")
        return f"c{len(self._steps) - 1}"

    def _step(self, relation: str) -> str:
        name, time = f"t{self._chance.randrange(9)}", self._chance.choice(["hour", "day", "day", "month"])
        h = self._chance.choice([f"{name}.h", f"date_trunc('{time}', {name}.h)"])
        source = f"FROM {relation} {name}"
        window = self._chance.choice([f"PARTITION BY date_trunc('{time}', h)", "PARTITION BY z", h])
        window = window if window.startswith("P") else f"PARTITION BY {window}, z"
        return self._chance.choice(
            [
                f"SELECT {h} AS h, z + 1 AS z, v {source} WHERE v > 2",
                f"SELECT {h} AS h, n.zone_id AS z, v {source} JOIN zones n ON n.zone_id = {name}.z",
                f"SELECT {h} AS h, z, v {source} LEFT JOIN zones n ON n.borough = 'x'",
                f"SELECT {h} AS h, n.zone_id AS z, v FROM zones n LEFT JOIN {relation} {name} ON true",
                f"SELECT {h} AS h, z, sum(v) AS v {source} GROUP BY 1, 2",
                f"SELECT {h} AS h, 0 AS z, count(DISTINCT z) AS v {source} GROUP BY {h}",
                f"SELECT max(h) AS h, z, sum(v) AS v {source} GROUP BY z",
                f"SELECT max(h) AS h, 1 AS z, sum(v) AS v {source}",
                f"SELECT DISTINCT {h} AS h, z, 1 AS v {source}",
                f"SELECT {h} AS h, z, sum(v) OVER ({window}) AS v {source}",
                f"SELECT {h} AS h, z, v {source} UNION SELECT h, z, v {source}",
                f"SELECT {h} AS h, z, v {source} UNION ALL SELECT h, z, 7 {source}",
                f"SELECT {h} AS h, z, v {source} WHERE z IN (SELECT zone_id FROM zones)",
                f"SELECT {h} AS h, z, v {source} WHERE v >= (SELECT max(v) {source})",
                f"SELECT {h} AS h, z, v {source} EXCEPT SELECT h, z, 7 {source}",
            ]
        )


class Oracle:
    """Trips of a few days, whole or of one day alone."""

    def __init__(self) -> None:
        chance = random.Random(7)
        self._db = duckdb.connect()
        self._db.execute(
            "CREATE TABLE zones AS SELECT * FROM (VALUES (1, 'x'), (2, 'x'), (3, 'y')) z(zone_id, borough)"
        )
        rows = [
            (FIRST + timedelta(hours=chance.randrange(24 * DAYS)), chance.randrange(4), chance.randrange(6))
            for _ in range(60)
        ]
        self._db.execute("CREATE TABLE every (pickup_at TIMESTAMP, zone_id INT, fare INT)")
        self._db.executemany("INSERT INTO every VALUES (?, ?, ?)", rows)

    def rows(self, sql: str, day: int | None = None) -> Counter[tuple[Any, ...]]:
        start = FIRST + timedelta(days=day or 0)
        where = (
            ""
            if day is None
            else f"WHERE pickup_at >= '{start}' AND pickup_at < '{start + timedelta(days=1)}'"
        )
        self._db.execute(f"CREATE OR REPLACE TEMP VIEW trips AS SELECT * FROM every {where}")
        return Counter(self._db.execute(sql).fetchall())

    def agrees(self, sql: str) -> bool:
        parts = sum((self.rows(sql, day) for day in range(DAYS)), Counter[tuple[Any, ...]]())
        return self.rows(sql) == parts


def test_what_is_accepted_gives_the_same_on_each_bucket_alone() -> None:
    oracle, accepted, differing = Oracle(), 0, 0
    for seed in range(800):
        sql = Query(seed).sql()
        fine = not look(sql)[1]
        accepted += fine
        if fine:
            assert oracle.agrees(sql), sql
        elif seed < 200:
            differing += not oracle.agrees(sql)
    assert accepted > 80
    # Those that are refused are not refused for nothing.
    assert differing > 60


def test_a_window_inside_that_is_not_looked_at_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Decomposition, "windows", lambda _: [])
    oracle = Oracle()
    accepted = [sql for sql in (Query(seed).sql() for seed in range(300)) if not look(sql)[1]]
    assert not all(map(oracle.agrees, accepted))
