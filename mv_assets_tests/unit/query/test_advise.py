"""What is advised is admitted, would answer, and is as small as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets.config import MaterializedView
from mv_assets.project import Project
from mv_assets.query.advise.proposal import Proposal
from mv_assets.query.errors import QueryRefused

FIRST = datetime(2024, 1, 3, 7, tzinfo=UTC)
SHOPS = (
    "SELECT date_trunc('day', at) AS day, shop, count(*) AS n, sum(amount) AS amount "
    "FROM orders WHERE paid GROUP BY day, shop"
)
DAYS = "SELECT DATE_TRUNC('DAY', at) AS day, COUNT(*) AS n"
Opened = Callable[..., Project]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Projects over orders of a day, with the views that are given."""
    times = [FIRST + timedelta(hours=hour) for hour in range(9)]
    columns: dict[str, list[Any]] = {
        "at": times, "shop": list(range(9)), "amount": list(range(9)), "tax": list(range(9)),
        "paid": [True] * 9, "note": ["a"] * 9, "weight": [0.5] * 9,
    }  # fmt: skip
    for table, content in {
        "orders": columns,
        "shops": {"shop": [1, 2], "rank": [1, 2], "city": ["a", "b"]},
    }.items():
        (tmp_path / table).mkdir()
        pq.write_table(pa.table(content), tmp_path / table / "1.parquet")
    made = list[Project]()

    def open_with(*views: dict[str, Any]) -> Project:
        tables = [
            {"name": "orders", "path": "orders", "time_column": "at"},
            {"name": "shops", "path": "shops"},
        ]
        file = tmp_path / f"project-{len(made)}.yaml"
        file.write_text(yaml.safe_dump({"tables": tables, "views": list(views)}, sort_keys=False))
        made.append(Project.open(file))
        return made[-1]

    yield open_with
    for project in made:
        project.close()


def shops(sql: str = SHOPS, **given: Any) -> dict[str, Any]:
    declared = {
        "name": "by_shop",
        "base": "orders",
        "time_column": "day",
        "bucket": "1d",
        "start": "2024-01-01",
    }
    return {**declared, "sql": sql, **given}


def only(project: Project, text: str) -> Proposal:
    found = project.advise(text)
    assert found.reason is None, found.reason
    [proposal] = found.proposals
    return proposal


def applied(opened: Opened, proposal: Proposal, *views: dict[str, Any]) -> Project:
    """The project with what was proposed written into its file."""
    written = yaml.safe_load(proposal.yaml)
    if proposal.change is None:
        return opened(*views, *written)
    return opened(*({**each, **written} if each["name"] == proposal.view.name else each for each in views))


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("SELECT shop, sum(tax) FROM orders WHERE paid GROUP BY shop", "add sum(tax) to the view"),
        (
            "SELECT avg(tax), max(amount) FROM orders WHERE paid",
            "add sum(tax), count(tax), max(amount) to the view",
        ),
        (
            "SELECT sum(amount) FILTER (WHERE tax > 3) FROM orders WHERE paid",
            "add sum(amount) FILTER (WHERE tax > 3) to the view",
        ),
    ],
)
def test_a_view_that_lacks_aggregates_alone_is_changed(opened: Opened, text: str, change: str) -> None:
    proposal = only(opened(shops()), text)
    assert (proposal.view.name, proposal.change) == ("by_shop", change)
    assert "answers it already" in str(applied(opened, proposal, shops()).advise(text).reason)


@pytest.mark.parametrize(
    ("text", "name", "sql"),
    [
        (
            "SELECT note, sum(tax) AS tax FROM orders GROUP BY note",
            "orders_by_note_daily",
            f"{DAYS}, note, SUM(tax) AS sum_tax FROM orders GROUP BY ALL",
        ),
        (
            "SELECT hour(at), count(*) FROM orders WHERE shop IN (1, 2) GROUP BY 1",
            "orders_by_shop_hourly",
            "SELECT DATE_TRUNC('HOUR', at) AS hour, COUNT(*) AS n, shop FROM orders GROUP BY ALL",
        ),
        (
            "SELECT count(*) FROM orders WHERE amount > 5 AND at >= '2024-01-03 10:00:00'",
            "orders_hourly",
            "SELECT DATE_TRUNC('HOUR', at) AS hour, COUNT(*) AS n FROM orders WHERE amount > 5 GROUP BY ALL",
        ),
        (
            "SELECT city, sum(tax) FROM orders JOIN shops USING (shop) GROUP BY city",
            "orders_by_shop_daily",
            f"{DAYS}, shop, SUM(tax) AS sum_tax FROM orders GROUP BY ALL",
        ),
        (
            "SELECT percentile(tax, 0.5) FROM orders WHERE shop = 3",
            "orders_rows",
            "SELECT at, shop, tax FROM orders WHERE shop = 3",
        ),
    ],
)
def test_else_a_new_view_is_written_out(opened: Opened, text: str, name: str, sql: str) -> None:
    proposal = only(opened(), text)
    assert proposal.change is None
    assert proposal.view.name == name
    assert " ".join(str(proposal.view.sql).split()).upper() == sql.upper()
    assert "start: earliest\n" in proposal.yaml
    assert f"view {name} answers it already" in str(applied(opened, proposal).advise(text).reason)


def test_a_view_that_joins_says_so(opened: Opened) -> None:
    text = "SELECT city, sum(rank * tax) FROM orders JOIN shops ON orders.shop = shops.shop GROUP BY city"
    proposal = only(opened(), text)
    assert proposal.view.joined == ("shops",)
    assert "answers it already" in str(applied(opened, proposal).advise(text).reason)


def test_sums_of_floating_point_numbers_are_made_of_no_others(opened: Opened) -> None:
    """They would be rounded otherwise: such a view does not answer, so it is not said to."""
    days = shops(
        "SELECT date_trunc('day', at) AS day, sum(weight) AS w, count(weight) AS n FROM orders GROUP BY day"
    )
    proposal = only(opened(days), "SELECT sum(2 * weight) FROM orders")
    assert proposal.change == "add sum(2 * weight) to the view"
    exact = shops(str(days["sql"]).replace("weight", "tax"))
    assert "answers it already" in str(opened(exact).advise("SELECT sum(2 * tax) FROM orders").reason)


def test_what_makes_a_view_larger_is_another_view(opened: Opened) -> None:
    """With a further key every group of the view that is there would fall apart."""
    text = "SELECT note, count(*) FROM orders GROUP BY note"
    proposal = only(opened(shops()), text)
    assert (proposal.view.name, proposal.change) == ("orders_by_note_daily", None)


def test_a_name_that_is_taken_is_not_given_again(opened: Opened) -> None:
    taken = shops(SHOPS, name="orders_by_note_daily")
    assert (
        only(opened(taken), "SELECT note, count(*) FROM orders GROUP BY note").view.name
        == "orders_by_note_daily_2"
    )


def test_selects_inside_are_advised_on_each(opened: Opened) -> None:
    text = (
        "WITH a AS (SELECT note, count(*) AS n FROM orders GROUP BY note), "
        "b AS (SELECT shop, max(tax) AS t FROM orders GROUP BY shop) SELECT * FROM a JOIN b ON n = t"
    )
    names = [each.view.name for each in opened().advise(text).proposals]
    assert names == ["orders_by_note_daily", "orders_by_shop_daily"]


def test_what_is_left_to_the_base_table_is_said_beside_a_proposal(opened: Opened) -> None:
    inner = "SELECT avg(tax) FROM orders"
    found = opened().advise(f"SELECT shop, count(*) FROM orders GROUP BY shop HAVING count(*) > ({inner})")
    assert len(found.proposals) == 1
    assert "the SELECT around is left to the base table: subqueries" in str(found)
    assert "left to the base table" not in str(opened().advise(f"SELECT * FROM ({inner})"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SELECT percentile(tax, 0.5) FROM orders", "only single rows can answer it"),
        ("SELECT shop, count(*) FROM orders WHERE paid GROUP BY shop", "view by_shop answers it already"),
        ("SELECT city FROM shops", "shops has no time column"),
        ("SELECT n FROM by_shop", "by its own name"),
    ],
)
def test_where_there_is_none_one_sentence_says_why(opened: Opened, text: str, why: str) -> None:
    found = opened(shops()).advise(text)
    assert found.proposals == ()
    assert why in str(found.reason)
    assert why in str(found)
    assert why in found.as_json()["reason"]


def test_what_is_no_query_is_refused(opened: Opened) -> None:
    with pytest.raises(QueryRefused):
        opened().advise("DROP TABLE orders")


def test_it_is_shown_as_it_goes_into_the_file(opened: Opened) -> None:
    found = opened(shops()).advise("SELECT shop, sum(tax) FROM orders WHERE paid GROUP BY shop")
    assert "view by_shop would answer it, and be computed again: add sum(tax) to the view" in str(found)
    shown = dedent(str(found).split("\n", 1)[1])
    assert shown == found.proposals[0].yaml.rstrip()
    [after] = opened(shops(yaml.safe_load(shown)["sql"])).opened.catalog.views.values()
    assert "SUM(tax) AS sum_tax" in str(after.declared.sql)
    [proposal] = found.as_json()["proposals"]
    assert (proposal["view"], proposal["new"]) == ("by_shop", False)


def test_a_new_view_is_shown_as_the_file_takes_it(opened: Opened) -> None:
    """With a line that is longer than the others, and not broken."""
    long = " + ".join(["amount * tax * shop", *["amount * shop"] * 9])
    text = f"SELECT note, sum({long}) AS x FROM orders GROUP BY note"
    found = opened().advise(text)
    [whole] = yaml.safe_load(dedent(str(found).split("\n", 1)[1]))
    assert max(map(len, str(found).splitlines())) > 130
    assert "answers it already" in str(opened(whole).advise(text).reason)


def test_names_that_mean_something_to_yaml_are_names() -> None:
    about = {"name": "off", "base": "yes", "dimensions": ["true"], "time_column": "on", "start": "earliest"}
    declared = MaterializedView.model_validate({**about, "sql": "SELECT 1", "bucket": "1d"})
    [written] = yaml.safe_load(Proposal(declared).yaml)
    assert MaterializedView.model_validate({**written, "sql": "SELECT 1"}) == declared
