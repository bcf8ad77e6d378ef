"""A refresh on file systems that fill up: `python -m mv_assets_tests.scenarios.full_disk FOLDER HOW`.

In a namespace of its own every user may mount small ones. Where that is not permitted, Spark may not make its
files longer than some bytes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mv_assets.config import Spark
from mv_assets.errors import MvError
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.support import engines
from mv_assets_tests.support.lake import day as moment
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.spark_lake import SparkLake

_SIZES = {"warehouse": "8m", "state": "1m", "temp": "8m"}
_ROWS = "SELECT at AS hour, x AS n FROM events"
# Enough for a probe of one byte, too little for rows and their checksums.
_LEFT = 8_192
_APART = ["unshare", "--user", "--map-root-user", "--mount"]


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a refresh: the view's error, the buckets' outcomes, and their recorded errors."""

    error: str
    message: str
    outcomes: list[str]
    failures: list[str]


def run(folder: Path) -> dict[str, Said]:
    """What refreshes say at each step: at first, and with each place full and then with room again."""
    may_mount = subprocess.run([*_APART, "true"], check=False, capture_output=True).returncode == 0  # noqa: S603
    command = [sys.executable, "-m", __name__, str(folder), "mounted" if may_mount else "limited"]
    ran = subprocess.run(  # noqa: S603 - this very file
        [*(_APART if may_mount else []), *command], capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    found: Mapping[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return {step: Said(**said) for step, said in found.items()}


@contextmanager
def full(place: Path) -> Iterator[None]:
    """The file system of a folder is full but for a few bytes."""
    ballast = place / ".ballast"
    with ballast.open("wb", buffering=0) as out, suppress(OSError):
        while out.write(bytes(4096)):
            pass
    os.truncate(ballast, ballast.stat().st_size - _LEFT)
    yield
    ballast.unlink()


@contextmanager
def limited(_place: Path) -> Iterator[None]:
    """Spark can't write more than a few bytes to a file."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (java,) = [int(pid) for pid in children if "java" in Path(f"/proc/{pid}/cmdline").read_text()]
    before = resource.prlimit(java, resource.RLIMIT_FSIZE)
    resource.prlimit(java, resource.RLIMIT_FSIZE, (16, before[1]))
    yield
    resource.prlimit(java, resource.RLIMIT_FSIZE, before)


def main(where: str, how: str) -> None:
    warnings.simplefilter("ignore")
    folder, said = Path(where), dict[str, dict[str, Any]]()
    for name, size in _SIZES.items():
        (folder / name).mkdir(parents=True)
        if how == "mounted":
            mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder / name)]
            subprocess.run(mount, check=True)  # noqa: S603 - in a namespace of our own
    temporary = {"spark.local.dir": str(folder / "temp")}
    with engines.connect_server({**engines.SMALL, **temporary}) as address:
        store = Store(f"sqlite:///{folder}/state/state.db")
        lake = SparkLake(folder, store, [view(sql=_ROWS)], engine=Engine(Spark(remote=address)))
        lake.days(0)
        said["at first"] = _refreshed(lake)
        for day, name in enumerate(_SIZES, 1):
            lake.days(day)
            if name == "temp":
                # More than what Spark may yet clear away of earlier jobs.
                lake.write("many.parquet", [moment(day, each / 1_250) for each in range(30_000)])
            if how == "mounted" or name != "state":
                with full(folder / name) if how == "mounted" else limited(folder / name):
                    said[f"{name} full"] = _refreshed(lake)
                    lake.check(complete=False)
            said[f"{name} with room"] = _refreshed(lake)
            lake.check()
    print(json.dumps(said), flush=True)  # noqa: T201 - read by who started it
    os._exit(0)


def _refreshed(lake: SparkLake) -> dict[str, Any]:
    try:
        report = lake.run("v")["v"]
        outcomes, error = [result.outcome.value for result in report.results.values()], report.error
    except MvError as raised:
        outcomes, error = [], raised
    failures = [
        record.last_error for record in lake.store.snapshot("v").attempts.values() if record.last_error
    ]
    # As if heartbeats had run out.
    lake.clock.now += 3_600_000
    return {"error": type(error).__name__, "message": str(error), "outcomes": outcomes, "failures": failures}


if __name__ == "__main__":
    main(*sys.argv[1:])
