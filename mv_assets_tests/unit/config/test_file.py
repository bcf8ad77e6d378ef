from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mv_assets.buckets import iso
from mv_assets.config import (
    DeclaredProject,
    DeltaTable,
    IcebergTable,
    MaterializedView,
    ParquetTable,
    StateDatabase,
    declare,
    read,
)
from mv_assets.config.errors import Mistake, ProjectError
from mv_assets.config.values import connect_address

TRIPS = "  - {name: trips, path: data/trips, time_column: pickup_at}\n"
ZONES = "  - {name: zones, path: data/zones}\n"
HOURLY = """\
  - name: hourly
    base: trips
    sql: SELECT pickup_at AS hour FROM trips
    time_column: hour
    bucket: 1d
    start: 2024-01-01
"""
VALID = f"tables:\n{TRIPS}{ZONES}views:\n{HOURLY}"
SECRET = "hunter2"  # noqa: S105 - nobody's
# The project file of the design, as a user would copy it.
EXAMPLE = """\
state: sqlite:///${MV_ASSETS_HOME}/state.db       # or postgresql+psycopg://user@host/db
warehouse: ${MV_ASSETS_HOME}/warehouse
spark: {master: "local[*]", conf: {}}             # or {remote: "sc://host:15002"}
tables:
  - {name: trips, format: parquet, path: data/trips, time_column: pickup_at}
  - {name: zones, format: parquet, path: data/zones}            # a dimension: no time column
views:
  - name: trips_hourly
    base: trips                                   # a table, or another view
    dimensions: [zones]
    sql: |
      SELECT date_trunc('hour', t.pickup_at) AS hour, z.borough, count(*) AS trips, sum(t.fare) AS fare
      FROM trips t JOIN zones z USING (zone_id) GROUP BY ALL
    time_column: hour                             # output column that places a row in its bucket
    bucket: 1d                                    # minutes dividing the hour, hours dividing the day
    start: 2024-01-01                             # coverage begins here
    buffer: 10m                                   # wait this long after a bucket ends
    max_staleness: 2h                             # bounded reads refuse the view
    max_buckets_per_run: 64
    on_base_delete: follow                        # or freeze
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "project.yaml"


def load(file: Path, text: str | bytes, variables: Mapping[str, str] | None = None) -> DeclaredProject:
    file.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read(file, variables or {}).finished()


def wrong(file: Path, text: str | bytes, variables: Mapping[str, str] | None = None) -> list[Mistake]:
    """All mistakes; each message names the file and is one line a mistake."""
    with pytest.raises(ProjectError) as caught:
        load(file, text, variables)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{file}: {len(caught.value.mistakes)} mistake")
    assert lines[1:] == [f"  {mistake}" for mistake in caught.value.mistakes]
    return list(caught.value.mistakes)


def only(file: Path, text: str | bytes, variables: Mapping[str, str] | None = None) -> Mistake:
    (mistake,) = wrong(file, text, variables)
    return mistake


def view(**fields: str) -> str:
    """The valid project with some fields of its view written otherwise."""
    kept = [line for line in HOURLY.splitlines() if line.strip(" -").split(":")[0] not in fields]
    given = [f"    {name}: {value}" for name, value in fields.items() if name != "name"]
    kept[:0] = [f"  - name: {fields['name']}"] if "name" in fields else []
    return f"tables:\n{TRIPS}{ZONES}views:\n" + "\n".join([*kept, *given]) + "\n"


def table(fields: str) -> str:
    return f"tables:\n  - {{name: trips, {fields}}}\n"


# What is right


def test_the_example_of_the_design_is_read(file: Path) -> None:
    project = load(file, EXAMPLE, {"MV_ASSETS_HOME": "/home/mv"})
    assert project.state.url == "sqlite:////home/mv/state.db"
    assert project.warehouse.path == "/home/mv/warehouse"
    (hourly,) = project.views
    assert (hourly.buffer, hourly.max_staleness, hourly.start) == (600_000, 7_200_000, 1_704_067_200_000)
    assert [each.name for each in project.tables] == ["trips", "zones"]


@pytest.mark.parametrize("text", ["", "\n", "# nothing yet\n", "---\n", "{}\n", "tables:\nviews:\nspark:\n"])
def test_an_empty_file_is_a_project_without_views(file: Path, text: str) -> None:
    project = load(file, text)
    assert (project.tables, project.views) == ((), ())
    assert project.state.url == f"sqlite:///{file.parent}/.mv_assets/state.db"


def test_every_format_has_its_own_fields(file: Path) -> None:
    text = """\
tables:
  - {name: a, path: a, files: "*.parquet", settle: 1s, settle_at_most: 2s}
  - {name: b, format: delta, path: b, reader: spark, storage_options: {region: eu}}
  - {name: c, format: iceberg, catalog: {type: sql}, identifier: db.c}
"""
    a, b, c = load(file, text).tables
    assert isinstance(a, ParquetTable)
    assert isinstance(b, DeltaTable)
    assert isinstance(c, IcebergTable)
    assert (a.files, b.storage_options, c.identifier) == ("*.parquet", {"region": "eu"}, "db.c")


def test_an_iceberg_table_by_its_path_may_say_how_it_is_reached(file: Path) -> None:
    text = """\
tables:
  - {name: a, format: iceberg, path: "s3://lake/a", catalog: {s3.endpoint: "http://store:9000"}, unsafe: true}
  - {name: b, format: iceberg, path: b}
"""
    a, b = load(file, text).tables
    assert isinstance(a, IcebergTable)
    assert isinstance(b, IcebergTable)
    assert (a.path, a.catalog, a.unsafe) == ("s3://lake/a", {"s3.endpoint": "http://store:9000"}, True)
    assert (b.path, b.catalog, b.unsafe) == (f"{file.parent}/b", None, False)


def test_a_catalog_in_a_file_is_found_from_the_folder_of_the_project(file: Path) -> None:
    text = """\
tables:
  - {name: a, format: iceberg, identifier: db.a, catalog: {name: c, type: sql, uri: "sqlite:///catalog.db"}}
  - {name: b, format: iceberg, identifier: db.b, catalog: {type: sql, uri: "sqlite:////lake/catalog.db"}}
  - {name: c, format: iceberg, identifier: db.c, catalog: {uri: "http://catalog:8181"}}
"""
    found = [
        table.catalog["uri"]
        for table in load(file, text).tables
        if isinstance(table, IcebergTable) and table.catalog
    ]
    assert found == [
        f"sqlite:///{file.parent}/catalog.db",
        "sqlite:////lake/catalog.db",
        "http://catalog:8181",
    ]


def test_relative_paths_start_at_the_folder_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    text = (
        f"state: sqlite:///s/state.db\nwarehouse: wh\ntables:\n{TRIPS}  - {{name: far, path: s3://b/far}}\n"
    )
    project = load(file, text)
    assert project.state.url == f"sqlite:///{file.parent}/s/state.db"
    assert project.warehouse.path == f"{file.parent}/wh"
    assert [each.path for each in project.tables] == [f"{file.parent}/data/trips", "s3://b/far"]


def test_a_file_named_relative_to_the_current_folder_gives_absolute_paths(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(VALID)
    monkeypatch.chdir(file.parent)
    project = read(Path("project.yaml"), {}).finished()
    assert project.tables[0].path == f"{file.parent}/data/trips"
    assert project.state.url == f"sqlite:///{file.parent}/.mv_assets/state.db"


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////var/lib/state.db",
        "postgresql+psycopg://u:p@h/db",
        "postgresql://u@h:5432/db?sslmode=require",
        "sqlite:///file:/var/lib/state.db?uri=true",
    ],
)
def test_an_absolute_state_url_is_kept(file: Path, url: str) -> None:
    assert load(file, f'state: "{url}"\n').state.url == url


@pytest.mark.parametrize(
    ("written", "filled_in"),
    [
        ("${A}", "/one"),
        ("${A}/x/${B}", "/one/x/two"),
        ("${NOPE:-/there}", "/there"),
        ("${EMPTY:-/there}", "/there"),
        ("${A:-/there}", "/one"),
        ("/p${NOPE:-}", "/p"),
        ("/$A", "/$A"),
        ("/${1}", "/${1}"),
    ],
)
def test_variables_are_filled_in(file: Path, written: str, filled_in: str) -> None:
    variables = {"A": "/one", "B": "two", "EMPTY": ""}
    assert load(file, f"warehouse: {written}\n", variables).warehouse.path == filled_in


def test_a_variables_value_is_never_read_as_yaml_or_as_a_variable(file: Path) -> None:
    value = "/a: b # ${B}"
    assert load(file, "warehouse: ${A}\n", {"A": value, "B": "no"}).warehouse.path == value


def test_variables_fill_in_every_kind_of_field(file: Path) -> None:
    text = view(bucket="${W}", start="${S}", buffer="${D}", max_buckets_per_run="${N}")
    (found,) = load(file, text, {"W": "6h", "S": "2024-01-31", "D": "5m", "N": "7"}).views
    assert (found.bucket, found.buffer, found.max_buckets_per_run) == ("6h", 300_000, 7)


def test_all_variables_that_are_not_set_are_named_with_their_lines(file: Path) -> None:
    text = f"state: sqlite:///${{ONE}}/x\nwarehouse: ${{TWO}}\ntables:\n{TRIPS}"
    assert [str(mistake) for mistake in wrong(file, text)] == [
        "line 1, state: the variable ONE is not set; set it, or give a default: ${ONE:-...}",
        "line 2, warehouse: the variable TWO is not set; set it, or give a default: ${TWO:-...}",
    ]


def test_anchors_and_merge_keys_work(file: Path) -> None:
    first = "  - &t {name: a, path: &p data, settle: 1s}\n"
    text = f"tables:\n{first}  - {{<<: *t, name: b}}\n  - {{name: c, path: *p}}\n"
    project = load(file, text)
    assert [(each.name, each.path, each.settle) for each in project.tables] == [
        ("a", f"{file.parent}/data", 1_000),
        ("b", f"{file.parent}/data", 1_000),
        ("c", f"{file.parent}/data", 5_000),
    ]


def test_a_view_may_come_before_its_base(file: Path) -> None:
    daily = HOURLY.replace("name: hourly", "name: daily").replace("base: trips", "base: hourly")
    assert len(load(file, f"views:\n{daily}{HOURLY}tables:\n{TRIPS}").views) == 2


# What is wrong: the file


def test_a_missing_file_is_named(file: Path) -> None:
    said = (
        rf"{re.escape(str(file))}: 1 mistake\n  can't be read: No such file .*; name the file with --project"
    )
    with pytest.raises(ProjectError, match=said):
        read(file, {})


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="it is a folder; name the file in it"):
        read(tmp_path, {})


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00", b"state: \xe9\n", bytes(range(256)), b"PAR1\x00\x80" * 9]
)
def test_bytes_that_are_no_text_are_refused(file: Path, content: bytes) -> None:
    assert "can't be read" in str(only(file, content))


@pytest.mark.parametrize("text", ["- a\n- b\n", "hello\n", "5\n", "[]\n", "2024-01-01\n"])
def test_a_file_that_is_no_mapping_is_told_the_keys(file: Path, text: str) -> None:
    assert (
        "a project has the keys state, storage, warehouse, spark, publish, tables, functions and views"
        in only(file, text).what
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("state: x\n\twarehouse: y\n", 2),
        ("state: a\nwarehouse: b: c\n", 2),
        ("state: x\ntables: [\n", 3),
        ("state: x\nwarehouse: *nowhere\n", 2),
        ("state: x\nwarehouse: !mine y\n", 2),
        ("state: x\nwarehouse: !!python/object/apply:os.getcwd []\n", 2),
        ("state: x\ntables: [{<<: 5, name: a}]\n", 2),
        ("state: x\n---\nstate: y\n", 2),
    ],
)
def test_bad_yaml_is_refused_with_its_line(file: Path, text: str, line: int) -> None:
    mistake = only(file, text)
    assert mistake.line == line
    assert str(mistake).startswith(f"line {line}: not valid YAML: ")


@pytest.mark.parametrize("text", ["state: a\x00b\n", "state: x\nwarehouse: a\x01b\n", "\x7f\n"])
def test_control_characters_are_refused_in_one_line(file: Path, text: str) -> None:
    assert only(file, text).what.startswith("not valid YAML: ")


@pytest.mark.parametrize(
    "value", ["!!timestamp soon", "!!bool maybe", "!!int many", "!!int ''", "!!float x", "!!binary x"]
)
def test_a_tagged_value_that_is_none_of_its_kind_is_a_mistake_of_its_line(file: Path, value: str) -> None:
    assert wrong(file, f"state: sqlite:///x\nwarehouse: {value}\n")[0].line == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            view(name="type"),
            "line 5, views.type.name: 'type' is a word that Dagster or Python keeps for itself",
        ),
        (view(name="class"), "line 5, views.class.name: 'class' is a word that Dagster or Python keeps"),
        (view(name="drop_view"), "line 5, views.drop_view.name: 'drop_view' is the name of a job or op of"),
        ("tables: [{name: input, path: x}]\n", "line 1, tables.input.name: 'input' is a word that Dagster"),
        (
            view(owners="[bob]"),
            "line 11, views.hourly.owners.0: 'bob' is no owner to Dagster; write",
        ),
        (view(start="0001-01-01"), "line 10, views.hourly.start: 0001-01-01 00:00:00+00:00 lies outside the"),
        (view(start="9999-12-01"), "line 10, views.hourly.start: 9999-12-01 00:00:00+00:00 lies outside the"),
    ],
)
def test_what_dagster_would_refuse_the_project_for_is_a_mistake_of_its_line(
    file: Path, text: str, said: str
) -> None:
    assert said in str(only(file, text))


def test_a_name_that_a_check_of_a_view_has_in_dagster_is_a_mistake(file: Path) -> None:
    other = HOURLY.replace("name: hourly", "name: hourly_fresh")
    text = f"tables:\n{TRIPS}  - {{name: hourly_matches_base, path: x}}\nviews:\n{HOURLY}{other}"
    table, second = map(str, wrong(file, text))
    assert table.startswith(
        "line 3, tables.hourly_matches_base.name: in Dagster hourly_matches_base is the check"
    )
    assert second.startswith(
        "line 11, views.hourly_fresh.name: in Dagster hourly_fresh is the check fresh of view"
    )


@pytest.mark.parametrize("value", ["2024-02-30", "2024-13-01", "2024-01-01T00:00:00+99:00"])
def test_a_date_that_is_none_is_a_mistake_of_its_field(file: Path, value: str) -> None:
    first, second = wrong(file, view(start=value, bucket="7h"))
    assert {first.where, second.where} == {"views.hourly.start", "views.hourly.bucket"}
    assert all(mistake.line is not None for mistake in (first, second))


def test_a_key_given_twice_is_a_mistake_wherever_it_stands(file: Path) -> None:
    first, second = wrong(file, f"{VALID}    bucket: 1h\nwarehouse: x\nwarehouse: y\n")
    assert (str(first), str(second)) == (
        "line 11, views.hourly.bucket: given twice; keep one",
        "line 13, warehouse: given twice; keep one",
    )


@pytest.mark.parametrize("key", ["[a, b]", "{a: b}", "1", "~", "2024-01-01", "true"])
def test_a_key_that_is_no_text_is_unknown_and_shown_as_written(file: Path, key: str) -> None:
    mistake = only(file, f"? {key}\n: 1\n")
    assert mistake.line == 1
    assert "Node(" not in str(mistake)


def test_anchors_that_multiply_are_refused_soon(file: Path) -> None:
    levels = [f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 12)]
    what = only(file, "\n".join(["k0: &k0 [x]", *levels])).what
    assert "do its anchors multiply?" in what


def test_merges_that_multiply_are_refused_soon(file: Path) -> None:
    levels = [f"k{n}: &k{n} {{<<: [{', '.join([f'*k{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    assert "do its anchors multiply?" in only(file, "\n".join(["k0: &k0 {x: 1}", *levels])).what


@pytest.mark.parametrize("text", ["tables: &a [*a]\n", "spark: &a {conf: *a}\n", "views: &a [{sql: *a}]\n"])
def test_a_value_that_contains_itself_is_refused(file: Path, text: str) -> None:
    wrong(file, text)


@pytest.mark.parametrize("depth", [100, 1_000, 20_000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_no_depth_raises_anything_else(file: Path, depth: int, left: str, right: str) -> None:
    wrong(file, f"tables:\n  {left * depth}x{right * depth}\n")


# What is wrong: the fields


@pytest.mark.parametrize(
    ("text", "line", "where", "meant"),
    [
        ("warehose: x\n", 1, "warehose", "did you mean warehouse?"),
        ("\n\nviewz: []\n", 3, "viewz", "did you mean views?"),
        (
            "zzz: 1\n",
            1,
            "zzz",
            "there is state, storage, warehouse, spark, publish, tables, functions, views",
        ),
        (table("path: x, time_colum: c"), 2, "tables.trips.time_colum", "did you mean time_column?"),
        (table("path: x, zzz: c"), 2, "tables.trips.zzz", "there is storage, name, time_column"),
        (view(bukcet="1d"), 11, "views.hourly.bukcet", "did you mean bucket?"),
        ("spark:\n  maser: x\n", 2, "spark.maser", "did you mean master?"),
    ],
)
def test_an_unknown_key_is_refused_with_what_was_meant(
    file: Path, text: str, line: int, where: str, meant: str
) -> None:
    mistake = only(file, text)
    assert (mistake.line, mistake.where) == (line, where)
    assert meant in mistake.what


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("bucket", "7h", "'7h' does not divide time evenly; use minutes that divide the hour"),
        ("bucket", "daily", "'daily' is not a bucket width; use minutes that divide the hour"),
        ("buffer", "ten minutes", "'ten minutes' is not a duration; write a number and a unit"),
        ("max_staleness", "5", "5 is not a duration; write a number and a unit"),
        ("start", "soon", "'soon' is not a time; write 2024-01-31, 2024-01-31T15:00 or earliest"),
        ("name", "Trips-Daily", "'Trips-Daily' is not a name; use lower-case letters"),
        ("base", "tripz", "there is no table or view tripz; did you mean trips?"),
        ("base", "zones", "table zones has no time_column, so its rows belong to no bucket; declare one"),
        ("base", "[trips]", "['trips'] is not a name"),
        ("dimensions", "[zone]", "there is no table zone; did you mean zones?"),
        ("dimensions", "[trips]", "trips is the base already; take it out of dimensions"),
        ("dimensions", "[hourly]", "hourly is a view; a dimension is a table"),
        ("dimensions", "[{table: zone, key: id}]", "there is no table zone; did you mean zones?"),
        ("dimensions", "[{table: trips, key: id}]", "trips is the base already; take it out of dimensions"),
        ("on_base_delete", "keep", "'follow' or 'freeze'"),
        ("max_buckets_per_run", "0", "greater than or equal to 1"),
        ("max_buckets_per_run", "100000", "less than or equal to 10000"),
        ("max_buckets_per_run", "many", "valid integer"),
        ("max_buckets_per_run", "true", "not a number"),
        ("max_runs", "0", "greater than or equal to 1"),
        ("every", "soon", "'soon' is not a duration; write a number and a unit"),
        ("every", "1500ms", "looks are whole seconds apart, at least one; write 1s, 30s, 5m"),
        ("every", "0s", "looks are whole seconds apart, at least one; write 1s, 30s, 5m"),
        ("answers", "never", "a valid boolean"),
        ("start", "latest", "'latest' is not a time; write 2024-01-31, 2024-01-31T15:00 or earliest"),
        ("sql", "''", "empty"),
        ("sql", "[SELECT 1]", "text"),
        ("time_column", "5", "text"),
        ("owners", "[5]", "text"),
        ("group", "my group", "'my group' is no name to Dagster; use letters"),
        ("key_prefix", "[a/b]", "'a/b' is no name to Dagster"),
        ("kinds", "['a b']", "'a b' is no kind to Dagster"),
        ("kinds", "[a, b, c, d]", "at most 3"),
        ("tags", "{'a b': c}", "a b: c is no tag to Dagster"),
    ],
)
def test_a_wrong_field_of_a_view_says_what_would_be_right(
    file: Path, field: str, value: str, shown: str
) -> None:
    mistake = only(file, view(**{field: value}))
    name = value if field == "name" else "hourly"
    assert re.sub(r"\.\d+$", "", mistake.where) == f"views.{name}.{field}"
    assert shown in mistake.what
    assert mistake.line == {"name": 5}.get(field, 10 if f" {field}:" in HOURLY else 11)


@pytest.mark.parametrize(
    ("given", "where", "shown"),
    [
        ("[{table: zones, key: [id, ID]}]", r"0\.key", "key of zones names a column twice; keep one"),
        ("[{table: zones, key: 5}]", r"0\.key", "tuple|list"),
        ("[{table: zones, key: ['']}]", r"0\.key\.0", "empty"),
        ("[{key: id}]", r"0\.table", "missing; it has no default"),
        ("[{table: zones, keys: id}]", r"0\.keys", "not a known key; did you mean key"),
        ("[zones, {table: zones, key: id}]", "", "dimensions names a table twice; keep one"),
    ],
)
def test_a_wrong_key_of_a_dimension_says_what_would_be_right(
    file: Path, given: str, where: str, shown: str
) -> None:
    mistake = only(file, view(dimensions=given))
    assert re.search(f"{where}$", mistake.where)
    assert re.search(shown, mistake.what)
    assert mistake.line is not None


@pytest.mark.parametrize(
    ("given", "keys"),
    [
        ("[zones]", {}),
        ("[{table: zones}]", {}),
        ("[{table: zones, key: id}]", {"zones": ("id",)}),
        ("[{table: zones, key: [Name, id]}]", {"zones": ("id", "name")}),
    ],
)
def test_a_dimension_may_have_a_key(file: Path, given: str, keys: dict[str, tuple[str, ...]]) -> None:
    (found,) = load(file, view(dimensions=given)).views
    assert (found.joined, found.keys) == (("zones",), keys)


def test_a_dimension_has_no_time_column(file: Path) -> None:
    timed = view(dimensions="[zones]").replace("data/zones", "data/zones, time_column: closed_at")
    mistake = only(file, timed)
    assert mistake.where == "views.hourly.dimensions"
    assert "table zones has a time_column" in mistake.what
    again = "  - {name: all_zones, path: data/zones}\nviews:"
    load(file, timed.replace("[zones]", "[all_zones]").replace("views:", again))


@pytest.mark.parametrize(
    ("fields", "where", "shown"),
    [
        ("path: ' '", "tables.trips.path", "empty"),
        ("path: 5", "tables.trips.path", "text"),
        ("path: x, format: csv", "tables.trips.format", "'csv' is not a format; use parquet, delta, iceberg"),
        ("path: x, format: [a]", "tables.trips.format", "is not a format; use parquet, delta, iceberg"),
        ("path: x, settle: soon", "tables.trips.settle", "'soon' is not a duration"),
        ("path: x, settle: 2m", "tables.trips", "settle_at_most is shorter than settle"),
        ("path: x, time_unit: s", "tables.trips", "time_unit is given without time_column"),
        ("path: x, time_column: c, time_unit: d", "tables.trips.time_unit", "'s', 'ms', 'us' or 'ns'"),
        ("format: iceberg", "tables.trips", "either a path, or a catalog and an identifier"),
        ("format: iceberg, path: x, identifier: a.b", "tables.trips", "either a path, or a catalog"),
        ("format: iceberg, identifier: a.b", "tables.trips", "either a path, or a catalog"),
        ("format: iceberg, catalog: {type: sql}", "tables.trips", "either a path, or a catalog"),
        (
            "format: iceberg, path: x, catalog: {uri: 'http://c', type: rest, s3.endpoint: e}",
            "tables.trips",
            "with a path no catalog is asked, but catalog has type, uri; give the identifier instead",
        ),
        (
            "format: iceberg, identifier: a.b, catalog: {}, unsafe: true",
            "tables.trips",
            "unsafe is for a table by its path; a catalog says what is current, take it out",
        ),
        ("format: iceberg, identifier: a.b, catalog: {name: ' '}", "tables.trips", "an empty name"),
        ("format: delta, path: x, files: '*'", "tables.trips.files", "not a known key"),
        ("format: delta, path: x, reader: duckdb", "tables.trips.reader", "'files' or 'spark'"),
    ],
)
def test_a_wrong_field_of_a_table_says_what_would_be_right(
    file: Path, fields: str, where: str, shown: str
) -> None:
    mistake = only(file, table(fields))
    assert (mistake.line, mistake.where) == (2, where)
    assert shown in mistake.what


def test_a_view_without_sql_and_python_says_that_it_needs_one(file: Path) -> None:
    kept = "".join(line for line in HOURLY.splitlines(keepends=True) if " sql:" not in line)
    mistake = only(file, f"tables:\n{TRIPS}views:\n{kept}")
    assert (mistake.line, mistake.where) == (4, "views.hourly")
    assert mistake.what == "a view has either sql or python"


@pytest.mark.parametrize("missing", ["base", "time_column", "bucket", "start"])
def test_a_missing_field_is_named_at_the_line_of_its_view(file: Path, missing: str) -> None:
    kept = "".join(line for line in HOURLY.splitlines(keepends=True) if f" {missing}:" not in line)
    mistake = only(file, f"tables:\n{TRIPS}views:\n{kept}")
    assert (mistake.line, mistake.where) == (4, f"views.hourly.{missing}")
    assert "missing" in mistake.what


def test_an_item_without_a_name_is_known_by_its_place(file: Path) -> None:
    first, second = wrong(file, "tables:\n  - {name: a, path: x}\n  - {path: y, zzz: 1}\n")
    assert {first.where, second.where} == {"tables[1].name", "tables[1].zzz"}
    assert (first.line, second.line) == (3, 3)


@pytest.mark.parametrize("value", ["5", "abc", "null", "[x]", "true"])
@pytest.mark.parametrize("key", ["tables", "views"])
def test_an_item_that_is_no_mapping_is_refused_in_the_users_words(file: Path, key: str, value: str) -> None:
    mistake = only(file, f"{key}:\n  - {value}\n")
    assert (mistake.line, mistake.where) == (2, f"{key}[0]")
    assert not re.search(r"ParquetTable|MaterializedView|instance|dictionary", mistake.what)


@pytest.mark.parametrize("value", ["5", "0", "abc", "''", "false", "true", "{a: b}", "1.5", "2024-01-01"])
@pytest.mark.parametrize("key", ["tables", "views"])
def test_tables_and_views_are_lists(file: Path, key: str, value: str) -> None:
    mistake = only(file, f"{key}: {value}\n")
    assert (mistake.line, mistake.where) == (1, key)
    assert "list" in mistake.what


@pytest.mark.parametrize("value", ["5", "0", "false", "local", "''", "[a]"])
def test_spark_is_a_mapping(file: Path, value: str) -> None:
    mistake = only(file, f"spark: {value}\n")
    assert mistake.where == "spark"
    assert not re.search(r"instance|dictionary", mistake.what)


def test_spark_has_a_master_or_a_remote(file: Path) -> None:
    assert "both a master and a remote; keep one" in only(file, "spark: {master: a, remote: 'sc://b'}\n").what


@pytest.mark.parametrize(
    "url",
    [
        *("localhost", "localhost:15002", "http://h:15002", "sc:/h", "sc://", "sc://:15002", "SC://h"),
        *("sc://h:abc", "sc://h:0", "sc://h:65536", "sc://h:-1", "sc://[::1", "sc://h/path", "' sc://h'"),
        *("sc://h;token=hush", "sc://a..b", "sc://h?token=hush"),
    ],
)
def test_a_remote_that_no_connect_server_can_have_is_a_mistake_of_its_line(file: Path, url: str) -> None:
    mistake = only(file, f"spark:\n  conf: {{}}\n  remote: {url}\n")
    assert (mistake.line, mistake.where) == (3, "spark.remote")
    assert mistake.what == "not the URL of a Spark Connect server; write sc://HOST or sc://HOST:PORT"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sc://h", ("h", 15002)),
        ("sc://h/", ("h", 15002)),
        ("sc://127.0.0.1:9", ("127.0.0.1", 9)),
        ("sc://[::1]:15002", ("::1", 15002)),
        ("sc://h:443/;use_ssl=true;token=a/b", ("h", 443)),
    ],
)
def test_the_remote_of_a_connect_server_is_taken(file: Path, url: str, address: tuple[str, int]) -> None:
    assert load(file, f"spark: {{remote: '{url}'}}\n").spark.remote == url
    assert connect_address(url) == address


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key in ("state", "warehouse") for value in ("5", "", "''", "' '", "[]", "true")],
)
def test_state_and_warehouse_are_texts(file: Path, key: str, value: str) -> None:
    mistake = only(file, f"{key}: {value}\n")
    assert (mistake.line, mistake.where) == (1, key)
    assert "text" in mistake.what


def test_a_state_may_say_how_often_it_is_tried(file: Path) -> None:
    state = load(file, "state:\n  url: sqlite:///s/state.db\n  attempts: 7\n").state
    assert (state.url, state.attempts) == (f"sqlite:///{file.parent}/s/state.db", 7)
    assert load(file, "state: sqlite:///s/state.db\n").state.attempts == 128
    assert load(file, "").state.attempts == 128


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("state: {}\n", "state.url", "missing"),
        ("state: {attempts: 7}\n", "state.url", "missing"),
        ("state: {url: 5}\n", "state.url", "text"),
        ("state: {url: nonsense}\n", "state.url", "sqlite:///FILE"),
        ("state: {url: 'sqlite:///s', attempts: 0}\n", "state.attempts", "greater than or equal to 1"),
        ("state: {url: 'sqlite:///s', attempts: many}\n", "state.attempts", "integer"),
        ("state: {url: 'sqlite:///s', attempts: true}\n", "state.attempts", "not a number"),
        ("state: {url: 'sqlite:///s', attempt: 3}\n", "state.attempt", "did you mean attempts?"),
    ],
)
def test_a_mistake_in_a_state_that_says_more_is_one_of_its_key(
    file: Path, text: str, where: str, what: str
) -> None:
    mistake = only(file, text)
    assert (mistake.line, mistake.where) == (1, where)
    assert what in mistake.what


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://u@h/db", "sqlite://", "'sqlite:///:memory:'", "/var/state.db", "postgresql"]
)
def test_a_state_that_no_database_can_be_is_a_mistake_of_the_file(file: Path, url: str) -> None:
    mistake = only(file, f"state: {url}\n")
    assert (mistake.line, mistake.where) == (1, "state")
    assert "sqlite:///FILE" in mistake.what


@pytest.mark.parametrize("text", [r'state: "sqlite:///a\0b"', r'warehouse: "a\0b"', r'state: "\ud800"'])
def test_names_that_no_file_can_have_are_mistakes(file: Path, text: str) -> None:
    assert only(file, text).line == 1


def test_names_are_unique_over_tables_and_views(file: Path) -> None:
    text = f"tables:\n{TRIPS}{ZONES}{ZONES}views:\n{HOURLY}{HOURLY.replace('hourly', 'trips')}"
    messages = [str(mistake) for mistake in wrong(file, text)]
    assert [each.split(":", 1)[1] for each in messages if "are called" in each] == [
        " 2 tables or views are called zones; give each a name of its own",
        " 2 tables or views are called trips; give each a name of its own",
    ]


def test_a_mistake_in_the_second_of_two_namesakes_has_the_line_of_the_second(file: Path) -> None:
    text = f"tables:\n{TRIPS}views:\n{HOURLY}{HOURLY.replace('1d', '7h')}"
    assert [mistake.line for mistake in wrong(file, text) if "7h" in mistake.what] == [14]


def circle(*names: str) -> str:
    bases = [*names[1:], names[0]]
    pairs = zip(names, bases, strict=True)
    return "".join(
        HOURLY.replace("hourly", name).replace("base: trips", f"base: {base}") for name, base in pairs
    )


def test_a_circle_of_views_is_shown(file: Path) -> None:
    mistake = only(file, f"views:\n{circle('a', 'b', 'c')}")
    assert mistake.where in {"views.a.base", "views.b.base", "views.c.base"}
    found = re.search(r"\((\w) -> (\w) -> (\w) -> \1\)", mistake.what)
    assert found is not None
    assert "".join(found.groups()) in {"abc", "bca", "cab"}


def test_a_view_on_itself_is_a_circle(file: Path) -> None:
    assert "(a -> a)" in only(file, f"views:\n{circle('a')}").what


def test_every_circle_is_shown(file: Path) -> None:
    mistakes = wrong(file, f"views:\n{circle('a', 'b')}{circle('c')}{circle('d', 'e')}")
    assert len([mistake for mistake in mistakes if "circle" in mistake.what]) == 3


def test_all_mistakes_come_at_once_in_the_order_of_the_file(file: Path) -> None:
    text = """\
state: [x]
zzz: 1
spark: {maser: x}
tables:
  - {name: Trips, path: data/trips, settle: soon}
  - {name: zones, format: csv, path: y}
views:
  - name: hourly
    base: nothing
    dimensions: [zonez]
    sql: SELECT 1
    time_column: hour
    bucket: 7h
    start: soon
    buffer: 1y
    max_staleness: [x]
    max_buckets_per_run: no
    on_base_delete: keep
    zzz: 1
  - 5
"""
    mistakes = wrong(file, text)
    lines = [mistake.line for mistake in mistakes]
    assert sorted(set(map(int, filter(None, lines)))) == [
        1,
        2,
        3,
        5,
        6,
        9,
        10,
        13,
        14,
        15,
        16,
        17,
        18,
        19,
        20,
    ]
    assert lines == sorted(lines, key=lambda line: line or 0)
    assert len(mistakes) == 16


# Secrets


def said(file: Path, text: str, variables: Mapping[str, str] | None = None) -> str:
    try:
        load(file, text, variables)
    except ProjectError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "text",
    [
        f"state: [postgresql://u:{SECRET}@h/db]\n",
        f"state: {{url: mysql://u:{SECRET}@h/db}}\n",
        f"state: {{url: postgresql://u:{SECRET}@h/db, attempts: x, more: {SECRET}}}\n",
        f"state: {{attempts: 5, urls: postgresql://u:{SECRET}@h/db}}\n",
        f"state:\n  - postgresql://u:{SECRET}@h/db\n",
        f"stat: postgresql://u:{SECRET}@h/db\n",
        f"state: mysql://u:{SECRET}@h/db\n",
        f"state: postgresql://u:{SECRET}@h:port/db\n",
        f"state: ' postgresql://u:{SECRET}@h/db'\nzzz: 1\n",
        f"state: a: postgresql://u:{SECRET}@h/db\n",
        "state: ['${URL}']\n",
        "state: postgresql://u:${PASSWORD}@${HOST}/db\n",
    ],
)
def test_the_secret_of_the_state_url_appears_in_no_message(file: Path, text: str) -> None:
    variables = {"PASSWORD": SECRET, "URL": f"postgresql://u:{SECRET}@h/db"}
    assert SECRET not in said(file, text, variables)


@pytest.mark.parametrize(
    "text",
    [
        f"spark: 'sc://h:15002/;token={SECRET}'\n",
        f"spark: {{remote: ['sc://h/;token={SECRET}']}}\n",
        f"spark: {{remote: 'h:15002/;token={SECRET}'}}\n",
        f"spark: {{remote: 'sc://h:port/;token={SECRET}'}}\n",
        f"tables: [{{name: a, format: delta, path: x, storage_options: {SECRET}}}]\n",
        "tables: [{name: a, format: delta, path: x, storage_options: {secret: 424242}}]\n",
        "tables: [{name: a, format: iceberg, identifier: a.b, catalog: {token: 424242}}]\n",
        "spark: {conf: {spark.password: 424242}}\n",
    ],
)
def test_other_secrets_appear_in_no_message_either(file: Path, text: str) -> None:
    assert SECRET not in said(file, text)
    assert "424242" not in said(file, text)


@pytest.mark.parametrize(
    "state",
    [
        f"mysql://u:{SECRET}@h/db",
        {"url": f"mysql://u:{SECRET}@h/db"},
        {"url": f"postgresql://u:{SECRET}@h/db", "attempts": 0},
        [f"postgresql://u:{SECRET}@h/db"],
    ],
)
def test_nor_do_those_of_a_project_in_python(state: Any) -> None:
    with pytest.raises(ProjectError) as refusal:
        declare([], [], state=state).finished()
    assert SECRET not in f"{refusal.value} {refusal.value!r}"


def test_a_project_in_python_takes_a_state_in_every_form() -> None:
    url = f"postgresql://u:{SECRET}@h/db"
    given: list[Any] = [url, {"url": url, "attempts": 9}, StateDatabase(url=url, attempts=9)]
    found = [declare([], [], state=each).finished().state for each in given]
    assert [(state.url, state.attempts) for state in found] == [(url, 128), (url, 9), (url, 9)]
    assert SECRET not in repr(found)


# Anything at all


def tolerant(file: Path, text: str | bytes) -> None:
    """Right or wrong, but nothing else than a ProjectError with well-formed mistakes."""
    try:
        load(file, text)
    except ProjectError as error:
        for mistake in error.mistakes:
            assert mistake.what
            assert "Traceback" not in mistake.what


PIECES = [
    *":-#[]{}&*!|>%@`'\",?~",
    *(" ", "\n", "\t", "  ", "\n  ", "\n    - "),
    *("<<: *t", "&t ", "*t", "!!int ", "!!timestamp ", "!!set ", "${X}", "${X:-", "}", "---\n", "...\n"),
    *(
        "null",
        "true",
        "-1",
        "1e999",
        ".nan",
        "0x1F",
        "1_000",
        "12:30:45",
        "2024-02-30",
        "2024-01-01",
        "é",
        "\x85",
    ),
]


def mutated(text: str, chance: random.Random) -> str:
    parts = re.findall(r"\s+|\w+|\S", text)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(parts))
        match chance.randrange(4):
            case 0:
                parts[place] = ""
            case 1:
                parts[place] = chance.choice(PIECES)
            case 2:
                parts.insert(place, chance.choice(PIECES))
            case _:
                other = chance.randrange(len(parts))
                parts[place], parts[other] = parts[other], parts[place]
    return "".join(parts)


@pytest.mark.parametrize("seed", range(6))
def test_mutations_of_a_good_file_raise_nothing_but_project_errors(file: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(120):
        tolerant(file, mutated(chance.choice([VALID, EXAMPLE]), chance))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.text(max_size=60), st.binary(max_size=60)))
def test_garbage_raises_nothing_but_project_errors(file: Path, content: str | bytes) -> None:
    tolerant(file, content)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.dates(),
    st.binary(max_size=4),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner)
)
PLACES = [
    ("state",),
    ("spark",),
    ("spark", "conf"),
    ("tables",),
    ("tables", 0),
    *((("tables", 0, key)) for key in ("name", "format", "path", "time_column", "settle")),
    ("views",),
    ("views", 0),
    *(
        (("views", 0, key))
        for key in ("name", "base", "dimensions", "sql", "bucket", "start", "buffer", "owners")
    ),
]


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(PLACES), value=VALUES)
def test_any_value_in_any_place_raises_nothing_but_project_errors(
    file: Path, place: tuple[str | int, ...], value: Any
) -> None:
    content: Any = {"spark": {}, **yaml.safe_load(VALID)}
    inside = content
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    tolerant(file, yaml.safe_dump(content))


def in_zone(zone: str, **given: Any) -> MaterializedView:
    declared = {"name": "v", "base": "t", "sql": "SELECT 1", "time_column": "at", "bucket": "1d"}
    return MaterializedView.model_validate({**declared, "timezone": zone, **given})


@pytest.mark.parametrize(
    ("zone", "start", "moment"),
    [
        ("America/New_York", "2024-01-01", "2024-01-01T05:00:00Z"),
        ("America/New_York", date(2024, 7, 1), "2024-07-01T04:00:00Z"),
        ("America/New_York", "2024-01-01T06:00", "2024-01-01T11:00:00Z"),
        ("America/New_York", datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00Z"),
        ("America/New_York", "2024-01-01T00:00+02:00", "2023-12-31T22:00:00Z"),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z"),
        ("UTC", "2024-01-01", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_start_is_meant_where_the_view_is(zone: str, start: Any, moment: str) -> None:
    assert iso(in_zone(zone, start=start).start or 0) == moment


def test_a_zone_makes_other_buckets_and_utc_by_another_name_does_not() -> None:
    assert in_zone("Asia/Kolkata", start="2024-01-01").buckets.text == "1d Asia/Kolkata"
    assert in_zone("Etc/UTC", start="2024-01-01") == in_zone("UTC", start="2024-01-01")


def test_a_zone_of_finer_buckets_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "project.yaml"
    file.write_text(VALID.replace("bucket: 1d", "bucket: 1h\n    timezone: America/New_York"))
    with pytest.raises(ProjectError) as caught:
        read(file).finished()
    assert "views.hourly: 1h buckets have no time zone: finer buckets than 1d are UTC only" in str(
        caught.value
    )


def test_a_view_that_is_looked_at_too_seldom_for_its_staleness_is_a_mistake(file: Path) -> None:
    mistake = only(file, view(every="2h", max_staleness="1h"))
    assert "every is longer than max_staleness" in mistake.what


def test_a_start_may_be_where_the_data_begins(file: Path) -> None:
    file.write_text(view(start="earliest"))
    assert read(file).finished().views[0].start is None
