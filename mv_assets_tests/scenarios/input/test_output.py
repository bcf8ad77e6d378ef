"""What commands print of texts that others chose: no line, no markup and no escape code of theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mv_assets_tests.unit.cli.test_commands import Lake, command

EVIL = "x\n  APPEND forged\x1b[31m\r\u202e\u2028[bold]\U0001f600 ü"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """With a file of an evil name in its only bucket, and others that can't be read."""
    made = Lake(tmp_path)
    made.day(1)
    made.refresh()
    made.day(1, f"{EVIL}.parquet")
    trips = tmp_path / "trips"
    (trips / f"{EVIL} broken.parquet").write_bytes(b"no parquet")
    (trips / f"{EVIL} link.parquet").symlink_to("nowhere")
    os.mkfifo(trips / f"{EVIL} fifo.parquet")
    (trips / os.fsdecode(b"\xff\n\x1b[31m.parquet")).write_bytes(b"")
    return made


COMMANDS = (["plan"], ["status"], ["explain", "daily", "2024-01-01"])


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_name_of_a_file_forges_no_line_and_no_color(lake: Lake, arguments: list[str]) -> None:
    for _ in range(2):
        said = lake.run(*arguments).output
        assert said.replace("\n", "").isprintable()
        assert "\n  APPEND forged" not in said
        lake.refresh()
    assert r"x\n  APPEND forged\x1b[31m\r\u202e\u2028[bold]" in said


def test_json_has_the_names_themselves(lake: Lake) -> None:
    found = json.loads(lake.run("explain", "daily", "2024-01-01", "--json").stdout)
    assert [each["name"] for each in found["added"]] == [f"{EVIL}.parquet"]
    errors = json.loads(lake.run("plan", "--json").stdout)["views"][0]["errors"]
    assert f"{EVIL} broken.parquet" in [each["file"] for each in errors]


def test_a_pipe_that_does_not_know_a_names_letters_gets_them_another_way(lake: Lake) -> None:
    done = [
        command(lake, *arguments, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        for arguments in (COMMANDS[2], [*COMMANDS[2], "--json"])
    ]
    assert [(each.returncode, each.stderr) for each in done] == [(1, ""), (1, "")]
    assert r"\U0001f600 \xfc" in done[0].stdout
    assert json.loads(done[1].stdout)["added"][0]["name"] == f"{EVIL}.parquet"


@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [("status", ""), ("status --json", "1"), ("--help", "")]
)
def test_an_output_that_is_full_is_one_sentence(lake: Lake, arguments: str, unbuffered: str) -> None:
    done = shell(lake, f"{arguments} > /dev/full", PYTHONUNBUFFERED=unbuffered)
    said = "the output can't be written: No space left on device; make room, or send it elsewhere\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_an_output_that_is_closed_is_no_mistake(lake: Lake) -> None:
    done = shell(lake, "status --json >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_a_width_shows_all(lake: Lake) -> None:
    assert "1d buckets of trips" in shell(lake, "status", COLUMNS="0").stdout


def shell(lake: Lake, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command as somebody types it."""
    program = f"{sys.executable} -c 'from mv_assets.cli import main; main()'"
    return subprocess.run(  # noqa: S603 - our own command
        ["sh", "-c", f"{program} {command}"],  # noqa: S607
        env={**os.environ, "MV_ASSETS_PROJECT": str(lake.file), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_key_of_a_project_file_forges_no_line(lake: Lake) -> None:
    lake.file.write_text(lake.file.read_text() + '"\\e[31m\\n  line 1, forged": 1\n')
    said = lake.refused("status")
    assert said.count("\n") == 2
    assert r"\x1b[31m\n  line 1, forged" in said
