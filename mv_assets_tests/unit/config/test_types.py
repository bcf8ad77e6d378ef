"""What a user writes in Python passes mypy as it passes pydantic, with pydantic's plugin or without."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mv_assets

# Everything that the constructors take, as the README and the project file have it.
pytestmark = pytest.mark.processes
RIGHT = """\
from datetime import UTC, date, datetime

from mv_assets import (
    Bucket,
    DeltaTable,
    Function,
    IcebergTable,
    MaterializedView,
    ParquetTable,
    Spark,
    StateDatabase,
    Storage,
    WarehouseFolder,
    build_definitions,
    view,
)

trips = ParquetTable(
    name="trips", path="data/trips", time_column="at", time_unit="ms", settle="2s", settle_at_most="30s"
)
orders = DeltaTable(
    name="orders", path="data/orders", time_column="at", settle="2s", storage_options={"a": "b"}
)
far = ParquetTable(name="far", path="s3://a/b", storage=Storage(access_key="k", secret_key="s"))
warehouse = WarehouseFolder(path="s3://a/wh", storage=Storage(region="eu-central-1"))
clicks = IcebergTable(
    name="clicks", identifier="a.b", catalog={"type": "rest"}, time_column="at", settle_at_most="10m"
)
hourly = MaterializedView(
    name="hourly",
    base="trips",
    dimensions=["zones"],
    sql="SELECT 1",
    time_column="hour",
    bucket="1d",
    start="2024-01-01",
    buffer="10m",
    closes="1h",
    max_staleness="2h",
    stall_after="1h",
    max_buckets_per_run=10,
    max_runs=1,
    every="5m",
    answers=False,
    owners=["team:city"],
)
daily = MaterializedView(
    name="daily",
    base="hourly",
    dimensions=("zones",),
    sql="SELECT 1",
    time_column="day",
    bucket="1d",
    start=date(2024, 1, 1),
    max_staleness=None,
)
weekly = MaterializedView(
    name="weekly",
    base="daily",
    sql="SELECT 1",
    time_column="week",
    bucket="1w",
    start=datetime(2024, 1, 1, tzinfo=UTC),
)
@view(
    base={"table": "trips", "from": "6d"},
    time_column="day",
    bucket="1d",
    start="2024-01-01",
    with_=[{"table": "orders", "to": "7d"}],
    dimensions=["zones"],
    version="2",
    buffer="10m",
    owners=["team:city"],
)
def actives(trips: list[int], orders: list[int], bucket: Bucket) -> list[int]:
    return [*trips, *orders, bucket.start.day]


def twice(x: int) -> int:
    return 2 * x


tested = actives([1], [2], bucket=Bucket(datetime.now(UTC), datetime.now(UTC), "2024-01-01"))
by_name = MaterializedView(
    name="one", base="trips", scope="bucket", python="a.b:c", time_column="d", bucket="1d", start="2024-01-01"
)
functions = [
    Function(name="twice", python=twice, returns="int"),
    Function(name="other", python="a.b:c", returns="int"),
]
start: int | None = hourly.start
names: tuple[str, ...] = hourly.joined
bound: int | None = hourly.max_staleness
defs = build_definitions(
    tables=[trips, orders, clicks],
    views=[hourly, daily, weekly, actives, by_name],
    functions=functions,
    state=StateDatabase(url="sqlite:///state.db", attempts=500),
    spark=Spark(master="local[2]", conf={"a": "b"}),
)
same = build_definitions(tables=[trips], views=[hourly], state="sqlite:///state.db")
"""
WRONG = """\
from mv_assets import MaterializedView, ParquetTable, view

ParquetTable(name="trips", path="data/trips", settle=5)
ParquetTable(name="trips")
MaterializedView(
    name="v", base="t", sql="SELECT 1", time_column="at", bucket="1d", start=5, buffer=10, dimensions="zones"
)
view(base="t", time_column="at", bucket="1d", start="2024-01-01", sql="SELECT 1")
"""
# What else the package imports is no matter here, and large.
SKIPPED = """\
[mypy-dagster.*,dagster_pyspark.*,pyspark.*,pandas.*,pyarrow.*,sqlglot.*,sqlalchemy.*]
follow_imports = skip
"""


def checked(folder: Path, settings: str, **texts: str) -> dict[str, list[str]]:
    """What mypy says of files of a user's."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "mypy.ini").write_text(f"[mypy]\nstrict = True\n{settings}{SKIPPED}")
    done = subprocess.run(  # noqa: S603 - our own texts
        [sys.executable, "-m", "mypy", "--no-error-summary", *(f"{name}.py" for name in texts)],
        cwd=folder,
        env={"MYPYPATH": str(Path(mv_assets.__file__).parent.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    said = done.stdout.splitlines()
    return {name: [line for line in said if line.startswith(f"{name}.py")] for name in texts}


def test_what_a_user_declares_in_python_type_checks_and_what_no_constructor_takes_is_found(
    tmp_path: Path,
) -> None:
    said = checked(tmp_path, "", right=RIGHT, wrong=WRONG)
    assert said["right"] == []
    errors = [line for line in said["wrong"] if ": error: " in line]
    wrong = [re.findall(r'"(settle|path|start|buffer|dimensions|sql)"', line)[0] for line in errors]
    assert wrong == ["settle", "path", "start", "buffer", "dimensions", "sql"]


@pytest.mark.parametrize(
    "settings",
    [
        "",
        pytest.param(
            "[pydantic-mypy]\ninit_typed = True\ninit_forbid_extra = True\n", marks=pytest.mark.slow
        ),
    ],
    ids=["plain", "typed"],
)
def test_it_does_so_with_pydantics_plugin_too(tmp_path: Path, settings: str) -> None:
    assert checked(tmp_path, f"plugins = pydantic.mypy\n{settings}", right=RIGHT) == {"right": []}
