"""B12, commands while `mv-assets dev` runs for the same home: on its warm Spark, and on one of their own."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.support.dev import UP, dev

_ROUNDS, _DAYS = 5, 14
_RATIO, _NOTHING_S = 0.25, 1.5
_SQL = "SELECT date_trunc('day', at) AS day, shop_id, sum(amount) AS amount FROM orders GROUP BY ALL"
_ASKED = "SELECT shop_id, sum(amount) AS amount FROM orders GROUP BY ALL"


def run() -> Sequence[Figure]:
    folder = Path(tempfile.mkdtemp())
    try:
        shop = Shop(folder)
        shop.write()
        # Its sensor is not to do what the commands are measured at.
        with dev(folder, MV_ASSETS_SENSOR_INTERVAL="100000") as running:
            running.until(lambda: UP in running.said())
            shop.call("refresh")
            return _figures(shop)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _figures(shop: Shop) -> Sequence[Figure]:
    steps: dict[str, Callable[[], Callable[[], object]]] = {
        "query": lambda: lambda: shop.call("query", _ASKED, computes=True),
        "query, own": lambda: lambda: shop.call("query", _ASKED, "--own-spark", computes=True),
        "refresh": shop.late,
        "refresh, own": lambda: shop.late("--own-spark"),
        "nothing": lambda: lambda: shop.call("refresh"),
        "help": lambda: lambda: shop.call("--help"),
    }
    samples = interleaved(_ROUNDS, steps)
    load = f"load {os.getloadavg()[1]:.1f}"
    nothing, helped = (statistics.median(samples[name]) for name in ("nothing", "help"))
    return [
        ratio(
            "B12",
            f"query of a small view / with its own Spark, {load}",
            samples,
            "query",
            "query, own",
            _RATIO,
        ),
        ratio("B12", f"refresh of one late file / same, {load}", samples, "refresh", "refresh, own", _RATIO),
        Figure(
            "B12", "refresh with nothing to do", nothing, "s", _NOTHING_S, f"--help {helped:.2f} s; {load}"
        ),
    ]


@dataclass(slots=True)
class Shop:
    """Two weeks of orders."""

    folder: Path
    _files: int = 0

    def write(self) -> None:
        (self.folder / "orders").mkdir()
        for day in range(_DAYS):
            self.put(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=day), 144)
        view = {"name": "daily", "base": "orders", "sql": _SQL, "time_column": "day", "bucket": "1d"}
        table = {"name": "orders", "path": "orders", "time_column": "at", "settle": "1s"}
        project = {"tables": [table], "views": [{**view, "start": "2024-01-01"}]}
        (self.folder / "project.yaml").write_text(yaml.safe_dump(project))

    def late(self, *options: str) -> Callable[[], object]:
        self.put(datetime(2024, 1, 3, tzinfo=UTC), 1)
        time.sleep(1.5)
        return lambda: self.call("refresh", *options, computes=True)

    def call(self, *arguments: str, computes: bool = False) -> None:
        command = [str(Path(sys.executable).parent / "mv-assets"), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        assert done.returncode == 0, done.stdout + done.stderr
        # Each has the Spark that it is measured with.
        if computes:
            assert ("keeps warm" in done.stderr) == ("--own-spark" not in arguments), done.stderr

    def put(self, first: datetime, count: int) -> None:
        times = [first + timedelta(minutes=10 * number) for number in range(count)]
        rows = {"at": times, "shop_id": [number % 2 for number in range(count)], "amount": [12.5] * count}
        draft = self.folder / ".draft"
        pq.write_table(pa.table(rows), draft)
        draft.rename(self.folder / "orders" / f"{self._files:04}.parquet")
        self._files += 1
