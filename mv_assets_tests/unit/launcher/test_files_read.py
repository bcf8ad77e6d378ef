"""What a process has read to load code, and that one of these files is another now."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mv_assets.launcher.files_read import FilesRead

_HOUR_NS = 3_600_000_000_000


@pytest.fixture
def read(tmp_path: Path) -> FilesRead:
    (tmp_path / "project.yaml").write_text("views: []")
    # As if all had been there for long.
    with FilesRead.noted(time.time_ns() + _HOUR_NS) as found:
        (tmp_path / "project.yaml").read_text()
        (tmp_path / "written").write_text("by the block itself")
    (tmp_path / "later").write_text("")
    (tmp_path / "later").read_text()
    return found


def test_only_what_was_read_in_the_block_counts(read: FilesRead, tmp_path: Path) -> None:
    assert read.changed() is None
    (tmp_path / "written").write_text("again")
    (tmp_path / "later").write_text("again")
    assert read.changed() is None


def test_a_file_that_was_edited_replaced_or_deleted_is_another(read: FilesRead, tmp_path: Path) -> None:
    file = tmp_path / "project.yaml"
    status = file.stat()
    file.write_text("views: [a]")
    assert read.changed() == str(file)

    file.unlink()
    assert read.changed() == str(file)

    # As an editor saves it: another file of the same length, at the same time.
    (tmp_path / "draft").write_text("views: {}")
    (tmp_path / "draft").rename(file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read.changed() == str(file)


def test_a_file_that_may_have_changed_after_it_was_read_counts_as_changed(tmp_path: Path) -> None:
    file = tmp_path / "project.yaml"
    file.write_text("views: []")
    os.utime(file, ns=(0, 0))
    for later_ns, changed in ((0, str(file)), (_HOUR_NS, None)):
        with FilesRead.noted(file.stat().st_ctime_ns + later_ns) as found:
            file.read_text()
            (tmp_path / "cache").write_text("by the block itself")
            (tmp_path / "cache").read_text()
        assert found.changed() == changed


def test_a_file_that_was_not_there_counts_once_it_is(tmp_path: Path) -> None:
    with FilesRead.noted(time.time_ns() + _HOUR_NS) as found, suppress(FileNotFoundError):
        (tmp_path / "local.yaml").read_text()
    assert found.changed() is None
    (tmp_path / "local.yaml").write_text("")
    assert found.changed() == str(tmp_path / "local.yaml")


def test_the_sources_of_modules_count_though_only_what_was_compiled_of_them_was_read(read: FilesRead) -> None:
    assert any(path.endswith("mv_assets/launcher/files_read.py") for path in read.stamps)
    assert not any(path.endswith(".pyc") for path in read.stamps)


def test_temporary_files_that_are_left_are_told_and_no_others(tmp_path: Path) -> None:
    with FilesRead.noted(time.time_ns()) as found:
        folder = tempfile.TemporaryDirectory(dir=tmp_path)
        file = tempfile.NamedTemporaryFile(dir=tmp_path)  # noqa: SIM115 - code that is loaded may keep it
        with tempfile.TemporaryDirectory(dir=tmp_path), tempfile.TemporaryFile(dir=tmp_path):
            pass
    assert found.left() == sorted([folder.name, file.name])
    folder.cleanup()
    file.close()
    assert found.left() == []
