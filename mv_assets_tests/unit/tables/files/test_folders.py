"""Which files a folder holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.files.folders import hidden
from mv_assets.tables.files.local import LocalFolder
from mv_assets.tables.files.locations import folder_at
from mv_assets_tests.unit.tables.lake import Lake, content, put, ranges


def names(lake: Lake, **options: Any) -> set[str]:
    return set(lake.look(**options).names)


def broken(lake: Lake) -> dict[str, str]:
    return {name: each.why for name, each in lake.look().broken.items()}


def test_files_of_all_folders_are_named_from_the_root(lake: Lake) -> None:
    for name in ("a.parquet", "x/a.parquet", "x/y/a.parquet"):
        lake.write(name, 1)
    assert names(lake) == {"a.parquet", "x/a.parquet", "x/y/a.parquet"}


@pytest.mark.parametrize(
    "name",
    [
        "_SUCCESS",
        "_metadata",
        ".a.parquet.crc",
        ".hidden/a.parquet",
        "_temporary/0/a.parquet",
        "x/_delta_log/a.parquet",
        "a.parquet._COPYING_",
        "x/a.parquet._COPYING_",
    ],
)
def test_what_spark_does_not_take_for_data_is_not_there(lake: Lake, name: str) -> None:
    put(lake.root / name, b"anything")
    found = lake.look()
    assert (found.names, found.broken) == ([], {})


def test_an_underscore_column_is_data(lake: Lake) -> None:
    lake.write("_day=1/a.parquet", 1)
    lake.write("_k=v/_k2=w/b.parquet", 1)
    assert names(lake) == {"_day=1/a.parquet", "_k=v/_k2=w/b.parquet"}
    assert hidden("_day")
    assert not hidden("_day=1")


def test_only_files_of_the_pattern_count(lake: Lake) -> None:
    lake.write("x.csv/a.parquet", 1)
    lake.write("b.PARQUET", 1)
    put(lake.root / "readme.txt", b"words")
    assert names(lake, pattern="*.parquet") == {"x.csv/a.parquet"}
    assert lake.look(pattern="*.parquet").broken == {}
    assert broken(lake).keys() == {"readme.txt"}


@pytest.mark.parametrize(
    "name",
    ["é漢字😀.parquet", "a b.parquet", "100%.parquet", "%41.parquet", "a\nb.parquet", "x y/ä=1/a'\".parquet"],
)
def test_any_utf8_name_is_kept_as_it_is(lake: Lake, name: str) -> None:
    lake.write(name, 1)
    assert ranges(lake.look()) == {name: (1, 1)} == ranges(lake.look())


@pytest.mark.parametrize("raw", [b"\xff.parquet", b"x\xff/a.parquet"])
def test_a_name_that_is_not_utf8_is_reported_and_harms_no_other(lake: Lake, raw: bytes) -> None:
    lake.write("a.parquet", 1)
    put(Path(os.fsdecode(os.fsencode(lake.root) + b"/" + raw)), content(1))
    found = lake.look()
    assert found.names == ["a.parquet"]
    (only,) = found.unplaced
    assert only.name.isascii()
    assert "not valid UTF-8" in str(only)
    assert lake.version() == found.version


def test_links_to_files_and_folders_are_followed(lake: Lake, tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere" / "a.parquet", content(1))
    (lake.root / "file.parquet").symlink_to(elsewhere)
    (lake.root / "folder").symlink_to(elsewhere.parent)
    assert ranges(lake.look()) == {"file.parquet": (1, 1), "folder/a.parquet": (1, 1)}
    before = lake.version()
    put(elsewhere, content(2))
    assert lake.version() != before
    assert set(ranges(lake.look()).values()) == {(2, 2)}


def test_a_link_to_nothing_is_reported_and_harms_no_other(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    (lake.root / "b.parquet").symlink_to("nowhere")
    assert broken(lake) == {"b.parquet": "it is a link that points to nothing"}
    assert names(lake) == {"a.parquet"}


def test_a_link_to_itself_is_reported_and_harms_no_other(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    (lake.root / "b.parquet").symlink_to("b.parquet")
    assert broken(lake).keys() == {"b.parquet"}
    assert names(lake) == {"a.parquet"}


def test_98_a_file_behind_a_link_that_breaks_keeps_its_range(lake: Lake, tmp_path: Path) -> None:
    elsewhere = put(tmp_path / "elsewhere.parquet", content(1, 9))
    (lake.root / "a.parquet").symlink_to(elsewhere)
    assert ranges(lake.look()) == {"a.parquet": (1, 9)}
    elsewhere.unlink()
    found = lake.look()
    assert ranges(found) == {"a.parquet": (1, 9)}
    assert found.broken["a.parquet"].ranged
    assert ranges(lake.look()) == {"a.parquet": (1, 9)}


def test_a_folder_that_contains_itself_is_no_table(lake: Lake) -> None:
    lake.write("x/a.parquet", 1)
    (lake.root / "x" / "again").symlink_to(lake.root)
    with pytest.raises(TableUnreadable, match="again is a link to a folder that contains it"):
        lake.look()


def test_folders_that_link_to_each_other_are_no_table(lake: Lake) -> None:
    for one, other in (("x", "y"), ("y", "z"), ("z", "x")):
        lake.write(f"{one}/a.parquet", 1)
        (lake.root / one / "other").symlink_to(lake.root / other)
    with pytest.raises(TableUnreadable):
        lake.look()


def test_a_fifo_is_reported_and_never_opened(lake: Lake, opened: list[str]) -> None:
    lake.write("a.parquet", 1)
    os.mkfifo(lake.root / "b.parquet")
    assert broken(lake) == {"b.parquet": "it is not a regular file"}
    assert set(opened) == {"a.parquet"}


def test_what_can_not_be_read_comes_and_goes_with_the_version(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    before = lake.version()
    os.mkfifo(lake.root / "b.parquet")
    assert lake.version() != before
    (lake.root / "b.parquet").unlink()
    assert lake.version() == before


def test_a_missing_root_is_no_look(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    lake.look()
    shutil.rmtree(lake.root)
    with pytest.raises(TableUnreadable, match=r"table 't' at .*lake can't be listed"):
        lake.table().current()
    with pytest.raises(TableUnreadable):
        lake.table().columns()
    assert lake.database is not None
    assert len(list(lake.table().inventory.known())) == 1


def test_an_empty_root_is_an_empty_table(lake: Lake) -> None:
    found = lake.look()
    assert (len(found), found.broken, found.recheck_at) == (0, {}, None)
    assert lake.table().columns() is None


def test_the_root_may_be_one_file_or_a_link(lake: Lake, tmp_path: Path) -> None:
    file = lake.write("a.parquet", 1)
    assert ranges(lake.look(path=file)) == {"a.parquet": (1, 1)}
    assert lake.table(path=file).columns() == {"ts": "timestamp_ntz"}
    link = tmp_path / "link"
    link.symlink_to(lake.root)
    assert ranges(lake.look(path=link)) == {"a.parquet": (1, 1)}


def test_a_local_uri_is_the_same_folder(lake: Lake) -> None:
    lake.write("a b/c.parquet", 1)
    assert folder_at(lake.root.as_uri()) == LocalFolder(str(lake.root))
    assert ranges(lake.look(path=(lake.root / "a b").as_uri())) == {"c.parquet": (1, 1)}
    assert lake.look(path=f"{lake.root.as_uri()}/").names == ["a b/c.parquet"]


def vanishing(monkeypatch: pytest.MonkeyPatch, folder: Path, times: int) -> None:
    """Have a folder gone when its own listing starts, after it was seen in its parent's."""
    really, left = os.scandir, [times]

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path) == folder and left[0]:
            left[0] -= 1
            raise FileNotFoundError(2, "No such file or directory", path)
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_folder_that_goes_away_during_the_walk_has_the_walk_begin_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.parquet", "x/a.parquet", "y/a.parquet"):
        lake.write(name, 1)
    vanishing(monkeypatch, lake.root / "x", times=2)
    assert sorted(lake.look().names) == ["a.parquet", "x/a.parquet", "y/a.parquet"]


def test_folders_that_never_rest_are_no_look(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("x/a.parquet", 1)
    vanishing(monkeypatch, lake.root / "x", times=1_000)
    with pytest.raises(TableUnreadable):
        lake.look()


def test_half_a_listing_is_no_look(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.write("a.parquet", 1)
    lake.write("x/a.parquet", 1)
    lake.look()
    really = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if path.endswith("x"):
            raise PermissionError(13, "Permission denied", path)
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(TableUnreadable, match="Permission denied"):
        lake.look()
    monkeypatch.undo()
    assert len(list(lake.table().inventory.known())) == 2


def test_a_file_that_goes_away_after_the_walk_is_not_there(lake: Lake) -> None:
    lake.write("a.parquet", 1)
    gone = lake.write("b.parquet", 1)
    version = lake.table().current()
    gone.unlink()
    found = version.listing()
    assert (found.names, found.broken) == (["a.parquet"], {})
    assert lake.version() != found.version
