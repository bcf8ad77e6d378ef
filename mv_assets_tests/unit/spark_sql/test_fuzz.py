from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mv_assets_tests.unit.spark_sql.analysed import HOURLY, TRIPS, ZONES, look

VALID = (
    HOURLY,
    "SELECT pickup_at AS hour, payload.b.c, transform(stops, s -> s + 1) AS n FROM trips WHERE fare > 10L",
    """
    WITH z AS (SELECT zone_id, max(borough) AS b FROM zones GROUP BY 1)
    SELECT t.pickup_at AS hour, b FROM trips t LEFT JOIN z ON t.zone_id = z.zone_id
    """,
    "SELECT DISTINCT to_date(pickup_at) AS hour, e.v FROM trips, zones LATERAL VIEW explode(stops) e AS v",
    """
    SELECT pickup_at AS hour, sum(fare) OVER w AS s FROM trips LEFT SEMI JOIN zones USING (zone_id)
    WINDOW w AS (PARTITION BY pickup_at ORDER BY fare ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    """,
    """
    SELECT pickup_at AS hour, CASE WHEN fare IN (1, 2.5D) THEN INTERVAL 1 DAY END AS i, tags['a'] AS t,
      first_value(fare) IGNORE NULLS OVER (PARTITION BY pickup_at ORDER BY zone_id) AS f
    FROM trips WHERE EXISTS (SELECT 1 FROM zones z WHERE z.zone_id = trips.zone_id) QUALIFY f > 1
    """,
)
BY_BUCKET = (
    """
    WITH r AS (SELECT zone_id, max(km) AS km FROM rides GROUP BY 1), z AS (SELECT * FROM r)
    SELECT :bucket_start AS hour, t.zone_id, count(*) AS n, max_by(fare, struct(pickup_at, fare)) AS f
    FROM trips t LEFT JOIN z USING (zone_id) CROSS JOIN zones GROUP BY ROLLUP(t.zone_id)
    """,
    """
    (SELECT pickup_at AS hour, fare FROM trips ORDER BY fare, hour LIMIT 3) UNION ALL
    SELECT at, km FROM rides EXCEPT SELECT hour, x FROM VALUES (TIMESTAMP '2024-01-01', 2) v(hour, x), zones
    ORDER BY 1, fare LIMIT 9
    """,
)
PIECES = [*"'\"`;()[]{}$?:@*%\\", "/*", "*/", "--", "|>", "||"]
WORDS = sorted({word for sql in (*VALID, *BY_BUCKET) for word in re.findall(r"\w+|\S", sql)}.union(PIECES))


def check(sql: str) -> None:
    whole = look(sql, base=TRIPS, dimensions=[ZONES])
    by_bucket = look(sql, base=TRIPS, dimensions=[ZONES], scope="bucket")
    # What may be meant over the table may be meant over a bucket.
    assert whole[0] is None or by_bucket[0] is not None, sql
    for mistake in (*whole[1], *by_bucket[1]):
        assert mistake.where in {"sql", "time_column", "dimensions", "with", "bucket"}
        assert "\x1b" not in mistake.what
        # Not what the analysis says when it lost its way.
        assert "can't be understood" not in mistake.what, sql


def mutated(sql: str, chance: random.Random, others: Sequence[str] = WORDS) -> str:
    """With some words lost, moved, repeated, or replaced by others."""
    words = re.findall(r"\s+|\w+|\S", sql)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(words))
        match chance.randrange(5):
            case 0:
                words[place] = ""
            case 1:
                words[place] = chance.choice(others)
            case 2:
                words.insert(place, f" {chance.choice(others)} ")
            case 3:
                other = chance.randrange(len(words))
                words[place], words[other] = words[other], words[place]
            case _:
                start = chance.randrange(len(words))
                words[place:place] = words[start : start + chance.randint(1, 12)]
    return "".join(words)


@pytest.mark.parametrize("sql", VALID)
def test_the_unmutated_texts_are_good(sql: str) -> None:
    assert look(sql, base=TRIPS, dimensions=[ZONES] if "zones" in sql else [])[1] == []


@pytest.mark.parametrize("sql", BY_BUCKET)
def test_the_unmutated_texts_for_a_bucket_are_good(sql: str) -> None:
    assert look(sql, base=TRIPS, dimensions=[ZONES], scope="bucket")[1] == []


@pytest.mark.parametrize("seed", range(6))
def test_mutations_of_good_sql_never_raise(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(150):
        check(mutated(chance.choice((*VALID, *BY_BUCKET)), chance))


@settings(max_examples=150)
@given(st.text(max_size=80))
def test_garbage_never_raises(text: str) -> None:
    check(text)
    check(f"SELECT {text} FROM trips")


@settings(max_examples=150)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_words_in_any_order_never_raise(words: list[str]) -> None:
    check(" ".join(words))
    check(f"SELECT {' '.join(words)}")


@pytest.mark.parametrize("depth", [50, 200, 500, 3000])
def test_depth_never_raises(depth: int) -> None:
    for sql in (
        "SELECT pickup_at AS hour, " + "abs(" * depth + "1" + ")" * depth + " AS x FROM trips",
        "SELECT pickup_at AS hour FROM trips WHERE " + " AND ".join(["fare > 1"] * depth),
        "SELECT pickup_at AS hour FROM " + "(" * depth + "trips" + ")" * depth,
        "(" * depth + "SELECT pickup_at AS hour FROM trips" + ")" * depth,
        "SELECT pickup_at AS hour, " + "payload." * depth + "x AS x FROM trips",
        "SELECT hour FROM (" * depth + "SELECT pickup_at AS hour FROM trips" + ")" * depth,
        " UNION ALL ".join(["SELECT pickup_at AS hour FROM trips"] * depth),
    ):
        look(sql)
        look(sql, scope="bucket")
