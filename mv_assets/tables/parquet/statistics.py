"""Statistics of footers, asked for in a process of its own: Arrow may end it over a damaged one.

Only files whose pages can't be read are asked about; all that fail in a look together, as a process takes a
moment to start.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mv_assets.tables.parquet.footer import Footer, Range, stated_range
from mv_assets.tables.times import TimeColumn

if TYPE_CHECKING:
    from mv_assets.tables.inventory import Known

# With no module of the folder that it is started in taken for one of ours.
_CHILD = (sys.executable or "", "-P", "-m", "mv_assets.tables.parquet.statistics")
# A process needs a fraction of a second; one that hangs must not hold up the look.
_LONGEST_S = 5.0
_ALL_S = 15.0


def ranged(found: Mapping[str, Known], footers: Mapping[str, Footer]) -> dict[str, Known]:
    """Files, where their footers could be asked with the range that these state.

    A file may have been replaced since its range was last known: then it is where either says. One that was
    not answered for in time is asked about again at the next look.
    """
    stated = stated_ranges(footers)
    late = {name: found[name]._replace(trusted=False) for name in footers if name not in stated}
    known = {name: _widened(found[name], span) for name, span in stated.items() if span is not None}
    return {**found, **late, **known}


def _widened(known: Known, span: Range) -> Known:
    start, end = known.range or span
    return known._replace(start_ms=min(start, span[0]), end_ms=max(end, span[1]))


def stated_ranges(
    footers: Mapping[str, Footer], child: Sequence[str] = _CHILD, longest_s: float = _LONGEST_S
) -> dict[str, Range | None]:
    """The range that each footer states, None for one that states none or kills who asks it.

    Those that were not answered for in time are not among them.
    """
    found: dict[str, Range | None] = {}
    left, deadline = list(footers), time.monotonic() + _ALL_S
    while left and time.monotonic() < deadline:
        answers, code = _asked(child, (footers[name] for name in left), longest_s)
        found |= zip(left, answers, strict=False)
        if code is not None and code >= 0:
            # It has answered for all, or can't work at all.
            break
        # The one that it died or hung over is not asked again.
        over, left = left[len(answers) :][:1], left[len(answers) + 1 :]
        found |= {} if code is None else dict.fromkeys(over)
    return found


def _asked(
    child: Sequence[str], footers: Iterable[Footer], longest_s: float
) -> tuple[list[Range | None], int | None]:
    """The answers of one process, from the first on, and how it ended: None if it took too long."""
    asked = "".join(_question(footer) for footer in footers)
    path = os.pathsep.join(each or os.getcwd() for each in sys.path)  # noqa: PTH109 - as the interpreter means it
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            child,
            input=asked.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=longest_s,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
    except subprocess.TimeoutExpired as late:
        return list(_answers(late.stdout or b"")), None
    except OSError:
        return [], 1
    return list(_answers(done.stdout)), done.returncode


def _question(footer: Footer) -> str:
    content = base64.b64encode(footer.content).decode()
    return json.dumps([content, footer.time.name, footer.time.unit]) + "\n"


def _answers(said: bytes) -> Iterator[Range | None]:
    """Whole lines: the last may have been cut off."""
    for line in said.split(b"\n")[:-1]:
        span = json.loads(line)
        yield None if span is None else (span[0], span[1])


def _answer() -> None:
    """Answer line by line: what was answered counts, should the next one be the end."""
    # A death that is expected leaves no core behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        content, name, unit = json.loads(line)
        footer = Footer(base64.b64decode(content), TimeColumn(name, unit))
        sys.stdout.write(json.dumps(stated_range(footer)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _answer()
