"""What commands print of texts that others chose: no line, no markup and no escape code of theirs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mv_assets_tests.cli.test_commands import Lake, command

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
    assert [(each.returncode, each.stderr) for each in done] == [(0, ""), (0, "")]
    assert r"\U0001f600 \xfc" in done[0].stdout
    assert json.loads(done[1].stdout)["added"][0]["name"] == f"{EVIL}.parquet"


def test_a_key_of_a_project_file_forges_no_line(lake: Lake) -> None:
    lake.file.write_text(lake.file.read_text() + '"\\e[31m\\n  line 1, forged": 1\n')
    said = lake.refused("status")
    assert said.count("\n") == 2
    assert r"\x1b[31m\n  line 1, forged" in said
