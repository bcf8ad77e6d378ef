"""Things in a table's folder that are no Parquet files, or were: named, and in nobody's way."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.state.store import Store
from mv_assets_tests.support.lake import Lake, day, view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, rows_at

Make = Callable[..., UncheckedLake]
TOTALS = """
SELECT date_trunc('day', at) AS hour, count(*) AS n, sum(x) AS x, max(s) AS s, max(size(l)) AS l
FROM events GROUP BY ALL
"""
WRITTEN: list[dict[str, object]] = [
    {},
    {"compression": "none"},
    {"compression": "zstd", "data_page_version": "2.0"},
    {"compression": "none", "use_dictionary": False},
]


def rows(number: int, count: int = 200) -> pa.Table:
    times = [day(number, 24 * n / (count - 1) - 1e-6 * (n == count - 1)) for n in range(count)]
    columns = {
        "x": pa.array(range(count)),
        "s": pa.array([f"text {n % 7}" for n in range(count)]),
        "l": pa.array([[n] * (n % 4) for n in range(count)]),
    }
    return rows_at(times, **columns)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """With bits flipped, or a stretch of it overwritten, anywhere."""
    made, place = bytearray(data), chance.randrange(4, len(data))
    match chance.randrange(3):
        case 0:
            for _ in range(chance.randint(1, 3)):
                made[chance.randrange(4, len(made))] ^= 1 << chance.randrange(8)
        case 1:
            made[place : place + 40] = chance.randbytes(len(made[place : place + 40]))
        case _:
            made[place : place + 300] = bytes([chance.choice([0, 255])]) * len(made[place : place + 300])
    return bytes(made)


def test_damage_anywhere_costs_no_bucket_but_its_own(unchecked_lake: Make) -> None:
    """A flipped bit may still be a number: what counts is that nothing dies, and nobody else suffers."""
    lake, chance = unchecked_lake(view(sql=TOTALS)), random.Random(11)
    paths = [
        lake.put(f"{number}.parquet", rows(number), **WRITTEN[number % len(WRITTEN)]) for number in range(8)
    ]
    lake.look(whole=True)
    for path in paths[::2]:
        path.write_bytes(damaged(path.read_bytes(), chance))
    outcomes = lake.outcomes()
    assert {number: outcomes[number] for number in (1, 3, 5)} == dict.fromkeys((1, 3, 5), "committed")
    failed = {number for number, outcome in outcomes.items() if outcome == "failed"}
    assert failed == lake.failures().keys() <= {0, 2, 4, 6}
    # The seed has damage of which something is noticed.
    assert failed
    whole = {row["hour"].day: (row["n"], row["x"]) for row in lake.stored().to_pylist()}
    assert {number: whole[number + 1] for number in (1, 3, 5)} == dict.fromkeys((1, 3, 5), (200, 19_900))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, Store(f"sqlite:///{tmp_path}/state.db"))
    made.days(0, 1)
    yield made
    made.store.close()


def test_what_is_no_file_at_all_is_named_and_never_opened(lake: Lake, tmp_path: Path) -> None:
    events = tmp_path / "events"
    os.mkfifo(events / "fifo.parquet")
    (events / "link.parquet").symlink_to("nowhere")
    (events / "to_fifo.parquet").symlink_to("fifo.parquet")
    (events / "device.parquet").symlink_to("/dev/zero")
    (events / "folder.parquet").mkdir()
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as listener:
        # A socket's path must be short.
        os.chdir(events)
        listener.bind("socket.parquet")
        os.chdir(here)
        broken = lake.tables["events"].current().listing().broken
        assert {name: each.why for name, each in broken.items()} == {
            "link.parquet": "it is a link that points to nothing",
            **dict.fromkeys(
                ("fifo.parquet", "to_fifo.parquet", "device.parquet", "socket.parquet"),
                "it is not a regular file",
            ),
        }
        assert lake.planned() == [("APPEND", [0, 1])]


def test_what_only_looks_like_parquet_is_named(lake: Lake, tmp_path: Path) -> None:
    events = tmp_path / "events"
    pq.write_table(rows(0, 2_000), events / "whole.parquet")
    data = (events / "whole.parquet").read_bytes()
    cut = {f"cut {length}": data[:length] for length in range(0, len(data), 1_024)}
    wrong = {
        "encrypted": data[:-4] + b"PARE",
        "wrong magic": data[:-4] + b"PAR2",
        "long footer": data[:-8] + struct.pack("<I", len(data)) + b"PAR1",
        "longest footer": data[:-8] + struct.pack("<I", 2**32 - 1) + b"PAR1",
        "no footer": data[:-8] + bytes(4) + b"PAR1",
        "zeros": bytes(len(data)),
    }
    bad = {**cut, **wrong}
    for name, content in bad.items():
        (events / f"{name}.parquet").write_bytes(content)
    found = lake.tables["events"].current().listing()
    assert found.broken.keys() == {f"{name}.parquet" for name in bad}
    assert all("can't be read as Parquet" in each.why for each in found.broken.values())
    assert lake.planned() == [("APPEND", [0, 1])]


def test_a_table_of_ten_thousand_columns_is_computed_by_the_three_that_are_used(unchecked_lake: Make) -> None:
    sql = "SELECT date_trunc('day', at) AS hour, sum(c3) AS a, max(c9999) AS b FROM events GROUP BY ALL"
    lake = unchecked_lake(view(sql=sql))
    lake.put("wide.parquet", rows_at([0, 0], **{f"c{number}": number for number in range(10_000)}))
    assert lake.outcomes() == {0: "committed"}
    assert lake.rows("a", "b") == [(6, 9_999)]
