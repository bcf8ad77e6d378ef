"""Rows that are deleted from a table's files are in no bucket and no answer, and marked as any change."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import LongType

from mv_assets.errors import MvError
from mv_assets.maintain.audit import audit
from mv_assets.query.execute.answer import Answers, Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets_tests.support.lake import EPOCH, day
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.spark.read import nested
from mv_assets_tests.unit.spark.unchecked_lake import AT, UncheckedLake, daily, rows_at
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import deleted_by_library
from mv_assets_tests.unit.tables.iceberg import log as iceberg_log

Make = Callable[..., UncheckedLake]
SUMS = "SELECT date_trunc('day', at) AS hour, count(*) AS n, sum(x) AS x FROM events GROUP BY 1"
ALL = "committed"
# Of each day: how many rows, and their sum.
Days = dict[int, tuple[int, int]]


@pytest.fixture
def lake(unchecked_lake: Make) -> UncheckedLake:
    """A Delta table with a day in each of three files, with three rows."""
    made = unchecked_lake(daily(sql=SUMS), table={"format": "delta"})
    for number in range(3):
        add(made, number, [1, 2, 3])
    return made


def root_of(lake: UncheckedLake) -> Path:
    return lake.folder / "events"


def add(lake: UncheckedLake, number: int, values: list[int]) -> None:
    rows = rows_at([number] * len(values), x=pa.array(values, pa.int64()))
    write_deltalake(root_of(lake), rows, mode="append")


def vector(lake: UncheckedLake, number: int, *places: int) -> None:
    """Delete rows of the first file of a day."""
    log.with_vector(root_of(lake), log.deletion_vector(*places), file_of(lake, number))


def file_of(lake: UncheckedLake, number: int) -> str:
    paths = [str(each["path"]) for each in log.actions(root_of(lake), "add")]
    return next(path for path in paths if first_day(root_of(lake) / path) == number)


def first_day(file: Path) -> int:
    found: int = (pq.read_table(file)["at"][0].as_py() - EPOCH).days
    return found


def summed(rows: Sequence[dict[str, Any]]) -> Days:
    found: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        found[(row["at"] - EPOCH).days].append(row["x"])
    return {number: (len(values), sum(values)) for number, values in sorted(found.items())}


def as_deltalake_reads(lake: UncheckedLake) -> Days:
    root = root_of(lake)
    gone, rows = deleted_by_library(root), list[dict[str, Any]]()
    for path in pa.table(DeltaTable(root).get_add_actions())["path"].to_pylist():
        held = enumerate(pq.read_table(root / unquote(path)).to_pylist())
        rows += [row for at, row in held if at not in gone.get(unquote(path), ())]
    return summed(rows)


def stored(lake: UncheckedLake) -> Days:
    rows = lake.stored().to_pylist()
    return {(row["hour"] - EPOCH).days: (row["n"], row["x"]) for row in sorted(rows, key=lambda r: r["hour"])}


def audited(lake: UncheckedLake) -> set[str]:
    return {str(each.verdict) for each in audit(lake.open(), lake.catalog.view("v"), None)}


def test_119_a_vector_makes_its_files_buckets_stale_and_they_are_what_the_library_reads(
    lake: UncheckedLake,
) -> None:
    assert lake.outcomes() == {0: ALL, 1: ALL, 2: ALL}
    vector(lake, 1, 0, 2)
    lake.look()
    assert lake.states(0, 1, 2) == "VSV"
    assert lake.outcomes() == {1: ALL}
    assert stored(lake) == as_deltalake_reads(lake) == {0: (3, 6), 1: (1, 2), 2: (3, 6)}
    assert audited(lake) == {"equal"}


def test_120_a_vector_that_is_taken_back_reverts_its_buckets_without_a_job(lake: UncheckedLake) -> None:
    assert lake.outcomes() == {0: ALL, 1: ALL, 2: ALL}
    before, version = lake.snapshot().rows[DAY], DeltaTable(root_of(lake)).version()
    vector(lake, 1, 0, 2)
    lake.look()
    assert lake.states(0, 1, 2) == "VSV"
    DeltaTable(root_of(lake)).restore(version)
    assert lake.outcomes() == {1: "reverted"}
    assert lake.states(0, 1, 2) == "VVV"
    assert lake.snapshot().rows[DAY].generation == before.generation
    assert stored(lake) == as_deltalake_reads(lake)


@pytest.mark.parametrize("kind", ["inline", "relative", "absolute"])
def test_121_vectors_of_all_kinds_and_two_files_with_one_file_of_vectors(
    lake: UncheckedLake, kind: str
) -> None:
    lake.outcomes()
    vectors = (
        [log.deletion_vector(0), log.deletion_vector(0, 1)]
        if kind == "inline"
        else log.vector_file(root_of(lake), [0], [0, 1], absolute=kind == "absolute")
    )
    for number, each in enumerate(vectors):
        log.with_vector(root_of(lake), each, file_of(lake, number))
    assert lake.outcomes() == {0: ALL, 1: ALL}
    assert stored(lake) == as_deltalake_reads(lake) == {0: (2, 5), 1: (1, 3), 2: (3, 6)}


def test_124_deleted_rows_of_a_real_table_under_filters_that_prune_row_groups(unchecked_lake: Make) -> None:
    """A bucket's time and a view's condition both leave row groups out, and places stay those in the file."""
    lake = unchecked_lake(
        daily(sql=SUMS.replace("events", "events WHERE x % 5000 >= 1500")), table={"format": "delta"}
    )
    chance, each = random.Random(124), 5_000
    times = [day(at // each, 24 * (at % each) / each) for at in range(3 * each)]
    times[-1] = day(3, 0) - (day(3, 0) - times[-1]) / 1_000_000
    rows = pa.table({"at": pa.array(times, AT), "x": pa.array(range(3 * each), pa.int64())})
    write_deltalake(root_of(lake), rows.slice(0, 0))
    pq.write_table(rows, root_of(lake) / "f.parquet", row_group_size=500)
    first, last = (f"{at:%Y-%m-%dT%H:%M:%S.%f}Z" for at in (times[0], times[-1]))
    size = (root_of(lake) / "f.parquet").stat().st_size
    log.commit(root_of(lake), log.add("f.parquet", log.stats("at", first, last, 3 * each), size=size))
    gone = set(chance.sample(range(3 * each), 2_000))
    log.with_vector(root_of(lake), log.vector_file(root_of(lake), sorted(gone))[0])
    lake.outcomes()
    kept = [row for at, row in enumerate(rows.to_pylist()) if at not in gone and at % each >= 1_500]
    found = stored(lake)
    assert found == {number: summed(kept)[number] for number in found}
    assert len(found) >= 2
    assert audited(lake) == {"equal"}


@pytest.mark.parametrize("looked", [True, False], ids=["the vector was seen", "it was not"])
def test_125_optimize_of_a_table_with_vectors_computes_what_was_deleted_once_at_most(
    lake: UncheckedLake, *, looked: bool
) -> None:
    lake.outcomes()
    vector(lake, 1, 0, 2)
    if looked:
        assert lake.outcomes() == {1: ALL}
    DeltaTable(root_of(lake)).optimize.compact()
    assert len(pa.table(DeltaTable(root_of(lake)).get_add_actions())) == 1
    assert lake.outcomes() == ({} if looked else {1: ALL})
    assert lake.outcomes() == {}
    assert stored(lake) == as_deltalake_reads(lake) == {0: (3, 6), 1: (1, 2), 2: (3, 6)}
    assert audited(lake) == {"equal"}


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "is not there"),
    "damaged": (flip, "its checksum is another one"),
    "cut off": (lambda file: file.write_bytes(file.read_bytes()[:-3]), "should lie in"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_126_a_vector_that_can_not_be_read_fails_its_bucket_and_no_other(
    lake: UncheckedLake, how: str
) -> None:
    damage, said = DAMAGE[how]
    [one] = log.vector_file(root_of(lake), [0, 1])
    log.with_vector(root_of(lake), one, file_of(lake, 1))
    vector(lake, 2, 0)
    [file] = root_of(lake).glob("deletion_vector_*.bin")
    whole = file.read_bytes()
    damage(file)
    assert lake.outcomes() == {0: ALL, 1: "failed", 2: ALL}
    assert file.name in lake.failures()[1]
    assert said in lake.failures()[1]
    assert stored(lake) == {0: (3, 6), 2: (2, 5)}
    file.write_bytes(whole)
    lake.force(1)
    assert lake.outcomes() == {1: ALL}
    assert stored(lake) == as_deltalake_reads(lake)


def test_a_file_that_lost_rows_is_no_addition(lake: UncheckedLake) -> None:
    """Though another one came: what is stored has the lost rows."""
    add(lake, 3, list(range(5_000)))
    lake.outcomes()
    add(lake, 3, [10])
    vector(lake, 3, 4_999)
    assert lake.outcomes() == {3: ALL}
    assert stored(lake)[3] == (5_000, sum(range(4_999)) + 10)


def test_answers_and_audits_are_without_deleted_rows(lake: UncheckedLake) -> None:
    vector(lake, 0, 2)
    vector(lake, 2, 0, 1, 2)
    lake.outcomes()
    assert audited(lake) == {"equal"}
    answers = Answers(lake.open())
    for sql, expected in {
        "SELECT count(*) FROM events": [(5,)],
        "SELECT max(x) FROM events WHERE at < TIMESTAMP '1970-01-02 00:00:00Z'": [(2,)],
        "SELECT count(*), sum(x) FROM events WHERE at >= TIMESTAMP '1970-01-01 00:00:00Z'": [(5, 9)],
    }.items():
        for freshness in (Freshness.STRICT, Freshness.OFF):
            found = answers.answer(Question(sql, freshness)).frame.collect()
            assert [tuple(row) for row in found] == expected


def test_a_file_under_two_names_is_read_by_nobody(lake: UncheckedLake) -> None:
    """Its rows would count twice."""
    root = lake.folder / "events"
    [file, *_] = log.actions(root, "add")
    log.commit(root, {"add": file | {"path": f"file://{root}/{file['path']}"}})
    assert lake.outcomes() == {0: "failed", 1: ALL, 2: ALL}
    assert "is listed under two names" in lake.failures()[0]


# Iceberg


class Iceberg:
    """A table with a day in each of three files, some of it written by hand; and a view on it."""

    def __init__(self, lake: UncheckedLake, catalog: SqlCatalog, by: str | None = None) -> None:
        self.lake, self._catalog = lake, catalog
        self.root = root_of(lake)
        schema = pa.schema({"at": AT, "x": pa.int64(), "k": pa.int32(), "p": pa.string()})
        self.table: Table = nested.iceberg(catalog, self.root, 2, by=by, schema=schema)
        for number in range(3):
            self.append(number, "p")
        lake.outcomes()

    def append(self, number: int, part: str, *values: int) -> None:
        """Rows of a day, with x and k 1 to 3 unless others are given."""
        given = values or (1, 2, 3)
        keys = {"x": pa.array(given, pa.int64()), "k": pa.array(given, pa.int32())}
        rows = rows_at([number] * len(given), **keys, p=pa.array([part] * len(given)))
        # In the table's present schema.
        self.table.append(pa.Table.from_pylist(rows.to_pylist(), self.table.schema().as_arrow()))

    def path(self, number: int) -> str:
        tasks = StaticTable.from_metadata(str(iceberg_log.newest(self.root))).scan().plan_files()
        files = {task.file.file_path for task in tasks}
        return next(file for file in sorted(files) if first_day(Path(file.removeprefix("file://"))) == number)

    def commit(self, *files: Any, **how: Any) -> None:
        iceberg_log.commit(self.root, *files, **how)
        self._catalog.drop_table("db.events")
        self.table = self._catalog.register_table("db.events", f"file://{iceberg_log.newest(self.root)}")

    def places(self, name: str, *places: tuple[str, int], **more: Any) -> Any:
        return iceberg_log.position_deletes(self.root / name, *places, **more)

    def equal(self, name: str, ids: dict[str, int], rows: pa.Table, **more: Any) -> Any:
        return iceberg_log.equality_deletes(self.root / name, rows, ids, **more)

    def by_library(self) -> Days:
        return summed(
            StaticTable.from_metadata(str(iceberg_log.newest(self.root))).scan().to_arrow().to_pylist()
        )


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    with nested.catalog(tmp_path) as opened:
        yield opened


@pytest.fixture
def iceberg(unchecked_lake: Make, catalog: SqlCatalog) -> Callable[..., Iceberg]:
    def make(by: str | None = None) -> Iceberg:
        table = {"format": "iceberg", "unsafe": True}
        return Iceberg(unchecked_lake(daily(sql=SUMS), table=table), catalog, by)

    return make


def test_122_position_deletes_of_a_file_and_of_a_partition_and_vectors_that_replace_them(
    iceberg: Callable[..., Iceberg],
) -> None:
    made = iceberg("p")
    lake, part = made.lake, {"partition": ("p",)}
    paths = [made.path(number) for number in range(3)]
    made.commit(made.places("one.parquet", (paths[1], 0), **part))
    assert lake.outcomes() == {1: ALL}
    assert stored(lake) == made.by_library() == {0: (3, 6), 1: (2, 5), 2: (3, 6)}
    # One file of deletes for the whole partition.
    ends = sorted((paths[0], paths[2]))
    both = made.places("some.parquet", (ends[0], 1), (ends[1], 2), **part, lower_bounds=None)
    made.commit(both)
    lake.outcomes()
    assert stored(lake) == made.by_library()
    assert sum(count for count, _ in stored(lake).values()) == 6
    # A vector has what was deleted by places, or it is there again: here it is not.
    vectors = iceberg_log.vectors(made.root / "v.puffin", {paths[1]: [1, 2]}, **part)
    made.commit(*vectors)
    assert lake.outcomes() == {1: ALL}
    assert stored(lake)[1] == (1, 1)
    assert audited(lake) == {"equal"}


def test_122_a_rollback_of_deletes_reverts_without_a_job(iceberg: Callable[..., Iceberg]) -> None:
    made = iceberg()
    before = made.table.current_snapshot()
    assert before is not None
    made.commit(made.places("one.parquet", (made.path(1), 0)))
    made.lake.look()
    assert made.lake.states(0, 1, 2) == "VSV"
    made.table.manage_snapshots().create_branch(before.snapshot_id, "main").commit()
    assert made.lake.outcomes() == {1: "reverted"}
    assert stored(made.lake) == made.by_library()


def test_123_equality_deletes_hit_older_rows_only(iceberg: Callable[..., Iceberg]) -> None:
    made = iceberg()
    ids = {"x": 2}
    made.commit(made.equal("d.parquet", ids, pa.table({"x": [2]})))
    made.append(1, "p", 2, 2)
    assert made.lake.outcomes() == {0: ALL, 1: ALL, 2: ALL}
    # Of day 1: 1 and 3, and two newer rows of the deleted value.
    assert stored(made.lake) == {0: (2, 4), 1: (4, 8), 2: (2, 4)}
    made.commit(made.equal("e.parquet", ids, pa.table({"x": [2, 3]})))
    made.lake.outcomes()
    assert stored(made.lake) == {0: (1, 1), 1: (1, 1), 2: (1, 1)}
    assert audited(made.lake) == {"equal"}


def test_123_equality_deletes_find_what_they_compare_by_field_id(iceberg: Callable[..., Iceberg]) -> None:
    """The compared column is widened and renamed, another takes its name, and then it is dropped."""
    made = iceberg()
    one = pa.table({"k": pa.array([1], pa.int32())})
    made.commit(made.equal("d.parquet", {"k": 3}, one))
    expected = dict.fromkeys(range(3), (2, 5))
    made.lake.outcomes()
    assert stored(made.lake) == expected
    with made.table.update_schema() as change:
        change.update_column("k", LongType()).rename_column("k", "was_k")
    with made.table.update_schema() as change:
        change.add_column("k", LongType())
    for number in range(3):
        made.lake.force(number)
    assert made.lake.outcomes() == dict.fromkeys(range(3), ALL)
    assert stored(made.lake) == expected
    with made.table.update_schema() as change:
        change.delete_column("was_k")
    # Newer rows don't have the column at all.
    made.append(1, "p", 1, 1)
    assert made.lake.outcomes() == {1: ALL}
    assert stored(made.lake) == {**expected, 1: (4, 7)}
    made.lake.force(0)
    assert made.lake.outcomes() == {0: ALL}
    assert stored(made.lake) == {**expected, 1: (4, 7)}
    assert audited(made.lake) == {"equal"}


def test_123_partition_values_are_compared_and_bound_where_deletes_reach(
    iceberg: Callable[..., Iceberg],
) -> None:
    made = iceberg("p")
    made.append(1, "q")
    rows = pa.table({"p": ["p", "q"], "x": pa.array([1, 1], pa.int64())})
    made.commit(made.equal("d.parquet", {"p": 4, "x": 2}, rows, partition=("q",)))
    assert made.lake.outcomes() == {1: ALL}
    assert stored(made.lake) == {0: (3, 6), 1: (5, 11), 2: (3, 6)}
    with made.table.update_spec() as change:
        change.remove_field("p")
    # Without a partition it is for all files, which still have their values of p.
    spec = made.table.spec().spec_id
    made.commit(made.equal("e.parquet", {"p": 4, "x": 2}, rows.slice(0, 1)), spec_id=spec)
    made.lake.outcomes()
    assert stored(made.lake) == {0: (2, 5), 1: (4, 10), 2: (2, 5)}
    assert audited(made.lake) == {"equal"}


@pytest.mark.parametrize("kind", ["places", "vector", "equal"])
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_126_deletes_of_iceberg_that_can_not_be_read_fail_their_buckets_and_no_other(
    iceberg: Callable[..., Iceberg], kind: str, how: str
) -> None:
    made = iceberg("p")
    made.append(1, "q")
    assert made.lake.outcomes() == {1: ALL}
    before = stored(made.lake)
    path = next(
        task.file.file_path for task in made.table.scan().plan_files() if "p=q" in task.file.file_path
    )
    part = {"partition": ("q",)}
    file = made.root / ("d.puffin" if kind == "vector" else "d.parquet")
    if kind == "equal":
        made.commit(made.equal(file.name, {"x": 2}, pa.table({"x": [1]}), **part))
    elif kind == "vector":
        made.commit(*iceberg_log.vectors(file, {path: [0]}, **part))
    else:
        made.commit(made.places(file.name, (path, 0), **part))
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:20] + b"\xff" * (file.stat().st_size - 20))
    assert made.lake.outcomes() == {1: "failed"}
    assert file.name in made.lake.failures()[1]
    assert made.lake.states(0, 1, 2) == "VSV"
    assert {number: each for number, each in before.items() if number != 1} == stored(made.lake)


@pytest.mark.parametrize("times", [[0, 0], [None, None]])
def test_rows_of_which_nobody_can_tell_whether_they_are_deleted_are_in_no_answer(
    unchecked_lake: Make, times: list[int | None]
) -> None:
    """Nor those that belong to no bucket."""
    made = unchecked_lake(daily(sql=SUMS), table={"format": "iceberg", "unsafe": True})
    root = made.folder / "events"
    schema = pa.schema({"at": AT, "x": pa.int64(), "weight": pa.float64()})
    with nested.catalog(made.folder) as catalog:
        table = nested.iceberg(catalog, root, 2, schema=schema)
        table.append(rows_at(times, x=pa.array([1, 2]), weight=pa.array([0.5, 0.0])))
    gone = pa.table({"weight": [-0.0]})
    iceberg_log.commit(root, iceberg_log.equality_deletes(made.folder / "gone.parquet", gone, {"weight": 3}))
    made.outcomes()
    for sql in ("SELECT count(*) FROM events", "SELECT max(x) FROM events WHERE x < 3"):
        for freshness in (Freshness.STRICT, Freshness.OFF):
            with pytest.raises(MvError, match="tells rows by a column of type double"):
                Answers(made.open()).answer(Question(sql, freshness))
