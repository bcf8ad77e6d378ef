"""Commands one after the other in one process, which is faster than a process each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_LOOP = """
import json, sys
from click.testing import CliRunner
from mv_assets.cli import main
from mv_assets.cli.answers import rows
for line in sys.stdin:
    asked = json.loads(line)
    rows.SMALL = asked["small"]
    ended = CliRunner().invoke(main, asked["arguments"], input=asked["input"])
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    print(json.dumps([ended.exit_code, ended.stdout, ended.stderr]), flush=True)
"""


class Commands:
    """Somebody who types command after command; not in the tests' process, as Spark is one a process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own source
            [sys.executable, "-c", _LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, project: Path, *arguments: str, code: int = 0, stdin: str = "", small: int = 50_000
    ) -> tuple[str, str]:
        """What a command says on stdout and on stderr."""
        said = {"arguments": ["--project", str(project), *arguments], "input": stdin, "small": small}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(said) + "\n")
        self._process.stdin.flush()
        ended, out, err = json.loads(self._process.stdout.readline())
        assert ended == code, out + err
        return out, err

    def end(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
