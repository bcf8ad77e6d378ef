"""Files become few scans: literals where all are given the same, folders where they say it, else a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mv_assets.spark.errors import Unreadable
from mv_assets.spark.read import files
from mv_assets.spark.read.files import union
from mv_assets.spark.read.scans import Folders, Scan, Values, scans
from mv_assets.spark.session import Engine
from mv_assets_tests.unit.spark.read.tables import HandMade, scans_in, set_all

KINDS = {"day": "date", "zone": "string", "n": "int", "at": "timestamp"}


def made(files: Mapping[str, Values], *given: str, held: tuple[str, ...] = ("x",)) -> list[Scan]:
    return list(scans(files, given, KINDS, held, ()))


def test_files_that_are_given_the_same_are_one_scan() -> None:
    assert made({"/t/a": (), "/t/b": ()}) == [Scan(("/t/a", "/t/b"))]
    assert made({"/t/a": ("1",), "/u/b": ("1",)}, "n") == [Scan(("/t/a", "/u/b"))]
    assert made({}, "n") == []


def test_files_whose_folders_say_it_are_one_scan_by_them() -> None:
    day, null = "2024-01-31", "__HIVE_DEFAULT_PARTITION__"
    files: dict[str, Values] = {
        f"/t=1/lake/day={day}/zone=a%2Fb c/n=-07/a": (day, "-07", "a/b c"),
        f"/t=1/lake/day={null}/zone=ü/n={null}/deeper/b": (None, None, "ü"),
    }
    above = Folders("/t=1/lake", ("day", "zone", "n"))
    assert made(files, "day", "n", "zone") == [Scan(tuple(files), above)]
    # Another column of the folders is as good as none, unless the files have one of that name.
    less: dict[str, Values] = {path: values[:2] for path, values in files.items()}
    assert made(less, "day", "n") == [Scan(tuple(files), above)]
    assert made(less, "day", "n", held=("ZONE",)) == [Scan(tuple(files), keyed=True)]


OTHERWISE: dict[str, tuple[str, str, str | None]] = {
    "another value": ("n", "n=1", "2"),
    "no value": ("n", "n=1", None),
    "a null that is a text": ("zone", f"zone={'__HIVE_DEFAULT_PARTITION__'}", "x"),
    "another column": ("n", "zone=1", "1"),
    "nothing": ("n", "1", "1"),
    "no text": ("zone", "zone=", ""),
    "no name": ("zone", "=a", "a"),
    "bytes": ("zone", "zone=%C3%BC", "ü"),
    "a column twice": ("n", "n=2/N=1", "1"),
    "no day": ("day", "day=2023-02-29", "2023-02-29"),
    "a number that is none": ("n", "n=1.0", "1.0"),
    "a time": ("at", "at=2024-01-31 10:00:00", "2024-01-31 10:00:00"),
    "not in a row": ("n", "n=1/x/zone=a", "1"),
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_folders_say_otherwise_is_joined(case: str) -> None:
    column, folder, text = OTHERWISE[case]
    files: dict[str, Values] = {f"/t/{folder}/a": (text,), "/t/n=5/zone=5/day=2024-01-05/at=5/b": ("5",)}
    [odd] = [scan for scan in made(files, column) if f"/t/{folder}/a" in scan.files]
    assert odd.keyed
    assert odd.folders is None


def test_files_below_many_folders_are_not_as_many_scans() -> None:
    files: dict[str, Values] = {f"/t/{a}/n={b}/f": (str(b),) for a, b in product("xyz", range(2))}
    assert len(made(files, "n")) == 3
    files = {f"/t/{a}/n={b}/f": (str(b),) for a, b in product(range(100), range(2))}
    assert made(files, "n") == [Scan(tuple(files), keyed=True)]


@pytest.fixture
def spark(engine: Engine) -> Iterator[SparkSession]:
    with engine.session() as session:
        yield session


NULL = "__HIVE_DEFAULT_PARTITION__"
MOMENT = str(int(datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC).timestamp()))
# The folder, what the table gives, and what it means.
VALUES: dict[str, list[tuple[str, str | None, str | None]]] = {
    "string": [
        ("a b", "a b", "a b"),
        ("a%2Fb", "a/b", "a/b"),
        ("ü☃", "ü☃", "ü☃"),
        ("%C3%BC", "ü", "ü"),
        ("null", None, None),
    ],
    "int": [("7", "7", "7"), ("-07", "-07", "-7"), (NULL, None, None), ("x", "8", "8")],
    "date": [(text, text, text) for text in ("2024-02-29", "0001-01-01", "9999-12-31")],
    "timestamp": [
        ("1", "2024-02-29 01:02:03", MOMENT),
        ("2", "2024-02-29T01:02:03Z", MOMENT),
        ("1970-01-02", "1970-01-02", "86400"),
    ],
    "decimal(5,2)": [("1.50", "1.50", "1.50"), ("2", "2.25", "2.25")],
    "boolean": [("true", "true", "true"), ("f", "false", "false")],
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_value_is_the_same_however_a_file_has_it(
    tmp_path: Path, spark: SparkSession, kind: str, zone: str
) -> None:
    """Alone it is a literal; and what the files say of it does not count."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    table, names = HandMade(tmp_path / "t", {"x": "int", "p": kind}), list[str]()
    for at, (folder, text, _) in enumerate(VALUES[kind]):
        names.append(f"p={folder}/{at}.parquet")
        table.put(names[-1], pa.table({"x": pa.array([at], pa.int32()), "p": ["not this"]}))
        table.give(names[-1], p=text)
    reader = table.reader(spark)
    schema, shown = reader.schema(names), "unix_seconds(p)" if kind == "timestamp" else "p"
    together = reader.frame(names, schema)
    assert scans_in(together) <= 2
    for frame in (together, union([reader.frame([name], schema) for name in names])):
        found = {row.x: row.p for row in frame.selectExpr("x", f"CAST({shown} AS STRING) AS p").collect()}
        assert found == {at: meant for at, (_, _, meant) in enumerate(VALUES[kind])}


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_folders_may_spell_a_column_otherwise(tmp_path: Path, spark: SparkSession, sensitive: str) -> None:
    table = HandMade(tmp_path / "t", {"n": "int"})
    for at in range(2):
        table.put(f"N={at}/a", pa.table({"n": pa.array([7], pa.int32())}))
        table.give(f"N={at}/a", n=str(at))
    reader = table.reader(spark)
    with set_all(spark, {"spark.sql.caseSensitive": sensitive}):
        frame = reader.frame(["N=0/a", "N=1/a"], reader.schema([]))
        assert sorted(row.n for row in frame.collect()) == [0, 1]


def test_what_spark_does_not_find_in_folders_is_not_taken_from_files(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HandMade(tmp_path / "t", {"n": "int"})
    path = table.put("n=1/a", pa.table({"n": pa.array([7], pa.int32())}))
    table.give("n=1/a", n="1")
    monkeypatch.setattr(files, "scans", lambda *_: [Scan((str(path),), Folders(str(path.parent), ("n",)))])
    reader = table.reader(spark)
    with pytest.raises(Unreadable, match="does not find n in the folders' names"):
        reader.frame(["n=1/a"], reader.schema([]))
