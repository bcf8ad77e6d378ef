from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from mv_assets.buckets import Buckets
from mv_assets.cli import main
from mv_assets.config import DeclaredProject
from mv_assets.config.errors import Mistake, ProjectError
from mv_assets.config.file import Draft
from mv_assets.views.catalog import Catalog, load, prepare
from mv_assets.views.errors import NotDeclared
from mv_assets.views.view import View

HOURLY = "SELECT date_trunc('hour', pickup_at) AS hour, count(*) AS trips FROM trips GROUP BY ALL"
DAILY = "SELECT date_trunc('day', hour) AS day, sum(trips) AS trips FROM hourly GROUP BY ALL"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)


class Lake:
    """A folder with tables and a project file over them; every change is a fresh file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tables: list[dict[str, Any]] = []
        self.views: list[dict[str, Any]] = []
        self.conf: dict[str, str] = {}

    def write(self, name: str, columns: Mapping[str, pa.Array], file: str = "a.parquet") -> None:
        path = self.root / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(dict(columns)), path)

    def table(self, name: str = "trips", **fields: Any) -> None:
        self.tables.append({"name": name, "path": name, **fields})

    def view(self, name: str = "hourly", **fields: Any) -> None:
        declared = {
            "base": "trips",
            "sql": HOURLY,
            "time_column": "hour",
            "bucket": "1d",
            "start": "2024-01-01",
        }
        given = {key.strip("_"): value for key, value in fields.items()}
        self.views.append({"name": name, **declared, **given})

    @property
    def file(self) -> Path:
        path = self.root / "project.yaml"
        path.write_text(
            yaml.safe_dump(
                {"spark": {"conf": self.conf}, "tables": self.tables, "views": self.views}, sort_keys=False
            )
        )
        return path

    def load(self) -> Catalog:
        return load(self.file, schemas=True, listed=True)

    def wrong(self) -> dict[str, str]:
        """What is wrong, by field; every mistake has a line."""
        with pytest.raises(ProjectError) as caught:
            self.load()
        found: list[Mistake] = list(caught.value.mistakes)
        assert all(mistake.line is not None for mistake in found)
        assert len({mistake.where for mistake in found}) == len(found), found
        return {mistake.where: mistake.what for mistake in found}


def instants(kind: pa.DataType | None = None) -> pa.Array:
    times = [FIRST + timedelta(hours=hour) for hour in range(3)]
    return pa.array(times, kind or pa.timestamp("us", "UTC"))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Trips by pickup_at, and zones to join."""
    made = Lake(tmp_path)
    zone = pa.array([1, 2, 3], pa.int32())
    made.write("trips", {"pickup_at": instants(), "zone_id": zone, "fare": pa.array([1.0, 2.0, 3.0])})
    made.write("zones", {"zone_id": zone, "borough": pa.array(["a", "b", "c"])})
    made.table(time_column="pickup_at")
    made.table("zones")
    return made


# A project against its real tables


def test_a_view_is_ready_with_its_columns_and_grain(lake: Lake) -> None:
    lake.view()
    found = lake.load().view("hourly")
    assert (found.body.columns, found.body.grain) == (("hour", "trips"), "hour")
    assert (found.buckets, found.freezes) == (Buckets.of("1d"), False)
    declaration = found.declaration
    assert (declaration.view, declaration.definition) == ("hourly", found.definition)
    assert (declaration.width, declaration.start) == ("1d", 1_704_067_200_000)


def test_an_unknown_column_is_refused_with_what_was_meant(lake: Lake) -> None:
    lake.view(sql=HOURLY.replace("count(*)", "sum(fair)"))
    (what,) = lake.wrong().values()
    assert "fair" in what
    assert "did you mean fare" in what


def test_an_unknown_column_passes_while_the_schema_is_not_looked_at(lake: Lake) -> None:
    lake.view(sql=HOURLY.replace("count(*)", "sum(fair)"))
    assert "hourly" in load(lake.file, schemas=False).views


def test_a_column_that_only_some_files_have_is_known(lake: Lake) -> None:
    lake.write("trips", {"pickup_at": instants(), "tip": pa.array([1, 2, 3])}, "z.parquet")
    lake.view(sql=HOURLY.replace("count(*)", "sum(tip + fare)"))
    assert lake.load().view("hourly").body.used == {"trips": {"pickup_at", "tip", "fare"}}


def test_a_column_that_one_of_many_files_has_is_known(lake: Lake) -> None:
    for number in range(100):
        tip = {"tip": pa.array([1, 2, 3])} if number == 40 else {}
        lake.write("trips", {"pickup_at": instants(), **tip}, f"{number:02}.parquet")
    lake.view(sql=HOURLY.replace("count(*)", "sum(tip + fare)"))
    assert "hourly" in lake.load().views


def test_a_hive_partition_is_a_column(lake: Lake) -> None:
    lake.write("days", {"n": pa.array([1])}, "day=2024-01-01/a.parquet")
    lake.table("days", time_column="day")
    lake.view(base="days", sql="SELECT day AS hour, n FROM days")
    assert lake.load().view("hourly").body.grain == "day"


def test_a_column_is_found_whatever_its_case(lake: Lake) -> None:
    lake.write("loud", {"PICKUP_AT": instants()})
    lake.table("loud", time_column="pickup_at")
    lake.view(base="loud", sql=HOURLY.replace("FROM trips", "FROM loud"))
    assert lake.load().view("hourly").body.used == {"loud": {"PICKUP_AT"}}


@pytest.mark.parametrize(
    ("column", "unit", "field", "said"),
    [
        (pa.array(["x"]), None, "time_column", "a time column is a date, a timestamp, or an integer with"),
        (pa.array([1.5]), None, "time_column", "a time column is a date, a timestamp, or an integer with"),
        (pa.array([True]), None, "time_column", "a time column is a date, a timestamp, or an integer with"),
        (pa.array([[1]]), None, "time_column", "a time column is a date, a timestamp, or an integer with"),
        (pa.array([1.5]), "s", "time_column", "a time column is a date, a timestamp, or an integer with"),
        (
            pa.array([5]),
            None,
            "time_column",
            "holds integers (bigint); give their time_unit: s, ms, us or ns",
        ),
        (pa.array([5], pa.int32()), None, "time_column", "holds integers (int); give their time_unit"),
        (pa.array([FIRST]), "ms", "time_unit", "is a timestamp already; take time_unit out"),
        (pa.array([FIRST.date()]), "s", "time_unit", "is a date already; take time_unit out"),
    ],
)
def test_a_time_column_of_the_wrong_type_is_refused_with_what_would_be_right(
    lake: Lake, column: pa.Array, unit: str | None, field: str, said: str
) -> None:
    lake.write("odd", {"at": column})
    lake.table("odd", time_column="at", **({"time_unit": unit} if unit else {}))
    wrong = lake.wrong()
    assert list(wrong) == [f"tables.odd.{field}"]
    assert said in wrong[f"tables.odd.{field}"]


@pytest.mark.parametrize(
    ("column", "unit", "time"),
    [
        (pa.array([5]), "s", "timestamp_seconds(at)"),
        (pa.array([5]), "ms", "timestamp_millis(at)"),
        (pa.array([FIRST.date()]), None, "at"),
        (pa.array([FIRST], pa.timestamp("us")), None, "at"),
        (pa.array([FIRST], pa.timestamp("ms", "Asia/Tokyo")), None, "at"),
    ],
)
def test_every_kind_of_time_column_is_taken(
    lake: Lake, column: pa.Array, unit: str | None, time: str
) -> None:
    lake.write("odd", {"at": column})
    lake.table("odd", time_column="at", **({"time_unit": unit} if unit else {}))
    lake.view(base="odd", sql=f"SELECT {time} AS hour FROM odd")
    assert lake.load().view("hourly").body.grain == ("day" if column.type == pa.date32() else None)


def test_a_missing_time_column_is_refused_with_what_was_meant(lake: Lake) -> None:
    lake.tables[0]["time_column"] = "pickup_ad"
    assert lake.wrong() == {
        "tables.trips.time_column": "the table has no column pickup_ad; did you mean pickup_at?"
    }


@pytest.mark.parametrize("column", [pa.array([5]), pa.array(["x"])])
def test_a_wrong_time_column_is_said_once_though_a_view_uses_it(lake: Lake, column: pa.Array) -> None:
    lake.write("odd", {"at": column})
    lake.table("odd", time_column="at")
    lake.view(base="odd", sql="SELECT date_trunc('hour', at) AS hour FROM odd")
    assert list(lake.wrong()) == ["tables.odd.time_column"]


def test_dates_do_not_fit_hour_buckets(lake: Lake) -> None:
    lake.write("days", {"day": pa.array([FIRST.date()])})
    lake.table("days", time_column="day")
    lake.view(base="days", sql="SELECT day AS hour FROM days", bucket="1h")
    (what,) = lake.wrong().values()
    assert "a 1h bucket does not hold whole days" in what


def test_a_path_that_is_not_there_is_named_with_its_table(lake: Lake) -> None:
    lake.table("gone", time_column="pickup_at")
    lake.view(base="gone", sql=HOURLY.replace("FROM trips", "FROM gone"))
    wrong = lake.wrong()
    assert list(wrong) == ["tables.gone.path"]
    assert str(lake.root / "gone") in wrong["tables.gone.path"]
    assert "No such file" in wrong["tables.gone.path"]


@pytest.mark.parametrize("path", ["nope://bucket/x", "a\0b", "file:///nowhere/at/all"])
def test_a_path_that_can_be_none_is_a_mistake(lake: Lake, path: str) -> None:
    lake.tables[1]["path"] = path
    assert list(lake.wrong()) == ["tables.zones.path"]


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_folder_that_is_no_lakehouse_table_is_a_mistake(lake: Lake, kind: str) -> None:
    lake.tables[0]["format"] = kind
    assert list(lake.wrong()) == ["tables.trips.path"]


def test_an_empty_folder_is_a_table_without_files_yet(lake: Lake) -> None:
    (lake.root / "later").mkdir()
    lake.table("later", time_column="at")
    lake.view(base="later", sql="SELECT at AS hour, anything FROM later")
    assert lake.load().view("hourly").body.columns == ("hour", "anything")


def test_a_folder_whose_only_file_is_broken_does_not_stop_the_project(lake: Lake) -> None:
    (lake.root / "broken").mkdir()
    (lake.root / "broken/a.parquet").write_bytes(b"PAR1 is all there is")
    lake.table("broken", time_column="at")
    lake.view(base="broken", sql="SELECT at AS hour FROM broken")
    assert "hourly" in lake.load().views


def test_mistakes_of_several_views_and_tables_come_at_once(lake: Lake) -> None:
    lake.write("text", {"at": pa.array(["x"])})
    lake.table("text", time_column="at")
    lake.table("gone", time_column="at")
    lake.view("a", sql=f"{HOURLY} LIMIT 5")
    lake.view("b", sql="SELECT * FROM trips")
    lake.view("c", sql=HOURLY.replace("count(*)", "sum(fair * rand())"))
    lake.view("d", sql=f"{HOURLY}, (")
    lake.view("e", bucket="15m")
    lake.view("f", sql=HOURLY.replace("FROM trips", "FROM trips, zones"))
    lake.view("g", sql=HOURLY.replace("count(*)", "sum(row_number() OVER (ORDER BY fare))"))
    with pytest.raises(ProjectError) as caught:
        lake.load()
    places = {mistake.where for mistake in caught.value.mistakes}
    assert {"tables.text.time_column", "tables.gone.path", "views.e.time_column"} <= places
    named = {place.split(".")[1] for place in places if place.startswith("views.")}
    assert named == set("abcdefg")
    c = [mistake.what for mistake in caught.value.mistakes if mistake.where == "views.c.sql"]
    assert any("fair" in what for what in c)
    assert any("rand" in what for what in c)


def test_a_time_column_that_spark_would_refuse_is_a_mistake(lake: Lake) -> None:
    lake.write("odd", {"at": pa.array([FIRST], pa.timestamp("ns", "UTC"))})
    lake.table("odd", time_column="at")
    assert "at has type timestamp_nanos" in lake.wrong()["tables.odd.time_column"]


def test_a_bad_bucket_does_not_hide_the_mistakes_of_the_sql(lake: Lake) -> None:
    lake.view(bucket="7h", sql=f"{HOURLY} LIMIT 5")
    assert set(lake.wrong()) == {"views.hourly.bucket", "views.hourly.sql"}


def test_settings_of_spark_that_change_results_change_the_definition(lake: Lake) -> None:
    lake.view()
    before = lake.load().view("hourly").definition
    lake.conf = {"spark.sql.shuffle.partitions": "7", "spark.executor.memory": "4g"}
    assert lake.load().view("hourly").definition == before
    lake.conf = {"spark.sql.ansi.enabled": "false"}
    assert lake.load().view("hourly").definition != before


def test_another_time_zone_than_utc_is_a_mistake(lake: Lake) -> None:
    lake.conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    assert "buckets are in UTC" in lake.wrong()["spark"]


def test_a_bad_setting_does_not_hide_the_mistakes_of_the_sql(lake: Lake) -> None:
    lake.view(buffer="soon", sql=f"{HOURLY} LIMIT 5")
    assert set(lake.wrong()) == {"views.hourly.buffer", "views.hourly.sql"}


def test_a_bad_setting_of_a_table_does_not_hide_the_mistakes_of_its_views(lake: Lake) -> None:
    lake.tables[0]["settle"] = "soon"
    lake.view(sql=f"{HOURLY} LIMIT 5")
    assert set(lake.wrong()) == {"tables.trips.settle", "views.hourly.sql"}


def test_the_lines_are_those_of_the_file(lake: Lake) -> None:
    lake.view(sql="SELECT * FROM trips")
    with pytest.raises(ProjectError) as caught:
        lake.load()
    lines = lake.file.read_text().splitlines()
    (line,) = {mistake.line for mistake in caught.value.mistakes if mistake.where == "views.hourly.sql"}
    assert lines[int(line or 0) - 1].strip() == "sql: SELECT * FROM trips"


# Views on views


def test_a_view_reads_the_columns_and_the_grain_of_its_base(lake: Lake) -> None:
    lake.view("daily", base="hourly", sql=DAILY, time_column="day")
    lake.view()
    catalog = lake.load()
    assert list(catalog.views) == ["hourly", "daily"]
    assert catalog.view("daily").body.grain == "day"
    assert catalog.view("daily").body.used == {"hourly": {"hour", "trips"}}


def test_a_view_takes_over_the_grain_it_does_not_truncate_further(lake: Lake) -> None:
    lake.view()
    lake.view("copy", base="hourly", sql="SELECT hour, trips FROM hourly")
    assert lake.load().view("copy").body.grain == "hour"


def test_a_column_that_the_base_view_does_not_give_is_refused(lake: Lake) -> None:
    lake.view()
    lake.view("daily", base="hourly", sql=DAILY.replace("sum(trips)", "sum(fare)"), time_column="day")
    ((where, what),) = lake.wrong().items()
    assert where == "views.daily.sql"
    assert "fare" in what


def test_a_view_on_hours_has_no_bucket_finer_than_an_hour(lake: Lake) -> None:
    lake.view()
    lake.view("fine", base="hourly", sql="SELECT hour, trips FROM hourly", bucket="15m")
    ((where, what),) = lake.wrong().items()
    assert where == "views.fine.bucket"
    assert "a 15m bucket does not hold whole hours" in what


def test_a_mistake_of_the_base_view_is_said_once(lake: Lake) -> None:
    lake.view(sql=f"{HOURLY} LIMIT 5")
    lake.view("daily", base="hourly", sql=DAILY, time_column="day")
    assert list(lake.wrong()) == ["views.hourly.sql"]


def test_cyclic_views_do_not_hide_the_mistakes_of_others(lake: Lake) -> None:
    lake.view("a", base="b", sql="SELECT hour FROM b")
    lake.view("b", base="a", sql="SELECT hour FROM a")
    lake.view(sql=f"{HOURLY} LIMIT 5")
    wrong = lake.wrong()
    assert len(wrong) == 2
    assert "views.hourly.sql" in wrong
    assert any("circle" in what for what in wrong.values())


def test_a_table_with_an_integer_time_is_not_a_view_with_one(lake: Lake) -> None:
    lake.write("events", {"at": pa.array([5])})
    lake.table("events", time_column="at", time_unit="ms")
    lake.view("e", base="events", sql="SELECT timestamp_millis(at) AS hour FROM events")
    lake.view("f", base="e", sql="SELECT date_trunc('hour', hour) AS hour FROM e")
    assert lake.load().view("f").body.grain == "hour"


# Scope and further tables


PAID = """
    WITH paid AS (SELECT zone_id, sum(fare) AS paid FROM payments GROUP BY zone_id)
    SELECT :bucket_start AS hour, zone_id, count(*) AS n, sum(paid) AS paid
    FROM trips LEFT JOIN paid USING (zone_id) GROUP BY zone_id
"""


def test_a_view_on_several_tables_is_ready_with_the_columns_of_each(lake: Lake) -> None:
    lake.write("payments", {"at": instants(), "zone_id": pa.array([1, 2, 3]), "fare": pa.array([1, 2, 3])})
    lake.table("payments", time_column="at")
    lake.view(sql=PAID, scope="bucket", with_=[{"table": "payments", "to": "7d"}])
    for catalog in (lake.load(), load(lake.file, schemas=False)):
        found = catalog.view("hourly")
        assert found.body.columns == ("hour", "zone_id", "n", "paid")
        assert {table: set(columns) for table, columns in found.body.used.items()} == {
            "trips": {"zone_id"},
            "payments": {"zone_id", "fare"},
        }
        assert found.merging is None


def test_a_further_table_that_the_sql_does_not_read_is_a_mistake(lake: Lake) -> None:
    lake.table("payments", time_column="at")
    lake.write("payments", {"at": instants()})
    lake.view(scope="bucket", with_=[{"table": "payments"}])
    what = "payments is not used by the SQL; join it there, or remove it from `with`"
    assert lake.wrong() == {"views.hourly.with": what}


def test_sql_that_mixes_buckets_names_the_scope_that_allows_it(lake: Lake) -> None:
    lake.view(sql="WITH c AS (SELECT max(pickup_at) AS hour FROM trips) SELECT hour FROM c")
    with pytest.raises(ProjectError, match="with `scope: bucket` it would be allowed"):
        lake.load()
    lake.views[0]["scope"] = "bucket"
    assert "hourly" in lake.load().views


def test_a_view_on_a_view_that_is_meant_by_the_bucket_is_ready(lake: Lake) -> None:
    lake.view(sql=HOURLY, scope="bucket")
    lake.view("daily", base="hourly", sql=DAILY, time_column="day")
    assert lake.load().view("daily").body.grain == "day"


@pytest.fixture
def tower(lake: Lake) -> Catalog:
    """hourly; daily on hourly; copy on daily; and other, which stands alone."""
    lake.view("copy", base="daily", sql="SELECT day, trips FROM daily", time_column="day")
    lake.view("other")
    lake.view("daily", base="hourly", sql=DAILY, time_column="day")
    lake.view()
    return lake.load()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["copy"], ["hourly", "daily", "copy"]),
        (["copy", "hourly"], ["hourly", "daily", "copy"]),
        (["daily", "daily"], ["hourly", "daily"]),
        (["other"], ["other"]),
        ([], []),
    ],
)
def test_views_come_with_those_they_are_based_on_before_them(
    tower: Catalog, asked: list[str], found: list[str]
) -> None:
    assert [view.name for view in tower.with_upstream(asked)] == found


def test_without_names_all_views_come_each_after_its_base(tower: Catalog) -> None:
    names = [view.name for view in tower.with_upstream()]
    assert sorted(names) == ["copy", "daily", "hourly", "other"]
    assert names.index("hourly") < names.index("daily") < names.index("copy")


def test_a_view_that_is_not_declared_is_refused_with_those_that_are(tower: Catalog) -> None:
    with pytest.raises(NotDeclared, match=r"no view 'nope'; it has .*hourly"):
        tower.with_upstream(["nope"])


# The definition


def view_of(lake: Lake, **fields: Any) -> View:
    lake.views.clear()
    lake.view(**fields)
    return lake.load().view("hourly")


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": HOURLY.replace(" ", "\n   ")},
        {"sql": f"-- by hour\n{HOURLY} /* all of them */ -- done"},
        {"sql": HOURLY.replace("SELECT", "select").replace("FROM", "From").replace("GROUP BY", "group by")},
        {"buffer": "1h"},
        {"start": "2020-01-01"},
        {"max_staleness": "1d"},
        {"max_buckets_per_run": 1},
        {"max_runs": 1, "every": "1h", "answers": False, "start": "earliest"},
        {"description": "trips an hour", "owners": ["me@example.com"]},
    ],
    ids=[
        "whitespace",
        "comments",
        "case",
        "buffer",
        "start",
        "max_staleness",
        "max_buckets",
        "settings",
        "description",
    ],
)
def test_the_definition_stays_when_the_rows_do(lake: Lake, fields: dict[str, Any]) -> None:
    assert view_of(lake, **fields).definition == view_of(lake).definition


def test_the_definition_stays_when_the_table_moves_or_settles_otherwise(lake: Lake) -> None:
    before = view_of(lake).definition
    (lake.root / "trips").rename(lake.root / "moved")
    lake.tables[0] |= {"path": "moved", "settle": "1s", "files": "*.parquet"}
    assert view_of(lake).definition == before


def test_the_definition_stays_when_the_table_gets_another_column(lake: Lake) -> None:
    before = view_of(lake).definition
    lake.write("trips", {"pickup_at": instants(), "tip": pa.array([1, 2, 3])}, "z.parquet")
    assert view_of(lake).definition == before


def test_the_definition_is_the_same_before_and_after_the_schema_is_looked_at(lake: Lake) -> None:
    lake.view()
    assert load(lake.file, schemas=False).view("hourly").definition == lake.load().view("hourly").definition


@pytest.mark.parametrize(
    "fields",
    [
        {"sql": HOURLY.replace("count(*)", "sum(fare)")},
        {"sql": HOURLY.replace("'hour'", "'day'")},
        {"sql": HOURLY.replace("AS trips", "AS journeys")},
        {"sql": HOURLY.replace("FROM trips", "FROM trips WHERE fare > 1")},
        {"bucket": "1h"},
        {"bucket": "1w"},
        {"sql": HOURLY.replace("AS hour", "AS at"), "time_column": "at"},
        {
            "sql": HOURLY.replace("FROM trips", "FROM trips JOIN zones USING (zone_id)"),
            "dimensions": ["zones"],
        },
        {"on_base_delete": "freeze"},
    ],
    ids=["sql", "grain", "alias", "filter", "hours", "weeks", "time_column", "dimension", "on_base_delete"],
)
def test_the_definition_changes_when_the_rows_may(lake: Lake, fields: dict[str, Any]) -> None:
    assert view_of(lake, **fields).definition != view_of(lake).definition


def test_another_time_column_alone_is_another_definition(lake: Lake) -> None:
    sql = "SELECT pickup_at AS hour, date_trunc('hour', pickup_at) AS late FROM trips"
    assert view_of(lake, sql=sql, time_column="late").definition != view_of(lake, sql=sql).definition


def test_another_unit_of_the_base_is_another_definition(lake: Lake) -> None:
    lake.write("events", {"at": pa.array([5])})
    lake.table("events", time_column="at", time_unit="ms")
    sql = "SELECT timestamp_millis(at) AS hour FROM events"
    before = view_of(lake, base="events", sql=sql).definition
    lake.tables[-1]["time_unit"] = "s"
    after = view_of(lake, base="events", sql=sql.replace("millis", "seconds")).definition
    assert before != after


def test_text_inside_quotes_keeps_its_case_in_the_definition(lake: Lake) -> None:
    sql = HOURLY.replace("FROM trips", "FROM trips WHERE 'a' = 'a'")
    assert view_of(lake, sql=sql).definition != view_of(lake, sql=sql.replace("'a' =", "'A' =")).definition


# The schema for editors


def schema() -> dict[str, Any]:
    result = CliRunner().invoke(main, ["project", "schema"])
    assert result.exit_code == 0
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def fits(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """As much of JSON schema as the project's uses."""
    if "$ref" in rule:
        return fits(value, root["$defs"][rule["$ref"].removeprefix("#/$defs/")], root)
    for several in ("anyOf", "oneOf"):
        if several in rule and not any(fits(value, each, root) for each in rule[several]):
            return False
    if "const" in rule and value != rule["const"]:
        return False
    if "enum" in rule and value not in rule["enum"]:
        return False
    if "pattern" in rule and not re.search(rule["pattern"], str(value)):
        return False
    return _fits_type(value, rule, root)


def _fits_type(value: Any, rule: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    match rule.get("type"):
        case "object":
            known, extra = rule.get("properties", {}), rule.get("additionalProperties", True)
            return (
                isinstance(value, dict)
                and all(key in value for key in rule.get("required", ()))
                and all(
                    fits(each, known[key], root) if key in known else _extra(each, extra, root)
                    for key, each in value.items()
                )
            )
        case "array":
            return isinstance(value, list) and all(fits(each, rule.get("items", {}), root) for each in value)
        case "string":
            return isinstance(value, str) and len(value) >= rule.get("minLength", 0)
        case "integer":
            low, high = rule.get("minimum", value), rule.get("maximum", value)
            return isinstance(value, int) and low <= value <= high
        case "null":
            return value is None
    return True


def _extra(value: Any, rule: Any, root: Mapping[str, Any]) -> bool:
    return bool(rule) if isinstance(rule, bool) else fits(value, rule, root)


def example() -> dict[str, Any]:
    """The project of the design, as an editor sees it: dates are text in JSON."""
    return {
        "state": "sqlite:///${MV_ASSETS_HOME}/state.db",
        "warehouse": "${MV_ASSETS_HOME}/warehouse",
        "spark": {"master": "local[*]", "conf": {}},
        "tables": [
            {"name": "trips", "format": "parquet", "path": "data/trips", "time_column": "pickup_at"},
            {"name": "zones", "format": "parquet", "path": "data/zones"},
        ],
        "views": [
            {
                "name": "trips_hourly",
                "base": "trips",
                "dimensions": ["zones"],
                "sql": HOURLY,
                "time_column": "hour",
                "bucket": "1d",
                "start": "2024-01-01",
                "buffer": "10m",
                "closes": "1h",
                "max_staleness": "2h",
                "max_buckets_per_run": 64,
                "max_runs": 2,
                "every": "1h",
                "answers": False,
                "on_base_delete": "follow",
            }
        ],
    }


def test_the_schema_takes_the_example_of_the_design() -> None:
    assert fits(example(), schema(), schema())


def test_the_schema_takes_a_table_without_its_default_format_and_an_empty_project() -> None:
    project = example()
    del project["tables"][0]["format"]
    assert fits(project, schema(), schema())
    assert fits({}, schema(), schema())


def test_the_schema_takes_a_state_that_says_how_often_it_is_tried() -> None:
    project = example() | {"state": {"url": "sqlite:///state.db", "attempts": 500}}
    assert fits(project, schema(), schema())
    jsonschema.validate(project, schema())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("viewz",), []),
        (("tables",), {}),
        (("tables", 0, "format"), "csv"),
        (("tables", 0, "time_colum"), "x"),
        (("tables", 0, "path"), ""),
        (("tables", 0, "settle"), "soon"),
        (("tables", 0, "time_unit"), "d"),
        (("views", 0, "bucket"), "daily"),
        (("views", 0, "buffer"), 5),
        (("views", 0, "closes"), 5),
        (("views", 0, "closes"), "soon"),
        (("views", 0, "max_staleness"), "soon"),
        (("views", 0, "max_buckets_per_run"), 0),
        (("views", 0, "max_runs"), 0),
        (("views", 0, "every"), "often"),
        (("views", 0, "on_base_delete"), "keep"),
        (("views", 0, "name"), "Hourly-1"),
        (("views", 0, "base"), "Trips"),
        (("spark", "maser"), "x"),
        (("spark", "remote"), "localhost:15002"),
        (("state",), {"attempts": 5}),
        (("state",), {"url": "sqlite:///s", "attempts": 0}),
        (("state",), {"url": "sqlite:///s", "tries": 5}),
        (("state",), 5),
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(place: tuple[str | int, ...], value: Any) -> None:
    project: Any = example()
    inside = project
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    assert not fits(project, schema(), schema())


def test_the_schema_explains_its_fields() -> None:
    whole = schema()
    models = {"Project": whole, **whole["$defs"]}
    assert models.keys() >= {"Project", "Spark", "MaterializedView", "ParquetTable", "DeltaTable"}
    fields = {
        f"{model}.{name}": field
        for model, described in models.items()
        for name, field in described["properties"].items()
    }
    assert [name for name, field in fields.items() if not field.get("description")] == []
    assert "Monday" in fields["MaterializedView.bucket"]["description"]
    assert "The first bucket" in fields["MaterializedView.start"]["description"]


def test_the_schema_takes_its_own_defaults() -> None:
    whole = schema()
    given = {
        f"{model}.{name}": field
        for model, described in {"Project": whole, **whole["$defs"]}.items()
        for name, field in described["properties"].items()
        if "default" in field
    }
    assert {name for name, field in given.items() if not fits(field["default"], field, whole)} == set()
    durations = ("ParquetTable.settle", "ParquetTable.settle_at_most", "MaterializedView.stall_after")
    assert [given[name]["default"] for name in durations] == ["5s", "1m", "1h"]


def test_the_schema_asks_for_sql_or_python() -> None:
    project = example()
    del project["views"][0]["sql"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(project, schema())
    project["views"][0] |= {"python": "shop.views:hourly", "scope": "bucket"}
    jsonschema.validate(project, schema())


@pytest.mark.parametrize("missing", ["name", "base", "time_column", "bucket", "start"])
def test_the_schema_asks_for_what_a_view_must_have(missing: str) -> None:
    project = example()
    del project["views"][0][missing]
    assert not fits(project, schema(), schema())


def test_jsonschema_agrees() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    jsonschema.validate(example(), schema())


INSIDE = [
    "SELECT at, s.x FROM events",
    "SELECT at, events.s.x FROM events",
    "SELECT at, s['x'] AS x FROM events",
    "SELECT at, l.x FROM events",
    "SELECT at, transform(l, e -> e.x) AS x FROM events e",
    "SELECT at, map_values(m).x AS x FROM events",
    "SELECT at, e.x FROM events LATERAL VIEW explode(l) t AS e",
    "SELECT at, y FROM events LATERAL VIEW inline(l) t AS x, y",
    "SELECT at FROM events WHERE s.x > 0",
    "SELECT at, d.s.x FROM events JOIN d USING (id)",
]
NOT_INSIDE = {
    "SELECT at, x FROM events": "2441459962aa04f4",
    "SELECT e.at, e.x, `s.x` FROM events e WHERE e.y > 1.5": "1509996383c1bee3",
    "SELECT events.at, d.x FROM events JOIN d USING (id)": "fe89e4da72a409b3",
    "SELECT date_trunc('hour', at) AS at, count(*) AS n, max(s) AS s FROM events GROUP BY ALL": (
        "b47895f277c9f53d"
    ),
}


def defined(sql: str, base: str, dimension: str = "parquet", **fields: Any) -> str:
    """The definition of a view on tables of some formats, of which nothing but the declaration is known."""
    tables = [
        {"name": "events", "path": "events", "time_column": "at", "format": base, **fields},
        {"name": "d", "path": "d", "format": dimension},
    ]
    view = {"name": "v", "base": "events", "sql": sql, "time_column": "at", "bucket": "1d"}
    dimensions = ["d"] if "JOIN d" in sql else []
    declared = {"tables": tables, "views": [{**view, "start": "2024-01-01", "dimensions": dimensions}]}
    draft = Draft("test", DeclaredProject.model_validate(declared))
    return prepare(draft, schemas=False).view("v").definition


@pytest.mark.parametrize("sql", INSIDE)
def test_sql_that_reaches_inside_columns_that_may_be_found_by_id_is_computed_again(sql: str) -> None:
    before = defined(sql, "parquet")
    assert defined(sql, "iceberg") == defined(sql, "delta") != before
    assert defined(sql, "iceberg", reader="spark") == defined(sql, "iceberg")
    assert (defined(sql, "parquet", "iceberg") == before) is ("JOIN d" not in sql)


@pytest.mark.parametrize(("sql", "definition"), NOT_INSIDE.items())
def test_other_sql_has_the_definition_that_it_always_had(sql: str, definition: str) -> None:
    """What is stored under it must not be computed again."""
    for base in ("parquet", "delta", "iceberg"):
        for dimension in ("parquet", "delta", "iceberg"):
            assert defined(sql, base, dimension) == definition


def test_sql_on_files_that_know_their_columns_by_name_has_the_definition_that_it_always_had() -> None:
    assert defined("SELECT at, s.x FROM events", "parquet") == "3f9270ec40864809"
