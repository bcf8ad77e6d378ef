"""Somebody who does what a page says: saves its files, types its commands, and looks at what comes out.

`mv-assets` and Python run in one process for all pages, as Spark needs seconds to start; whatever else is typed
goes to a shell.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from mv_assets_tests.docs.pages import Block

_LOOP = """
import contextlib, io, json, os, sys
from click.testing import CliRunner
from mv_assets.cli import main
for line in sys.stdin:
    asked = json.loads(line)
    os.chdir(asked["folder"])
    os.environ.update(asked["variables"])
    if "code" in asked:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(asked["code"], "a block", "exec"), {"__name__": "__main__"})
        answer = [0, out.getvalue()]
    else:
        ended = CliRunner().invoke(main, asked["arguments"])
        if ended.exception is not None and not isinstance(ended.exception, SystemExit):
            raise ended.exception
        answer = [ended.exit_code, ended.output]
    print(json.dumps(answer), flush=True)
"""
_HOME = "/home/you"


class Typist:
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
    def __init__(self, typist: Typist, home: Path) -> None:
        self._typist = typist
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
        return self._typist.ask(code=code, folder=str(self._folder), variables=self._variables)[1]

    def type(self, command: str) -> tuple[int, str]:
        """The exit code, and what is printed."""
        word, *rest = shlex.split(command.replace("$PWD", str(self._folder)))
        if word == "mv-assets":
            return self._typist.ask(arguments=rest, folder=str(self._folder), variables=self._variables)
        if word == "export":
            name, _, value = rest[0].partition("=")
            self._variables[name] = value
            return 0, ""
        ran = subprocess.run(  # noqa: S602 - the page's own lines
            f"{command} && pwd > {self._home}/.pwd",
            shell=True,
            cwd=self._folder,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode == 0:
            self._folder = Path((self._home / ".pwd").read_text().strip())
        return ran.returncode, ran.stdout + ran.stderr

    def seen(self, printed: str) -> list[str]:
        """What of an output can be compared with a page."""
        return comparable(printed.replace(str(self._home), _HOME))


def comparable(printed: str) -> list[str]:
    """Lines without what differs from machine to machine, which is said here and nowhere else: sizes in bytes,
    the time of day, how long ago something was, hashes and names of generations, blanks at a line's end, and
    empty lines.
    """
    for pattern, stands_for in _DIFFERS.items():
        printed = re.sub(pattern, stands_for, printed)
    return [line.rstrip() for line in printed.splitlines() if line.strip()]


_DIFFERS = {
    r"\b\d+(\.\d+)? (B|kB|MB)\b": "SIZE",
    r"\b20(2[5-9]|[3-9]\d)-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?": "TODAY",
    r"\b(\d+d )?(\d+h )?(\d+m )?\d+(\.\d+)?(s|m|h|d) ago": "AGO",
    r"\blag \d+d( \d+h)?": "lag LAG",
    r"\b[0-9a-f]{12,64}\b": "HASH",
}


def steps(console: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what is shown below it."""
    found: list[tuple[str, str]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            assert found, f"{line!r} stands before the first command"
            command, shown = found[-1]
            found[-1] = (command, shown + line + "\n")
    return found
