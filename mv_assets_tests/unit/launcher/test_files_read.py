"""What a process has read to load code, and that one of these files is another now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mv_assets.launcher.files_read import FilesRead


@pytest.fixture
def read(tmp_path: Path) -> FilesRead:
    (tmp_path / "project.yaml").write_text("views: []")
    with FilesRead.noted() as found:
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


def test_the_sources_of_modules_count_though_only_what_was_compiled_of_them_was_read(read: FilesRead) -> None:
    assert any(path.endswith("mv_assets/launcher/files_read.py") for path in read.stamps)
    assert not any(path.endswith(".pyc") for path in read.stamps)
