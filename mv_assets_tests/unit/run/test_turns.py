"""Processes that start a local Spark for one project do so one after the other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mv_assets.run import turns
from mv_assets.run.turns import take_turn
from mv_assets.spark.errors import EngineUnavailable

_HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from mv_assets.run.turns import take_turn
take_turn(sys.argv[2], lambda said: print(said, flush=True))
print("mine", flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Locks of this test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(turns, "_held", {})
    return tmp_path


def holder(folder: Path, project: str = "p") -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own source
        [sys.executable, "-c", _HOLD, str(folder), project],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


@pytest.mark.processes
def test_a_process_waits_for_another_says_for_which_and_goes_on_when_that_is_killed(folder: Path) -> None:
    first = holder(folder)
    assert line(first) == "mine"
    second = holder(folder)
    try:
        assert line(second) == (
            f"waits for process {first.pid}, which has this project's local Spark: there is one at a time"
        )
        end(first)
        assert line(second) == "mine"
    finally:
        end(first)
        end(second)


@pytest.mark.processes
def test_it_waits_no_longer_than_its_patience_and_says_so_again_and_again(folder: Path) -> None:
    first = holder(folder)
    assert line(first) == "mine"
    said, time = list[str](), [0.0]

    def sleep(seconds: float) -> None:
        time[0] += seconds

    try:
        with pytest.raises(EngineUnavailable, match=f"process {first.pid} has had .* for 10 minutes"):
            take_turn("p", said.append, patience_s=600, monotonic=lambda: time[0], sleep=sleep)
        assert len(said) == 11
        # Another project is not in the way, nor is anybody once the time is over.
        take_turn("q", said.append, patience_s=0)
    finally:
        end(first)
    take_turn("p", said.append, patience_s=60)
    assert len(said) == 11


def test_a_process_has_its_turn_until_it_ends() -> None:
    take_turn("p", pytest.fail)
    take_turn("p", pytest.fail, patience_s=0)


def test_a_lock_that_is_no_file_of_ours_is_refused(folder: Path) -> None:
    (folder / "elsewhere").write_text("kept")
    turns._file("p").symlink_to(folder / "elsewhere")
    with pytest.raises(EngineUnavailable, match="can't be opened"):
        take_turn("p", pytest.fail)
    assert (folder / "elsewhere").read_text() == "kept"
