"""Folders of other file systems."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow import fs

from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.files.locations import folder_at
from mv_assets.tables.files.remote import RemoteFolder
from mv_assets_tests.unit.tables.files import stores
from mv_assets_tests.unit.tables.files.stores import Seconds, Store, Tagged, Timeless
from mv_assets_tests.unit.tables.lake import (
    LATER,
    SETTLE,
    Lake,
    content,
    crcs,
    put,
    ranges,
    spoiled,
    table_content,
    whole,
)


@pytest.fixture(autouse=True)
def _empty_stores() -> Iterator[None]:
    stores.register()
    yield
    for each in stores.STORES:
        each.clear()


every_store = pytest.mark.parametrize("store", [Store, Tagged, Seconds])


def url(store: type[Store], path: str = "lake") -> str:
    return f"{store.protocol}://{path}"


def write(store: type[Store], name: str, data: bytes) -> None:
    store().pipe(f"/lake/{name}", data)


@every_store
def test_a_store_that_arrow_does_not_know_is_listed_by_fsspec(lake: Lake, store: type[Store]) -> None:
    for name in ("a.parquet", "day=1/b c%.parquet", "_SUCCESS", "x/_temporary/y/z.parquet", "_k=1/d.parquet"):
        write(store, name, content(1))
    write(store, "e.parquet", content(2, None))
    write(store, "empty.parquet", content())
    for path in (url(store), f"{url(store)}/"):
        found = lake.look(path=path)
        assert sorted(found.names) == ["_k=1/d.parquet", "a.parquet", "day=1/b c%.parquet", "e.parquet"]
        assert ranges(found)["e.parquet"] == (2, 2)
        assert (found.nulls, found.broken) == ({"e.parquet": 1}, {})
    assert lake.look(path=url(store), pattern="b*").names == ["day=1/b c%.parquet"]


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's own store in memory, which says times as numbers in one place and as dates in another."""
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    filesystem.rm("/mv_assets_lake", recursive=True)


def test_memory_is_a_store(lake: Lake, memory: Any) -> None:
    memory.pipe("/mv_assets_lake/a.parquet", content(1))
    assert ranges(lake.look(path="memory://mv_assets_lake")) == {"a.parquet": (1, 1)}
    assert lake.table(path="memory://mv_assets_lake").columns() == {"ts": "timestamp_ntz"}


def test_an_object_is_the_same_whether_listed_or_asked_for(lake: Lake, memory: Any) -> None:
    memory.pipe("/mv_assets_lake/a.parquet", content(1))
    folder = folder_at("memory://mv_assets_lake")
    walk, entry = folder.walk(), folder.entry("a.parquet")
    assert entry is not None
    assert entry[:3] == (walk.identities[0], walk.sizes[0], walk.changed[0])
    found = lake.look(path="memory://mv_assets_lake")
    assert found.identities[0] ^ found.crcs[0] == walk.identities[0]


@every_store
def test_the_root_of_a_store_may_be_the_table(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    assert ranges(lake.look(path=f"{store.protocol}://")) == {"lake/a.parquet": (1, 1)}


@every_store
def test_one_object_may_be_the_table(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    assert ranges(lake.look(path=url(store, "lake/a.parquet"))) == {"a.parquet": (1, 1)}


@every_store
def test_a_missing_folder_is_no_look(lake: Lake, store: type[Store]) -> None:
    with pytest.raises(TableUnreadable, match=f"table 't' at {store.protocol}://lake can't be listed"):
        lake.look(path=url(store))


def test_a_store_nobody_knows_is_no_look(lake: Lake) -> None:
    with pytest.raises(TableUnreadable, match="nowhere://lake"):
        lake.look(path="nowhere://lake")


@every_store
def test_an_unchanged_look_reads_no_object(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    write(store, "b.parquet", b"not Parquet")
    first = lake.look(path=url(store))
    store.reads.clear()
    again = lake.look(path=url(store))
    assert store.reads == []
    assert (ranges(again), again.broken, again.version) == (ranges(first), first.broken, first.version)


@pytest.mark.parametrize("store", [Store, Tagged, Seconds, Timeless])
def test_a_rewritten_object_of_the_same_size_is_seen(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    before = lake.look(path=url(store))
    assert len(content(1)) == len(content(2))
    write(store, "a.parquet", content(2))
    after = lake.look(path=url(store))
    assert ranges(after) == {"a.parquet": (2, 2)}
    assert whole(after) != whole(before)


@every_store
def test_26_an_object_written_again_leaves_the_fingerprint(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    before = whole(lake.look(path=url(store)))
    write(store, "a.parquet", content(1))
    assert whole(lake.look(path=url(store))) == before


def test_an_entity_tag_stands_for_the_content(lake: Lake) -> None:
    write(Tagged, "a.parquet", content(1))
    write(Tagged, "b.parquet", content(1))
    write(Tagged, "c.parquet", content(2))
    found = crcs(lake.look(path=url(Tagged)))
    assert found["a.parquet"] == found["b.parquet"] != found["c.parquet"]


def test_an_entity_tag_spares_the_reading(lake: Lake) -> None:
    rows = {"ts": pa.array([1], pa.timestamp("ms")), "x": [random.Random(1).randbytes(2_400_000)]}
    large = table_content(pa.table(rows), use_dictionary=False, compression="none")
    write(Tagged, "a.parquet", large)
    lake.look(path=url(Tagged))
    assert 0 < sum(Tagged.bytes_read) < 200_000
    write(Store, "a.parquet", large)
    lake.look(path=url(Store))
    assert sum(Store.bytes_read) >= 2_400_000


@every_store
def test_a_young_object_is_not_trusted_yet(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(1))
    # Before all that is written while the test runs.
    lake.clock.now = 0
    found = lake.look(path=url(store))
    assert found.recheck_at == found.at + SETTLE
    assert found.changed[0] > 1_700_000_000_000
    lake.clock.now = LATER
    assert lake.look(path=url(store)).recheck_at is None


@every_store
def test_130_a_new_object_with_damaged_pages_lies_where_its_footer_says(
    lake: Lake, store: type[Store]
) -> None:
    write(store, "a.parquet", spoiled(content(3, 7)))
    found = lake.look(path=url(store))
    assert (ranges(found), set(found.broken)) == ({"a.parquet": (3, 7)}, {"a.parquet"})


@every_store
def test_98_a_damaged_object_keeps_its_range(lake: Lake, store: type[Store]) -> None:
    write(store, "a.parquet", content(3, 7))
    lake.look(path=url(store))
    write(store, "a.parquet", b"not Parquet")
    found = lake.look(path=url(store))
    assert ranges(found) == {"a.parquet": (3, 7)}
    assert found.broken["a.parquet"].ranged


@every_store
@pytest.mark.parametrize(
    "error",
    [
        OSError(5, "Input/output error"),
        ConnectionError("lost"),
        TimeoutError("late"),
        RuntimeError("HTTP 503"),
        # As Arrow's own stores say it, and as it calls a damaged file too.
        OSError("When reading information for key: curlCode: 28, Timeout was reached"),
        pa.ArrowInvalid("the connection was closed"),
        pa.ArrowMemoryError("malloc of size 64 failed"),
    ],
    ids=repr,
)
def test_an_object_that_could_not_be_read_just_now_is_read_again(
    lake: Lake, store: type[Store], error: Exception
) -> None:
    write(store, "a.parquet", content(3))
    write(store, "b.parquet", content(5))
    store.failing["/lake/a.parquet"] = error
    found = lake.look(path=url(store))
    assert (set(found.broken), found.recheck_at) == ({"a.parquet"}, LATER + SETTLE)
    assert ranges(found) == {"b.parquet": (5, 5)}
    store.failing.clear()
    healed = lake.look(path=url(store))
    assert (ranges(healed), healed.broken) == ({"a.parquet": (3, 3), "b.parquet": (5, 5)}, {})


@pytest.mark.parametrize("store", [Store, Seconds])
def test_a_large_object_that_is_lost_after_its_checksum_was_taken_is_read_again(
    lake: Lake, store: type[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.parquet.examine._CHUNK", 64)
    write(store, "a.parquet", content(3))
    really = stores.Counting.read

    def lose(file: stores.Counting, size: int = -1) -> Any:
        already = sum(store.bytes_read)
        if (data := really(file, size)) and already >= len(content(3)):
            raise OSError("the connection was closed")
        return data

    with monkeypatch.context() as losing:
        losing.setattr(stores.Counting, "read", lose)
        found = lake.look(path=url(store))
    assert (set(found.broken), found.recheck_at) == ({"a.parquet"}, LATER + SETTLE)
    assert (ranges(lake.look(path=url(store))), lake.look(path=url(store)).broken) == (
        {"a.parquet": (3, 3)},
        {},
    )


@every_store
def test_a_large_object_that_is_damaged_is_read_once(
    lake: Lake, store: type[Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.tables.parquet.examine._CHUNK", 64)
    write(store, "a.parquet", content(3)[:-1])
    found = lake.look(path=url(store))
    assert (set(found.broken), found.recheck_at) == ({"a.parquet"}, None)


@pytest.mark.parametrize("where", ["/lake", "/lake/x"])
@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), PermissionError("denied"), RuntimeError("HTTP 503")], ids=repr
)
def test_a_store_of_which_a_part_can_not_be_listed_is_no_look(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: Exception, where: str
) -> None:
    write(Store, "a.parquet", content(3))
    write(Store, "x/b.parquet", content(3))
    assert len(lake.look(path=url(Store))) == 2
    really = Store.ls

    def fail(store: Store, path: str, **options: Any) -> list[Any]:
        if path.rstrip("/") == where:
            raise error
        return really(store, path, **options)

    monkeypatch.setattr(Store, "ls", fail)
    with pytest.raises(TableUnreadable, match=str(error.args[-1])):
        lake.look(path=url(Store))
    assert len(list(lake.table().inventory.known())) == 2


def test_an_arrow_file_system_is_walked_as_a_local_one(lake: Lake) -> None:
    for name in ("a.parquet", "x=1/b.parquet", "_SUCCESS", ".c/d.parquet", "_k=1/e.parquet"):
        put(lake.root / name, content(1))
    for base, root in ((lake.root.parent, lake.root.name), (lake.root, "")):
        folder = RemoteFolder(fs.SubTreeFileSystem(str(base), fs.LocalFileSystem()), root, "sub")
        walk = folder.walk()
        assert sorted(walk.names) == ["_k=1/e.parquet", "a.parquet", "x=1/b.parquet"]
        for at, name in enumerate(walk.names):
            entry = folder.entry(name)
            assert entry is not None
            assert entry[:3] == (walk.identities[at], walk.sizes[at], walk.changed[at])
            with folder.open(name) as file:
                assert file.read() == content(1)
        assert folder.entry("nowhere.parquet") is None


def test_an_arrow_file_system_without_the_folder_is_no_look(tmp_path: Path) -> None:
    folder = RemoteFolder(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "none", "sub")
    with pytest.raises(OSError, match="none"):
        folder.walk()


@pytest.mark.parametrize(
    "path", ["memory://lake/", "memory://lake", "memory://lake/a.parquet", "{folder}", "{folder}/a.parquet"]
)
def test_spark_is_told_the_whole_path_of_a_file(path: str, tmp_path: Path) -> None:
    place = path.format(folder=tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"x")
    fsspec.filesystem("memory").pipe("/lake/a.parquet", b"x")
    walk = folder_at(place).walk()
    assert [f"{walk.root}/{name}" for name in walk.names] == [
        f"{place.removesuffix('/a.parquet').rstrip('/')}/a.parquet"
    ]
