"""Lakes in a process of their own: in another time zone, or with a Spark that is stopped under them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from mv_assets.spark.errors import EngineUnavailable
from mv_assets.spark.session import Engine
from mv_assets.state.store import Store
from mv_assets_tests.support import engines
from mv_assets_tests.support.lake import view
from mv_assets_tests.unit.spark.unchecked_lake import UncheckedLake, daily, moment, rows_at

TIMES = """
SELECT at AS hour, CAST(at AS string) AS t, CAST(n AS string) AS n, unix_seconds(CAST(d AS timestamp)) AS d
FROM events
"""


def run(what: str, kind: str, folder: Path, **environment: str) -> str:
    """What such a process prints."""
    ran = subprocess.run(  # noqa: S603 - this very file
        [sys.executable, "-m", __name__, what, kind, str(folder)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return ran.stdout or ran.stderr


def times(lake: UncheckedLake, _stop: Callable[[], None]) -> None:
    """Files of each kind of time, in a view that shows them as text."""
    stamps = [moment("1970-01-01"), moment("1970-01-01 23:59:59.999999")]
    bare = [stamp.replace(tzinfo=None) for stamp in stamps]
    others = {"n": pa.array(bare, pa.timestamp("us")), "d": pa.array([stamp.date() for stamp in stamps])}
    lake.declare(view(sql=TIMES))
    lake.put("a.parquet", rows_at(stamps, **others))
    lake.put("b.parquet", rows_at(bare, pa.timestamp("ns"), **others), use_deprecated_int96_timestamps=True)
    print(lake.outcomes(), lake.rows("t", "n", "d"))  # noqa: T201 - read by who started it


def gone(lake: UncheckedLake, stop: Callable[[], None]) -> None:
    """Spark stops when a job begins; then another refresh."""
    lake.declare(daily("x"))
    lake.put("0.parquet", rows_at([0], x=0))
    print(lake.outcomes())  # noqa: T201
    lake.put("1.parquet", rows_at([1], x=1))
    lake.before = stop
    print(lake.outcomes(), [error.split(" (")[0] for error in lake.failures().values()])  # noqa: T201
    lake.before = None
    lake.clock.now += 3_600_000
    try:
        print(lake.outcomes())  # noqa: T201
    except EngineUnavailable as error:
        print("unavailable", "\n" in str(error))  # noqa: T201


def main(what: str, kind: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    with ExitStack() as running:
        engine = Engine(running.enter_context(engines.running(kind)))
        store = Store(f"sqlite:///{folder}/apart.db")
        lake = UncheckedLake(Path(folder) / "apart", store, engine=engine)

        def stop() -> None:
            running.close()
            if kind == "local" and engine._spark is not None:
                engine._spark.stop()

        {"times": times, "gone": gone}[what](lake, stop)
        if kind == "local":
            engine.stop()
        sys.stdout.flush()
        # The client of a lost server would look for it again at the end.
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
