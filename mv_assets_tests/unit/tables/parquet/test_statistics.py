"""Where rows lie that can't be read: what footers state, asked for in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from mv_assets.state.store import Store, schema
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.inventory import Inventory, Known
from mv_assets.tables.parquet import statistics
from mv_assets.tables.parquet.footer import DamagedPages, Footer, extent, stated_range
from mv_assets.tables.parquet.statistics import stated_ranges
from mv_assets.tables.times import TimeColumn, Unit
from mv_assets_tests.unit.tables.delta.test_table import without_stats
from mv_assets_tests.unit.tables.lake import DAY, TS, Lake, content, put, ranges, spoiled, table_content

INT96: Any = {"use_deprecated_int96_timestamps": True}


def footer_of(data: bytes, time: TimeColumn = TS) -> Footer:
    """What a look has of a file whose pages it could not read."""
    with pytest.raises(DamagedPages) as damaged:
        extent(pa.BufferReader(spoiled(data)), time)
    return damaged.value.footer


def stated(
    *values: Any, kind: pa.DataType, unit: Unit | None = None, **options: Any
) -> tuple[int, int] | None:
    return stated_range(footer_of(content(*values, kind=kind, **options), TimeColumn("ts", unit)))


@pytest.mark.parametrize(
    ("values", "kind", "unit"),
    [
        ((3, 7), pa.timestamp("ms"), None),
        ((-1, 1_999), pa.timestamp("us", "UTC"), None),
        ((-1, 1_999_999), pa.timestamp("ns"), None),
        ((date(1969, 12, 31), date(1970, 1, 2)), pa.date32(), None),
        ((-5, 90), pa.int8(), "s"),
        ((-5, 5_000), pa.int64(), "us"),
        ((1, 2**32 - 1), pa.uint32(), "s"),
        ((1, 2**63 + 5), pa.uint64(), "ns"),
        ((2**62,), pa.timestamp("ms"), None),
        ((4, None, 2), pa.timestamp("ms"), None),
    ],
)
def test_a_footer_states_the_range_that_the_rows_have(
    values: tuple[Any, ...], kind: pa.DataType, unit: Unit | None
) -> None:
    whole = extent(pa.BufferReader(content(*values, kind=kind)), TimeColumn("ts", unit))
    assert stated(*values, kind=kind, unit=unit) == whole.range is not None


def test_all_row_groups_count_and_those_of_nulls_alone_lie_nowhere() -> None:
    assert stated(5, 9, None, 1, kind=pa.timestamp("ms"), row_group_size=1) == (1, 9)


@pytest.mark.parametrize(
    ("values", "options"),
    [((1, 2), {"write_statistics": False}), ((1, 2), INT96), ((None, None), {})],
    ids=["no statistics", "INT96", "nulls alone"],
)
def test_a_footer_that_does_not_say_so_states_no_range(values: tuple[Any, ...], options: Any) -> None:
    assert stated(*values, kind=pa.timestamp("us"), **options) is None


def test_statistics_of_some_row_groups_are_no_range_of_the_file() -> None:
    made = pa.BufferOutputStream()
    rows = pa.table({"ts": pa.array([1], pa.timestamp("ms"))})
    # A writer that gives up on statistics halfway: of the second row group there are none.
    with pq.ParquetWriter(made, rows.schema) as writer:
        writer.write_table(rows)
    whole = made.getvalue().to_pybytes()
    first = pq.read_metadata(pa.BufferReader(whole))
    second = pq.read_metadata(pa.BufferReader(content(9, write_statistics=False)))
    first.append_row_groups(second)
    said = pa.BufferOutputStream()
    first.write_metadata_file(said)
    data = said.getvalue().to_pybytes()
    length = int.from_bytes(data[-8:-4], "little") + 8
    assert stated_range(Footer(data[-length:], TS)) is None


def test_times_that_spark_would_move_are_where_nobody_knows() -> None:
    rows = pa.table({"ts": pa.array([-2_208_988_800_000_001, 0], pa.timestamp("us", "UTC"))})
    old = rows.replace_schema_metadata({"org.apache.spark.version": "2.4.8"})
    assert stated_range(footer_of(table_content(old))) is None
    assert stated_range(footer_of(table_content(rows))) is not None


def test_only_files_with_damaged_pages_are_asked_about(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []
    really = stated_ranges

    def noted(footers: Any) -> Any:
        asked.append(set(footers))
        return really(footers)

    monkeypatch.setattr(statistics, "stated_ranges", noted)
    lake.write("good.parquet", 1)
    lake.damage("noise.parquet")
    put(lake.root / "other.parquet", content(1, column="other"))
    put(lake.root / "bad.parquet", spoiled(content(3, 7)))
    lake.look()
    lake.look()
    assert [names for names in asked if names] == [{"bad.parquet"}]


def test_130_a_new_file_with_damaged_pages_lies_where_its_footer_says(lake: Lake) -> None:
    lake.write("good.parquet", 1)
    file = put(lake.root / "bad.parquet", spoiled(content(3, 7)))
    for _ in range(2):
        found = lake.look()
        assert ranges(found) == {"good.parquet": (1, 1), "bad.parquet": (3, 7)}
        assert "can't be read as Parquet" in found.broken["bad.parquet"].why
        assert (found.unplaced, found.unread) == ([], set())
    put(file, content(3, 7))
    assert lake.look().broken == {}


def test_130_a_file_that_is_too_large_to_be_kept_in_memory_is_asked_as_well(lake: Lake) -> None:
    times = pa.array([3, 7], pa.timestamp("ms"))
    noise = [bytes([number]) * (3 << 20) for number in (1, 2)]
    rows = pa.table({"ts": times, "x": pa.array(noise, pa.binary())})
    data = table_content(rows, compression="none", use_dictionary=False)
    assert len(data) > 4 << 20
    put(lake.root / "a.parquet", spoiled(data))
    assert ranges(lake.look()) == {"a.parquet": (3, 7)}


def test_130_a_file_that_was_replaced_lies_where_it_was_and_where_its_footer_says(lake: Lake) -> None:
    file = lake.write("a.parquet", 3 * DAY)
    lake.look()
    put(file, spoiled(content(5 * DAY)))
    assert ranges(lake.look()) == {"a.parquet": (3 * DAY, 5 * DAY)}


def test_130_a_file_in_a_dated_folder_lies_where_the_folder_says(lake: Lake) -> None:
    # The time column is the folder's: the pages are not read, and nobody is asked.
    put(lake.root / "day=1970-01-02" / "a.parquet", spoiled(content(1, column="x"), "x"))
    found = lake.look(TimeColumn("day"))
    assert ranges(found) == {"day=1970-01-02/a.parquet": (DAY, 2 * DAY - 1)}


def test_130_a_file_in_a_folder_of_something_else_is_asked(lake: Lake) -> None:
    put(lake.root / "zone=3" / "a.parquet", spoiled(content(3, 7)))
    assert ranges(lake.look()) == {"zone=3/a.parquet": (3, 7)}


@pytest.mark.parametrize(("seconds", "kind"), [(True, pa.int64()), (False, pa.date32())])
def test_130_integers_and_dates_are_taken_as_the_table_declares_them(
    lake: Lake, kind: pa.DataType, *, seconds: bool
) -> None:
    put(lake.root / "a.parquet", spoiled(content(2, kind=kind)))
    found = lake.look(TimeColumn("ts", "s" if seconds else None))
    assert ranges(found) == {"a.parquet": (2_000, 2_999) if seconds else (2 * DAY, 3 * DAY - 1)}


def test_a_file_that_was_known_before_footers_were_asked_is_read_once_more(lake: Lake) -> None:
    file = put(lake.root / "a.parquet", spoiled(content(3, 7)))
    assert lake.database is not None
    table = lake.table()
    [identity] = table.current().walk.identities
    table.inventory.save({file.name: Known(identity, 1, None, None, error="it can't be read")})
    assert len(lake.look().unplaced) == 1
    with lake.database.write() as connection:
        schema.MIGRATIONS[4](connection)
    assert ranges(lake.look()) == {"a.parquet": (3, 7)}


def test_files_of_a_log_without_statistics_are_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, store = tmp_path / "t", Store(f"sqlite:///{tmp_path}/state.db")
    starts: list[int] = []
    really = subprocess.run

    def counted(*given: Any, **options: Any) -> Any:
        starts.append(1)
        return really(*given, **options)

    monkeypatch.setattr("mv_assets.tables.parquet.statistics.subprocess.run", counted)
    for day in (1, 2, 3):
        write_deltalake(root, pa.table({"ts": pa.array([day], pa.date32())}), mode="append")
    without_stats(root)
    for file in root.glob("*.parquet"):
        put(file, spoiled(file.read_bytes()))
    for _ in range(2):
        table = DeltaFiles("t", str(root), TS, Inventory(store.database, "t"), lambda: 10**12, 1_000)
        found = table.current().listing()
        assert sorted(ranges(found).values()) == [(n * DAY, (n + 1) * DAY - 1) for n in (1, 2, 3)]
        assert len(found.broken) == 3
    assert len(starts) == 1
    store.close()


DIES = """
import os, sys
from mv_assets.tables.parquet.footer import Footer, stated_range
from mv_assets.tables.times import TimeColumn

content = sys.stdin.buffer.read()
for flipped in range(8 * len(content)):
    damaged = bytearray(content)
    damaged[flipped // 8] ^= 1 << flipped % 8
    child = os.fork()
    if not child:
        os.close(2)
        stated_range(Footer(bytes(damaged), TimeColumn("ts")))
        os._exit(0)
    if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        print(bytes(damaged).hex())
        break
"""


def killing_footer() -> Footer:
    """A footer over whose statistics Arrow ends the process: one bit is another."""
    done = subprocess.run(  # noqa: S603 - our own source
        [sys.executable, "-c", DIES], input=footer_of(content(3, 7)).content, capture_output=True, check=True
    )
    return Footer(bytes.fromhex(done.stdout.decode()), TS)


@pytest.mark.processes
def test_a_footer_that_kills_who_asks_it_states_nothing_and_harms_no_other() -> None:
    good = [footer_of(content(n, n + 1)) for n in (1, 5)]
    asked = {"a": good[0], "killer": killing_footer(), "b": good[1]}
    assert stated_ranges(asked) == {"a": (1, 2), "killer": None, "b": (5, 6)}


@pytest.mark.processes
def test_a_footer_over_which_a_process_hangs_is_left_for_the_next_look() -> None:
    shell = 'while read line; do case "$line" in *hangs*) exec sleep 600;; *) echo "[1, 2]";; esac; done'
    asked = {name: Footer(b"", TimeColumn(name)) for name in ("a", "hangs", "b")}
    assert stated_ranges(asked, ("/bin/sh", "-c", shell), 2.0) == {"a": (1, 2), "b": (1, 2)}


def test_a_process_that_dies_when_it_has_answered_for_all_has_answered() -> None:
    shell = 'while read line; do echo "[1, 2]"; done; kill -ABRT $$'
    assert stated_ranges({"a": Footer(b"", TS)}, ("/bin/sh", "-c", shell)) == {"a": (1, 2)}


@pytest.mark.parametrize("child", [("/nobody/has/this",), (sys.executable, "-c", "import nothing_of_ours")])
def test_where_nobody_can_be_asked_nothing_is_stated(child: tuple[str, ...]) -> None:
    assert stated_ranges({name: footer_of(content(1)) for name in "abc"}, child) == {}


def test_a_file_that_was_not_answered_for_is_asked_about_at_the_next_look(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(lake.root / "a.parquet", spoiled(content(3, 7)))
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "stated_ranges", lambda _footers: {})
        found = lake.look()
        assert ([each.name for each in found.unplaced], found.unread) == (["a.parquet"], {"a.parquet"})
        assert found.recheck_at is not None
    assert ranges(lake.look()) == {"a.parquet": (3, 7)}


def test_many_files_are_one_process(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[int] = []
    really = subprocess.run

    def counted(*given: Any, **options: Any) -> Any:
        starts.append(1)
        return really(*given, **options)

    monkeypatch.setattr("mv_assets.tables.parquet.statistics.subprocess.run", counted)
    for number in range(300):
        put(lake.root / f"{number}.parquet", spoiled(content(number)))
    found = lake.look()
    assert ranges(found) == {f"{number}.parquet": (number, number) for number in range(300)}
    assert (len(found.broken), len(starts)) == (300, 1)
