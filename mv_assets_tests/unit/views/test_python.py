"""Functions that views are made of: found or not, what they must take, and what a definition covers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from click.testing import CliRunner

import mv_assets
from mv_assets import Function, MaterializedView, ParquetTable, build_definitions
from mv_assets.cli import main
from mv_assets.config import declare
from mv_assets.config.errors import ProjectError
from mv_assets.views import python
from mv_assets.views.admission import ViewSql
from mv_assets.views.catalog import Catalog, load, prepare
from mv_assets.views.python import NotLoaded, ViewFunction, parameter_mistakes
from mv_assets.views.view import definition_of
from mv_assets_tests.support.shop import HELPERS, VIEWS, Shop, forget

Make = Callable[..., Shop]
EVENTS = {"name": "events", "path": "events", "time_column": "at"}
WEEKLY = {
    "name": "weekly",
    "base": "events",
    "scope": "bucket",
    "python": "shop.views:weekly",
    "time_column": "day",
    "bucket": "1d",
    "start": "2024-01-01",
}


DECORATED = """\
import mv_assets


@mv_assets.view(base="events", time_column="d", bucket="1d", start="2024-01-01")
def weekly(events):
    return events
"""


def catalog(shop: Shop, *further: dict[str, Any], functions: Any = (), **view: Any) -> Catalog:
    """The project of a file beside the package."""
    given = {"tables": [EVENTS], "functions": list(functions), "views": [{**WEEKLY, **view}, *further]}
    file = shop.folder / "project.yaml"
    file.write_text(yaml.safe_dump(given, sort_keys=False))
    return load(file, schemas=False)


def mistakes(shop: Shop, *further: dict[str, Any], functions: Any = (), **view: Any) -> dict[str, str]:
    """What is wrong with it, by field; every mistake has a line."""
    with pytest.raises(ProjectError) as caught:
        catalog(shop, *further, functions=functions, **view)
    assert all(mistake.line is not None for mistake in caught.value.mistakes)
    return {mistake.where: mistake.what for mistake in caught.value.mistakes}


# Found, or not


def test_a_function_beside_the_project_file_is_the_body_of_its_view(shop: Make) -> None:
    found = catalog(shop()).view("weekly")
    assert isinstance(found.body, ViewFunction)
    assert (found.body.name, found.body.parameters) == ("shop.views:weekly", ("events",))
    assert found.body.function is sys.modules["shop.views"].weekly
    assert (found.body.columns, found.body.takes_bucket, found.merging) == (None, False, None)
    assert (found.source.columns, found.source.time_column) == (None, "day")


def test_its_folder_is_looked_in_first_and_named_once(shop: Make) -> None:
    made = shop()
    for _ in range(2):
        catalog(made)
    assert sys.path[0] == str(made.folder)
    assert sys.path.count(str(made.folder)) == 1


def test_there_is_no_such_module(shop: Make) -> None:
    made = shop()
    found = mistakes(made, python="shopp.views:weekly")
    assert found == {
        "views.weekly.python": f"there is no module shopp; looked for in {made.folder} and on Python's path"
    }
    found = mistakes(made, python="shop.wievs:weekly")
    assert found["views.weekly.python"].startswith("there is no module shop.wievs; looked for in")


@pytest.mark.parametrize(
    ("views", "what"),
    [
        (
            "import nothing_of_the_kind\n",
            "views.py:1): ModuleNotFoundError: No module named 'nothing_of_the_kind'",
        ),
        ("def f():\n    1 / 0\nf()\n", "views.py:2): ZeroDivisionError: division by zero"),
        ("import json\njson.loads('{')\n", "JSONDecodeError: Expecting property name"),
        ("x = = 1\n", "views.py:1): SyntaxError: invalid syntax"),
        ("raise SystemExit(3)\n", "views.py:1): SystemExit: 3"),
    ],
)
def test_a_module_that_can_not_be_imported_says_its_last_line(shop: Make, views: str, what: str) -> None:
    found = mistakes(shop(views))["views.weekly.python"]
    assert found.startswith("shop.views can't be imported (")
    assert what in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("views", "what"),
    [
        ("def weekli(events):\n    return events\n", "module shop.views has no weekly; did you mean weekli?"),
        ("class weekly:\n    pass\n", "shop.views:weekly is a class; name a function"),
        ("weekly = 5\n", "shop.views:weekly is a value of type int; name a function"),
        (
            "async def weekly(events):\n    return events\n",
            "shop.views:weekly is async or a generator; it should return what it makes",
        ),
        (
            "def weekly(events):\n    yield events\n",
            "shop.views:weekly is async or a generator; it should return what it makes",
        ),
        (
            DECORATED,
            "shop.views:weekly is a view by itself, made with @mv_assets.view; declare it there or here",
        ),
    ],
)
def test_what_is_no_function_is_refused(shop: Make, views: str, what: str) -> None:
    found = mistakes(shop(views))
    assert list(found) == ["views.weekly.python"]
    assert found["views.weekly.python"].startswith(what)


def test_a_lambda_with_a_name_is_a_function(shop: Make) -> None:
    assert catalog(shop("weekly = lambda events: events\n")).view("weekly").body.columns is None


def test_a_package_of_the_same_name_that_was_imported_from_elsewhere_is_not_taken_for_it(
    shop: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop().load()
    there = tmp_path_factory.mktemp("there")
    with pytest.raises(NotLoaded, match=r"shop was imported from .*, not from .*; rename one of them"):
        Shop(there).load()
    forget(there)


def test_a_namesake_earlier_on_the_path_is_not_taken_for_it(
    shop: Make, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, there = shop(), tmp_path_factory.mktemp("there")
    other = Shop(there)
    monkeypatch.setattr(sys, "path", [str(there), str(made.folder), *sys.path])
    with pytest.raises(NotLoaded, match=r"shop was imported from .*, not from .*; rename one of them"):
        made.load()
    forget(other.folder)


def test_a_file_that_is_edited_after_its_import_is_imported_anew(shop: Make) -> None:
    """What is computed must be what is hashed."""
    made = shop("RATE = 1\ndef weekly(events):\n    return RATE\n")
    before = made.load()
    (made.folder / "shop" / "views.py").write_text("RATE = 22\ndef weekly(events):\n    return RATE\n")
    after = made.load()
    assert before.code != after.code
    assert (before.function(None), after.function(None)) == (1, 22)


def test_a_function_that_is_given_itself_is_refused_once_its_file_is_edited(shop: Make) -> None:
    made = shop()
    function = made.load().function
    path = made.folder / "shop" / "helpers.py"
    path.write_text(HELPERS.replace("RATE = 2", "RATE = 33"))
    with pytest.raises(NotLoaded, match=r"helpers\.py was edited after it was imported; start Python anew"):
        python.load(function)


# What it takes


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("events, shops, bucket", []),
        ("shops, events", []),
        ("events", ["the function does not take shops, which the view reads; add it as a parameter"]),
        (
            "event, shops",
            [
                "the function takes event, which is no table that the view reads; did you mean events?",
                "the function does not take events, which the view reads; add it as a parameter",
            ],
        ),
        (
            "events, shops, buckets=None",
            ["the function takes buckets, which is no table that the view reads; did you mean bucket?"],
        ),
        (
            "events, shops, *more",
            ["the function takes *more; name each table that it reads as a parameter of its own"],
        ),
        (
            "events, shops, **more",
            ["the function takes **more; name each table that it reads as a parameter of its own"],
        ),
        (
            "events, /, shops",
            ["parameter events stands before a /, but tables are given by name; take the / out"],
        ),
    ],
)
def test_a_function_takes_each_table_by_its_name_and_the_bucket_if_it_wants(
    parameters: str, said: list[str]
) -> None:
    function = eval(f"lambda {parameters}: 0")  # noqa: S307 - our own
    assert list(parameter_mistakes(function, ("events", "shops"))) == said


def test_a_table_called_bucket_is_refused() -> None:
    [said] = parameter_mistakes(lambda bucket: bucket, ["bucket"])
    assert "can't be told from the bucket" in said


def test_mistakes_of_parameters_are_those_of_the_view(shop: Make) -> None:
    found = mistakes(shop("def weekly(event):\n    return event\n"))
    assert list(found) == ["views.weekly.python"]


# What the definition covers


def test_a_new_definition_is_a_change_of_what_is_computed(shop: Make) -> None:
    """Case 112."""
    one = catalog(shop()).view("weekly").definition
    assert one == catalog(shop(VIEWS.replace("factor", "f"))).view("weekly").definition
    assert one == catalog(shop(f"# a comment\n{VIEWS}")).view("weekly").definition
    changed = shop(helpers=HELPERS.replace("RATE = 2", "RATE = 3"))
    assert one != catalog(changed).view("weekly").definition
    assert one != catalog(shop(), version="2").view("weekly").definition
    assert one != catalog(shop(), base={"table": "events", "from": "6d"}).view("weekly").definition
    assert one != catalog(shop(), timezone="America/New_York").view("weekly").definition
    assert one == catalog(shop(), buffer="10m", description="words").view("weekly").definition


def test_what_declared_functions_do_is_part_of_the_definition_of_views_that_call_them(shop: Make) -> None:
    """By their code, what they return, and their versions."""

    def definition(helpers: str = HELPERS, **function: Any) -> str:
        declared = {"name": "rate_of", "python": "shop.helpers:rate", "returns": "bigint", **function}
        found = catalog(shop(helpers=helpers), functions=[declared])
        view = found.view("weekly")
        sql = ViewSql("s", "s", ("day",), None, aggregates=False, used={}, calls=frozenset({"rate_of"}))
        return definition_of(view.declared, sql, [view.source], functions=found.functions)

    one = definition()
    assert one == definition(f"# a comment\n{HELPERS}")
    others = {
        definition(HELPERS.replace("2", "3")),
        definition(returns="int"),
        definition(version="2"),
        definition(name="rate_of"),
    }
    assert len(others | {one}) == 4


# Views on top of one


def test_a_view_on_a_function_may_name_any_column_of_it(shop: Make) -> None:
    monthly = {
        "name": "monthly",
        "base": "weekly",
        "sql": "SELECT date_trunc('month', day) AS month, sum(n) AS n FROM weekly GROUP BY ALL",
        "time_column": "month",
        "bucket": "1mo",
        "start": "2024-01-01",
    }
    assert catalog(shop(), monthly).view("monthly").body.used == {"weekly": {"day", "n"}}


# Functions for SQL


def test_a_declared_function_is_loaded(shop: Make) -> None:
    declared = {"name": "rate_of", "python": "shop.helpers:rate", "returns": "bigint"}
    [found] = catalog(shop(), functions=[declared]).functions.values()
    assert (found.declared.name, found.declared.returns, found.loaded.function(3)) == ("rate_of", "bigint", 6)


@pytest.mark.parametrize(
    ("function", "where", "what"),
    [
        (
            {"name": "upper"},
            "functions.upper.name",
            "upper is a word or a function of Spark SQL; choose another name",
        ),
        (
            {"name": "rand"},
            "functions.rand.name",
            "rand is a word or a function of Spark SQL; choose another name",
        ),
        (
            {"name": "select"},
            "functions.select.name",
            "select is a word or a function of Spark SQL; choose another name",
        ),
        (
            {"name": "case"},
            "functions.case.name",
            "case is a word or a function of Spark SQL; choose another name",
        ),
        ({"name": "Rate"}, "functions.Rate.name", "'Rate' is not a name"),
        ({"python": "shop.helpers:rat"}, "functions.rate_of.python", "did you mean rate?"),
        (
            {"python": "rate"},
            "functions.rate_of.python",
            "'rate' names no function; write package.module:function",
        ),
        ({"returns": ""}, "functions.rate_of.returns", "empty; write a text"),
        ({"retuns": "int"}, "functions.rate_of.retuns", "not a known key; did you mean returns?"),
    ],
)
def test_what_is_wrong_with_a_declared_function_is_said_at_its_line(
    shop: Make, function: dict[str, Any], where: str, what: str
) -> None:
    declared = {"name": "rate_of", "python": "shop.helpers:rate", "returns": "bigint", **function}
    found = mistakes(shop(), functions=[declared])
    assert list(found) == [where]
    assert what in found[where]


def test_two_functions_of_one_name_are_a_mistake_and_a_table_of_that_name_is_none(shop: Make) -> None:
    declared = {"name": "events", "python": "shop.helpers:rate", "returns": "bigint"}
    assert list(catalog(shop(), functions=[declared]).functions) == ["events"]
    found = mistakes(shop(), functions=[declared, declared])
    assert found == {"functions.events.name": "2 functions are called events; give each a name of its own"}


def test_project_check_names_functions(shop: Make) -> None:
    made = shop()
    (made.folder / "events").mkdir()
    declared = {"name": "rate_of", "python": "shop.helpers:rate", "returns": "bigint"}
    catalog(made, functions=[declared])
    file = str(made.folder / "project.yaml")
    ran = CliRunner().invoke(main, ["--project", file, "project", "check", "--json"])
    assert yaml.safe_load(ran.output) == {"tables": ["events"], "functions": ["rate_of"], "views": ["weekly"]}


# In Python


RATE = 2


@mv_assets.view(
    base={"table": "events", "from": "6d"}, time_column="day", bucket="1d", start="2024-01-01", version="1"
)
def weekly_actives(events: list[int], bucket: Any = None) -> list[int]:
    """Who came in seven days.

    And more.
    """
    return [*events, RATE, bucket]


def declared(*views: MaterializedView, functions: Any = ()) -> Catalog:
    tables = [ParquetTable(name="events", path="events", time_column="at")]
    return prepare(declare(tables, views, functions=functions), schemas=False)


def test_a_decorated_function_is_a_view_and_can_be_called() -> None:
    assert isinstance(weekly_actives, MaterializedView)
    assert (weekly_actives.name, weekly_actives.description) == ("weekly_actives", "Who came in seven days.")
    assert (weekly_actives.scope, weekly_actives.base.from_) == ("bucket", 6 * 86_400_000)
    assert weekly_actives([1], bucket=3) == [1, 2, 3]
    body = declared(weekly_actives).view("weekly_actives").body
    assert isinstance(body, ViewFunction)
    assert (body.name, body.takes_bucket) == (f"{__name__}:weekly_actives", True)


def test_what_the_decorator_says_is_no_code(shop: Make) -> None:
    """The definition covers it, as far as it matters."""

    def code(views: str) -> str:
        made = shop(views)
        sys.path.insert(0, str(made.folder))
        module = __import__("shop.views").views
        return python.load(module.weekly.python).code

    same = DECORATED.replace("import mv_assets", "from mv_assets import view").replace("@mv_assets.", "@")
    assert code(DECORATED) == code(same)
    assert code(DECORATED) == code(DECORATED.replace("start=", "buffer='5m', start="))
    assert code(DECORATED) != code(DECORATED.replace("return events", "return [events]"))


def test_a_view_of_sql_can_not_be_called() -> None:
    sql = MaterializedView(
        name="v", base="events", sql="SELECT 1", time_column="d", bucket="1d", start="2024-01-01"
    )
    with pytest.raises(TypeError, match="view v was not made of a function"):
        sql()


def test_functions_for_sql_may_be_given_themselves() -> None:
    def twice(x: int) -> int:
        return 2 * x

    found = declared(weekly_actives, functions=[Function(name="twice", python=twice, returns="int")])
    assert found.functions["twice"].loaded.function is twice
    assert found.functions["twice"].loaded.name.endswith("<locals>.twice")


def test_every_key_of_a_view_can_be_given_to_the_decorator() -> None:
    own = {"base", "time_column", "bucket", "start"}
    given = MaterializedView.model_fields.keys() - {"sql", "python", "scope", "merge_floats"}
    assert {*own, *python._Further.__annotations__} == given


def test_an_asset_is_made_of_it_that_names_the_function_and_no_columns(tmp_path: Path) -> None:
    built = build_definitions(
        tables=[ParquetTable(name="events", path=str(tmp_path), time_column="at")],
        views=[weekly_actives],
        functions=[Function(name="rate_of", python=made_up, returns="int")],
        state=f"sqlite:///{tmp_path}/state.db",
        warehouse=str(tmp_path / "warehouse"),
    )
    asset = built.get_repository_def().asset_graph.get(dg.AssetKey("weekly_actives"))
    assert f"`{__name__}:weekly_actives`" in (asset.description or "")
    assert "dagster/column_schema" not in asset.metadata
    assert f"{__name__}:weekly_actives" in str(asset.metadata["python"])


def made_up(x: int) -> int:
    return x


def test_in_python_too_a_mistake_is_a_sentence() -> None:
    @mv_assets.view(base="events", time_column="d", bucket="1d", start="2024-01-01")
    def weekly(clicks: Any) -> Any:
        return clicks

    with pytest.raises(ProjectError, match="the function does not take events"):
        declared(weekly)


@pytest.mark.parametrize("given", [int, print, 5, "no name", "a.b", "a:b:c", "a:"])
def test_only_functions_and_their_names_are_taken(given: Any) -> None:
    with pytest.raises(
        ValueError, match=r"is no function; give one|names no function; write package\.module"
    ):
        MaterializedView.model_validate({**WEEKLY, "python": given})
