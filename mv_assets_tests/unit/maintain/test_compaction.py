"""Compaction: the same rows in fewer bytes and fewer files, whatever else happens meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.buckets import DAY
from mv_assets.maintain import compaction
from mv_assets.maintain import copies as copying
from mv_assets.maintain.copies import Source, copyable, portions, shape_of
from mv_assets.maintain.errors import Miscounted
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import BUCKET, GenerationState, State
from mv_assets_tests.support.lake import HOURLY, day, through, view
from mv_assets_tests.support.warehouse_lake import GRACE, DuckDbLake, WarehouseLake

DuckDbLakes = Callable[..., DuckDbLake]
EVERY = "SELECT at AS hour, x FROM events"


class Crash(Exception):
    """The process ends here."""


def rows(made: DuckDbLake, name: str = "v") -> list[str]:
    return sorted(map(repr, made.stored(name, only_valid=False).to_pylist()))


def times(number: int, count: int) -> list[datetime]:
    """Times of a day, to its end."""
    return [day(number, 0) + timedelta(seconds=7 * n) for n in range(count - 2)] + through(number)


def mostly_dead(made: DuckDbLake, days: int = 5) -> str:
    """One generation of some days, of which only the last two, without the one before, still name it."""
    made.days(*range(days))
    made.run()
    named = made.named()[0]
    assert named is not None
    assert set(made.named().values()) == {named}
    made.overwrite(*range(days - 2))
    made.later()
    return named


def test_a_mostly_dead_generation_is_rewritten_and_its_rows_are_the_same(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    dead = mostly_dead(made)
    before, content = rows(made), made.data(4).content
    report = made.gc()
    ((bundle, size),) = report.compacted
    assert (bundle.generations, size) == ((dead,), made.plain.size("v", made.named()[4] or ""))
    assert report.deleted[dead] == bundle.bytes > bundle.live_bytes
    assert made.named()[3] == made.named()[4] != dead
    assert (made.data(4).content, made.data(4).state) == (content, State.VALID)
    assert rows(made) == before
    made.check()


def test_a_generation_that_is_half_alive_is_left_alone(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(0, 1)
    made.run()
    named = made.named()[1]
    made.overwrite(0)
    made.later()
    assert made.gc().compacted == []
    assert made.named()[1] == named


def test_a_gc_with_nothing_to_do_writes_nothing(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    mostly_dead(made)
    made.gc()
    made.later(DAY)
    made.gc()
    before = made.everything()
    made.gc()
    assert made.everything() == before


def test_buckets_without_rows_keep_no_generation_alive(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake(view(sql="SELECT at AS hour, x FROM events WHERE x <> 1"))
    made.days(0, 1)
    made.run()
    dead = made.named()[1]
    made.overwrite(0)
    made.later()
    assert made.data(1).rows == 0
    made.gc()
    assert dead not in made.folders()
    assert (made.data(1).state, made.data(1).rows) == (State.VALID, 0)
    assert made.files(1) == []
    made.check()


def test_rows_of_an_earlier_definition_are_kept_and_compacted(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    made.days(*range(6))
    made.run()
    dead, before = made.named()[5], rows(made)
    made.overwrite(0, 1, 2)
    made.later()
    made.declare(view(sql=HOURLY.replace("count(*)", "max(x)")))
    made.run_only(0)
    made.later()
    assert len(made.gc().compacted) == 1
    assert made.state(5) is State.STALE
    kept = [text for text in before if "1970, 1, 6" in text]
    assert [text for text in rows(made) if "1970, 1, 6" in text and "'n': 1" in text] == kept != []
    assert dead not in made.folders()


class Interrupted(Warehouse):
    """While the copy is written, something else happens."""

    happening: Callable[[], object]

    def create(self, path: str) -> pa.NativeFile:
        happening, Interrupted.happening = Interrupted.happening, lambda: None
        happening()
        return super().create(path)


def test_86_an_overwrite_that_commits_while_its_bucket_is_copied_wins(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    dead = mostly_dead(made)
    Interrupted.happening = lambda: made.overwrite(4)
    report = made.garbage(Interrupted(made.plain.root)).gc("v")
    assert report.errors == []
    assert [bundle.generations for bundle, _ in report.compacted] == [(dead,)]
    copy, newer = made.named()[3], made.named()[4]
    assert len({dead, copy, newer}) == 3
    made.later()
    made.gc()
    made.check()


def test_86_a_copy_that_every_row_has_moved_on_from_is_garbage(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    mostly_dead(made)
    Interrupted.happening = lambda: made.overwrite(3, 4)
    assert made.garbage(Interrupted(made.plain.root)).gc("v").compacted == []
    made.later()
    made.gc()
    assert made.folders() == set(made.named().values())
    made.check()


def test_a_view_that_is_dropped_while_it_is_copied_stays_dropped(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    mostly_dead(made)
    Interrupted.happening = lambda: made.manager.drop("v")
    assert made.garbage(Interrupted(made.plain.root)).gc("v").errors == []
    assert made.named() == {}
    made.later()
    made.gc()
    assert made.folders() == set()


def test_a_new_definition_while_maps_are_read_leaves_the_copy_for_the_next_gc(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = duckdb_lake()
    mostly_dead(made)
    register = PartitionManager.register

    def late(self: PartitionManager, *given: Any) -> None:
        monkeypatch.undo()
        made.declare(view(sql=HOURLY.replace("count(*)", "max(x)")))
        made.look()
        register(self, *given)

    monkeypatch.setattr(PartitionManager, "register", late)
    assert made.gc().compacted == []
    assert len(made.gc().compacted) == 1


@pytest.mark.parametrize("abandoned", [True, False], ids=["an error", "a killed process"])
def test_a_crash_between_copy_and_repoint_is_finished_by_the_next_gc(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch, *, abandoned: bool
) -> None:
    made = duckdb_lake()
    dead = mostly_dead(made)
    before, folders = rows(made), made.folders()

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(PartitionManager, "repoint", crash)
        if not abandoned:
            patch.setattr(PartitionManager, "abandon", lambda *_: None)
        with pytest.raises(Crash):
            made.gc()
    (copy,) = made.folders() - folders
    assert made.registered()[copy].state is (GenerationState.DEAD if abandoned else GenerationState.STAGED)
    assert made.named()[4] == dead
    made.later()
    report = made.gc()
    assert {copy, dead} <= report.deleted.keys()
    assert made.folders() == set(made.named().values())
    assert rows(made) == before


def tampered(
    made: DuckDbLake, generation: str | None, change: Callable[[pa.Table], pa.Table] | None, **written: Any
) -> None:
    assert generation is not None
    (path,) = (made.folder / "warehouse" / "v" / generation).glob("*.parquet")
    table = pq.read_table(path)
    path.unlink()
    if change is not None:
        pq.write_table(change(table), path, **written)


def test_a_generation_that_lost_rows_is_not_copied_and_it_is_said(duckdb_lake: DuckDbLakes) -> None:
    made = duckdb_lake()
    dead = mostly_dead(made)
    tampered(made, dead, lambda table: table.slice(0, table.num_rows - 1))
    report = made.garbage().gc("v")
    (error,) = report.errors
    assert isinstance(error, Miscounted)
    assert "holds 1 rows of bucket 1970-01-05T00:00:00Z, recorded are 2" in str(error)
    assert "mv-assets audit v --all" in str(error)
    assert made.named()[4] == dead
    made.manager.drop("v")


def test_a_generation_whose_file_is_gone_is_said_and_the_others_are_compacted(
    duckdb_lake: DuckDbLakes,
) -> None:
    made = duckdb_lake()
    first = mostly_dead(made)
    made.days(*range(5, 10))
    made.run()
    second = made.named()[9]
    made.overwrite(5, 6, 7)
    made.later()
    tampered(made, first, None)
    report = made.garbage().gc("v")
    (error,) = report.errors
    assert isinstance(error, WarehouseUnusable)
    assert [bundle.generations for bundle, _ in report.compacted] == [(second,)]
    assert made.named()[4] == first
    made.manager.drop("v")


def test_many_small_generations_become_one(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite()
    for number in range(33):
        made.days(number)
        made.run()
        if number == 31:
            made.later()
            assert made.gc().compacted == []
    before = rows(made)
    made.later()
    ((bundle, _),) = made.gc().compacted
    assert len(bundle.generations) == 33
    assert len(made.folders()) == 1
    (file,) = made.files(0)
    assert file.read([BUCKET])[BUCKET].to_pylist() == sorted([*range(0, 33 * DAY, DAY)] * 2)
    assert rows(made) == before
    made.check()


def test_generations_of_other_columns_are_not_merged(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite()
    made.days(*range(70))
    for number in range(35):
        made.run_only(number)
    made.declare(view(sql=HOURLY.replace(" AS n", " AS n, max(x) AS most")))
    for number in range(35, 70):
        made.run_only(number)
    made.later()
    before = rows(made)
    assert sorted(len(bundle.generations) for bundle, _ in made.gc().compacted) == [35, 35]
    assert made.named()[0] != made.named()[69]
    assert {name: len(made.files(name)[0].schema_arrow) for name in (0, 69)} == {0: 3, 69: 4}
    assert rows(made) == before


def test_only_small_generations_of_one_shape_that_a_copy_keeps_are_merged(
    duckdb_lake_on_sqlite: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_MANY", 2)
    made = duckdb_lake_on_sqlite()
    for number in range(6):
        made.days(number)
        made.run()
    named = made.named()
    tampered(made, named[0], lambda table: table, use_deprecated_int96_timestamps=True)
    for number in (1, 2):
        tampered(made, named[number], lambda table: table.append_column("more", table["n"]))
    report = made.gc()
    assert [set(bundle.generations) for bundle, _ in report.compacted] == [{named[3], named[4], named[5]}]
    assert report.kept == [named[0]]
    assert [made.named()[number] for number in range(3)] == [named[number] for number in range(3)]
    made.manager.drop("v")


def test_row_groups_that_do_not_tell_their_buckets_are_copied_too(duckdb_lake_on_sqlite: DuckDbLakes) -> None:
    made = duckdb_lake_on_sqlite()
    dead = mostly_dead(made)
    before = rows(made)
    tampered(made, dead, lambda table: table, write_statistics=False)
    assert len(made.gc().compacted) == 1
    assert made.named()[4] != dead
    assert rows(made) == before


@pytest.mark.slow
def test_space_stays_bounded_however_often_buckets_are_computed_again(
    duckdb_lake_on_sqlite: DuckDbLakes,
) -> None:
    made = duckdb_lake_on_sqlite(view(sql=EVERY))
    for number in range(10):
        made.write(f"{number}.parquet", times(number, 2_000))
    made.run()
    fresh, chance = made.used(), random.Random(4)
    for turn in range(20):
        for number in chance.sample(range(10), 4):
            made.write(f"late-{number}-{turn}.parquet", [day(number)], turn)
        made.run()
        made.later()
        made.gc()
        live = sum(row.bytes for row in made.snapshot().rows.values())
        assert made.used() <= 2 * live + 100
        assert made.used() <= 3 * fresh
    made.later(DAY)
    made.gc()
    assert set(made.registered()) == made.folders() == set(made.named().values())
    made.check()


def test_large_copies_are_cut_into_row_groups_and_files_that_stay_in_order(
    duckdb_lake: DuckDbLakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_BATCH_ROWS", 7)
    monkeypatch.setattr(copying, "_GROUP_ROWS", 50)
    monkeypatch.setattr(copying, "_FILE_BYTES", 2_000)
    made = duckdb_lake(view(sql=EVERY))
    for number in range(8):
        made.write(f"{number}.parquet", times(number, 100))
    made.run()
    made.overwrite(*range(5))
    made.later()
    before = rows(made)
    made.gc()
    files = made.files(7)
    assert len(files) > 1
    assert all(
        file.metadata.row_group(at).num_rows <= 56 for file in files for at in range(file.num_row_groups)
    )
    found = [bucket for file in files for bucket in file.read([BUCKET])[BUCKET].to_pylist()]
    assert found == sorted(found)
    assert rows(made) == before


RICH = """
    SELECT date_trunc('hour', at) AS hour, at AS exact, CAST(at AS timestamp_ntz) AS local,
      CAST(at AS date) AS on_day, CAST(x AS tinyint) AS tiny, CAST(x AS decimal(9, 2)) AS small,
      CAST(x AS decimal(18, 3)) AS medium, CAST(-x AS decimal(38, 10)) AS large,
      CAST(x AS double) / 3 AS third, encode(CAST(x AS string), 'UTF-8') AS raw, CAST(x AS float) AS single,
      array(x, NULL) AS list, map('k', x) AS keyed,
      named_struct('a', x, 'b', array(at)) AS nested, make_dt_interval(CAST(x AS int)) AS took,
      make_ym_interval(CAST(x AS int)) AS lasted, IF(x > 2, NULL, 'é') AS word
    FROM events
"""
RICH_IN_DUCKDB = """
    SELECT date_trunc('hour', "at") AS hour, "at" AS exact, CAST("at" AS timestamp) AS local,
      CAST("at" AS date) AS on_day, CAST(x AS tinyint) AS tiny, CAST(x AS decimal(9, 2)) AS small,
      CAST(x AS decimal(18, 3)) AS medium, CAST(-x AS decimal(38, 10)) AS large,
      CAST(x AS double) / 3 AS third, encode(CAST(x AS varchar)) AS raw, CAST(x AS float) AS single,
      [x, NULL] AS list, MAP {'k': x} AS keyed, {'a': x, 'b': ["at"]} AS nested, x * 86400000000 AS took,
      CAST(12 * x AS int) AS lasted, CASE WHEN x > 2 THEN NULL ELSE 'é' END AS word
    FROM events
"""


def test_what_spark_wrote_is_copied_to_the_bit_and_spark_reads_it(
    spark_warehouse_lake: Callable[..., WarehouseLake],
) -> None:
    upon = (
        "SELECT date_trunc('day', hour) AS hour, sum(large) AS large, max(exact) AS last FROM v GROUP BY ALL"
    )
    made = spark_warehouse_lake(
        view(sql=RICH), view("daily", base="v", sql=upon), oracle={"v": RICH_IN_DUCKDB}
    )
    made.days(*range(5))
    made.run("v")
    shape = shape_of(made.files(4)[0])
    for number in range(3):
        made.write(f"late-{number}.parquet", [day(number)], 9)
    made.run("v")
    made.later(GRACE)
    before = made.stored().sort_by([("exact", "ascending"), ("tiny", "ascending")])
    dead = made.named()[4]
    ((bundle, _),) = made.gc().compacted
    assert bundle.generations == (dead,)
    assert dead not in made.folders()
    assert made.stored().sort_by([("exact", "ascending"), ("tiny", "ascending")]).equals(before)
    assert [shape_of(file) for file in made.files(4)] == [shape]
    made.run()
    made.check()


def test_a_type_that_arrow_does_not_keep_is_not_copied(tmp_path: Path) -> None:
    times = pa.table({"at": pa.array([day(1)], pa.timestamp("us", "UTC")), BUCKET: [DAY]})
    pq.write_table(times, tmp_path / "micros.parquet")
    pq.write_table(times, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    assert copyable(pq.ParquetFile(tmp_path / "micros.parquet"))
    assert not copyable(pq.ParquetFile(tmp_path / "int96.parquet"))


def test_a_file_without_buckets_is_not_copied(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    assert not copyable(pq.ParquetFile(tmp_path / "other.parquet"))


def test_no_more_is_open_together_than_fits_and_what_is_large_is_open_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copying, "SMALL_BYTES", 5)
    monkeypatch.setattr(copying, "_TOGETHER_BYTES", 9)
    monkeypatch.setattr(copying, "_TOGETHER_FILES", 3)
    together = portions([1, 5, 4, 6, 2, 1, 1], lambda size: (1, size))
    assert list(together) == [[1, 5], [6], [4, 2, 1], [1]]


def test_a_copy_does_not_let_readers_skip_what_is_not_a_number(tmp_path: Path) -> None:
    """It is no bound of a column to Arrow, and greater than all else to Spark and DuckDB."""
    numbers = [1.0, float("nan")]
    held = {"x": numbers, "inside": [{"y": [each]} for each in numbers], "n": [1, 2], BUCKET: [0, 0]}
    original, copied = tmp_path / "original.parquet", tmp_path / "copied.parquet"
    pq.write_table(pa.table(held), original, write_statistics=["n", BUCKET])
    source = Source(str(original), original.stat().st_size, [0])
    copying.copy([source], pa.OSFile, lambda _number: pa.OSFile(str(copied), "wb"))
    group = pq.read_metadata(copied).row_group(0)
    told = {(column := group.column(at)).path_in_schema: column.is_stats_set for at in range(4)}
    assert told == {"x": False, "inside.y.list.element": False, "n": True, BUCKET: True}
    for path in (original, copied):
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT n FROM '{path}' WHERE x > 10").fetchall()
        assert found == [(2,)]
