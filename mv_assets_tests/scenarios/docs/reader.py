"""Somebody who does what a page says: saves its files, types its commands, and looks at what comes out.

`mv-assets` and Python run in one process for all pages, as Spark needs seconds to start; whatever else is
typed goes to a shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from string import Template

from mv_assets_tests.scenarios.docs.pages import Block

_LOOP = """
import contextlib, io, json, os, sys, traceback
from click.testing import CliRunner
from mv_assets.cli import main
before = {}
for line in sys.stdin:
    asked = json.loads(line)
    os.chdir(asked["folder"])
    for name in before:
        del os.environ[name]
    before = asked["variables"]
    os.environ.update(before)
    if "code" in asked:
        out, code = io.StringIO(), 0
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(asked["code"], "a block", "exec"), {"__name__": "__main__"})
            except Exception:
                code = 1
                traceback.print_exc(file=out)
        answer = [code, out.getvalue()]
    else:
        ended = CliRunner().invoke(main, asked["arguments"])
        unexpected = ended.exception is not None and not isinstance(ended.exception, SystemExit)
        why = "".join(traceback.format_exception(*ended.exc_info)) if unexpected else ""
        answer = [ended.exit_code, ended.output + why]
    print(json.dumps(answer), flush=True)
"""
_HOME = "/home/you"


class CommandProcess:
    """One process in which commands and Python run, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own source
            [sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **asked: object) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        code, out = json.loads(self._process.stdout.readline())
        return code, out

    def end(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


class Reader:
    def __init__(self, command_process: CommandProcess, home: Path) -> None:
        self._typist = command_process
        self._home = home
        self._folder = home / "mv_assets"
        self._folder.mkdir()
        self._variables: dict[str, str] = {}

    def save(self, block: Block) -> None:
        """A file that the block's title names; one that is `at the end of` a file is added to it."""
        name = block.title.removeprefix("at the end of ")
        with (self._folder / name).open("w" if name == block.title else "a", encoding="utf-8") as file:
            file.write(block.text)

    def python(self, code: str) -> str:
        ended, printed = self._ask(code=code)
        assert ended == 0, printed
        return printed

    def type(self, command: str) -> tuple[int, str]:
        """The exit code, and what is printed."""
        word, *rest = shlex.split(self._expanded(command), comments=True)
        if word == "export":
            name, _, value = rest[0].partition("=")
            self._variables[name] = value
            return 0, ""
        code, printed = self._ask(arguments=rest) if word == "mv-assets" else self._shell(command)
        return code, printed.replace(str(self._home), _HOME)

    def _expanded(self, command: str) -> str:
        known = os.environ | self._variables | {"PWD": str(self._folder)}
        return Template(command).safe_substitute(known)

    def _ask(self, **asked: object) -> tuple[int, str]:
        # Its process has the tests' own environment first in the path, as the page's reader has.
        variables = {name: value for name, value in self._variables.items() if name != "PATH"}
        return self._typist.ask(**asked, folder=str(self._folder), variables=variables)

    def _shell(self, command: str) -> tuple[int, str]:
        after = self._home / "after"
        ran = subprocess.run(  # noqa: S602 - the page's own lines
            f"{command} && pwd > {after}",
            shell=True,
            cwd=self._folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode == 0:
            self._folder = Path(after.read_text().strip())
        return ran.returncode, ran.stdout + ran.stderr


def comparable(printed: str) -> list[str]:
    """Lines without what differs from day to day and machine to machine, which is said here and nowhere else.

    That is: sizes, today's times, how far behind data of 2024 is, numbers of snapshots, what Arrow says of a
    damaged file; and, as they can't be seen, empty lines and blanks at a line's end.
    """
    for pattern, stands_for in _DIFFERS.items():
        printed = re.sub(pattern, stands_for, printed)
    return [line.rstrip() for line in printed.splitlines() if line.strip()]


_DIFFERS = {
    r"\b\d+(\.\d+)? (B|kB)\b": "SIZE",
    # The pages' data is of 2024.
    r"\b20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z": "TODAY",
    r"\blag \d+d( \d+[hm])?": "lag LAG",
    r"\bsnapshot \d+": "snapshot SNAPSHOT",
    r"(can't be read(?: as Parquet)?) \([^)]*\)": r"\1 (...)",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A command, the exit code that a comment beside it names, and what is shown below it."""

    command: str
    code: int
    shown: str


def steps(console: str) -> list[Step]:
    typed = re.split(r"^\$ ", console, flags=re.MULTILINE)
    assert typed[0] == "", f"{typed[0]!r} stands before the first command"
    return [_step(*each.partition("\n")[::2]) for each in typed[1:]]


def _step(command: str, shown: str) -> Step:
    named = re.search(r"# exit code (\d)$", command)
    return Step(command, int(named[1]) if named else 0, shown)
