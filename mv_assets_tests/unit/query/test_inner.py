"""SELECTs inside of a query: which can be taken out, and that each is answered by views on its own."""

from __future__ import annotations

import pytest

from mv_assets.query.execute.answer import Question
from mv_assets.query.match.inner import Inner, inner_selects, replaced_by
from mv_assets.query.match.statement import statement_of
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.queried_lake import HOURS, QueriedLake, QueriedLakes, rows_of

KNOWN = ["events", "zones"]


def taken(text: str) -> list[str]:
    """The text of every SELECT that can stand alone, the outermost ones first."""
    statement = statement_of(text, KNOWN)

    def all_of(found: list[Inner]) -> list[str]:
        return [
            *(statement.text[each.start : each.end].strip() for each in found if each.statement),
            *(one for each in found for one in all_of(each.inside)),
        ]

    return all_of(inner_selects(statement, KNOWN))


E = "SELECT zone FROM events"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (E, []),
        (f"SELECT * FROM ({E}) AS a", [E]),
        (f"WITH a AS ({E}) SELECT * FROM a", [E]),
        (f"WITH a AS ({E}) {E}", [E, E]),
        (f"{E} UNION ALL {E}", [E, E]),
        (f"{E} UNION ALL {E} ORDER BY 1", [E]),
        (f"SELECT zone FROM zones WHERE zone IN ({E} LIMIT 1)", [f"{E} LIMIT 1"]),
        (f"SELECT zone FROM zones WHERE zone = ({E} MINUS {E})", [E, E]),
        # By the name of a table, another relation is meant.
        (f"WITH events AS (SELECT 1 AS zone FROM zones) {E}", ["SELECT 1 AS zone FROM zones"]),
        (f"WITH events AS ({E}) SELECT * FROM events", [E]),
        # By another clock it would be another answer.
        (f"SELECT * FROM ({E} WHERE at > now()) AS a", []),
        # Under one name they could not be told apart.
        ("SELECT 1 FROM (SELECT zone, x AS ZONE FROM events) AS a", []),
        ("SELECT * EXCEPT (zone) FROM events", []),
        (
            f"SELECT * FROM (SELECT * FROM ({E}) AS a) AS b",
            ["SELECT * FROM (SELECT zone FROM events) AS a", E],
        ),
    ],
)
def test_selects_that_can_stand_alone(text: str, found: list[str]) -> None:
    assert taken(text) == found


def test_relations_stand_in_their_place() -> None:
    statement = statement_of(f"SELECT 1 FROM ({E}) AS a, ({E}) AS b", KNOWN)
    selects = inner_selects(statement, KNOWN)
    text = replaced_by(statement, zip(selects, ["one", "two"], strict=True))
    assert text == "SELECT 1 FROM (SELECT * FROM `one`) AS a, (SELECT * FROM `two`) AS b"


@pytest.fixture
def filled(queried_lake: QueriedLakes) -> QueriedLake:
    """Three days of events, of which a view has all and, of the last day, an old state."""
    made = queried_lake(view(sql=HOURS))
    made.days(0, 1, 2)
    made.lake.converge()
    made.day(2, "late.parquet", seed=3)
    return made


ZONES = "SELECT zone, count(*) AS n FROM events GROUP BY zone"
ZONES_LATER = "SELECT zone, count(*) AS n FROM events WHERE at >= '1970-01-02' GROUP BY zone"
HOURLY = "SELECT date_trunc('hour', at) AS h, zone, sum(fare) AS fare, count(*) AS n FROM events GROUP BY ALL"


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT zone, max(fare) FROM ({HOURLY}) AS a GROUP BY zone",
        f"WITH a AS ({HOURLY}) SELECT a.zone, sum(a.n), count(*) FROM a JOIN a b USING (h) GROUP BY a.zone",
        f"WITH a AS ({HOURLY}), b AS (SELECT max(n) AS most FROM a) SELECT h, zone FROM a, b WHERE n = most",
        "SELECT zone, count(*) FROM events GROUP BY zone UNION ALL SELECT NULL, count(*) FROM events",
        "SELECT count(*) FROM (SELECT zone, sum(x) AS xs FROM events GROUP BY zone HAVING sum(x) > 0)",
        "SELECT x, zone FROM events WHERE x > (SELECT avg(x) FROM events)",
        "SELECT zone FROM events WHERE zone IN (SELECT zone FROM events GROUP BY zone HAVING count(*) > 12)",
        f"SELECT h, zone, n, row_number() OVER (PARTITION BY zone ORDER BY n DESC, h) AS at FROM ({HOURLY})",
        f"SELECT h, lag(n) OVER (ORDER BY h, zone) AS before FROM ({HOURLY}) WHERE zone = 1",
        f"SELECT a.zone, a.n - b.n AS more FROM ({ZONES}) a JOIN ({ZONES_LATER}) b ON a.zone <=> b.zone",
    ],
)
def test_what_is_inside_is_answered_by_views(filled: QueriedLake, text: str) -> None:
    filled.right(text)
    answer = filled.like_base(text)
    assert answer.served.views


def test_all_parts_of_a_query_see_one_listing(filled: QueriedLake) -> None:
    """A file that comes between two parts is in neither of them."""
    filled.listed.append(lambda: filled.day(1, "later.parquet", seed=9))
    count = "SELECT count(*) AS n FROM events"
    text = f"SELECT a.n - b.n AS more FROM ({count}) AS a, ({count} WHERE zone IS NULL OR zone < 99) AS b"
    answer = filled.ask(text)
    assert filled.listed == []
    assert (rows_of(answer), [each.buckets for each in answer.served.views]) == ([(0,)], [4])


def test_of_selects_inside_it_is_said_why_a_view_does_not_answer(queried_lake: QueriedLakes) -> None:
    made = queried_lake(filled=2)
    xs = "SELECT x, count(*) AS n FROM events GROUP BY x"
    assert "add x to its keys (GROUP BY)" in made.why_not(f"WITH a AS ({xs}) SELECT max(n) AS n FROM a")
    both = f"SELECT count(*) AS n FROM ({xs}) AS a, (SELECT zone FROM events GROUP BY zone) AS b"
    assert made.right(both).served.views


def test_which_select_is_left_to_the_base_is_said_though_a_view_answers_another(
    queried_lake: QueriedLakes,
) -> None:
    made = queried_lake(filled=2)
    zones = "SELECT zone, count(*) AS n FROM events GROUP BY zone"
    answer = made.right(f"SELECT a.zone, b.x FROM ({zones}) AS a JOIN (SELECT x FROM events) AS b ON n = x")
    assert [each.buckets for each in answer.served.views] == [2]
    why = str(answer.served.reason)
    assert why.startswith("no view answers SELECT x FROM events: ")
    asked = f"WITH a AS ({zones}), b AS (SELECT x, count(*) AS n FROM events GROUP BY x) SELECT a.n FROM a, b"
    said = made.answers.explain(Question(asked)).reason
    assert "no view answers SELECT x, count(*) AS n" in str(said)
    assert "add x to its keys (GROUP BY)" in str(said)
