"""The soak: kills at random moments, what a service manager would start again, and the verdict."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mv_assets.cli.dev.dagster import loaded
from mv_assets.cli.dev.ports import free_port
from mv_assets.demo import Demo
from mv_assets.errors import MvError
from mv_assets.state import health
from mv_assets.state.model import State
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.graphql_api.client import Refusal
from mv_assets_tests.proof.soak import verdict, victims
from mv_assets_tests.proof.soak.city import DAYS, build, city
from mv_assets_tests.proof.soak.postgres import Postgres
from mv_assets_tests.proof.soak.workload import Workload
from mv_assets_tests.support.dev import UP, Dev

_POLL_S = 0.3
# So many are killed while there is work, the others while all of it is still coming back, say.
_IN_WORK = 2 / 3
_WORK_WITHIN_S = 30
_VICTIM_WITHIN_S = 60
_HOME_IN_USE = re.compile(r"kill -INT ([\d ]+)`")


@dataclass
class Soak:
    """One soak in a folder of its own."""

    folder: Path
    seed: int
    pause_s: tuple[float, float] = (1.0, 18.0)
    days: int = DAYS
    kills: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    restarts: int = 0
    # The versions that a reader of the published tables has seen last.
    published: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self.demo = Demo(self.folder / ".mv_assets" / "demo")
        self._port = free_port()
        self.postgres = Postgres(self.folder)
        build(self.demo, self.postgres.url, self.days)
        self._launch()
        self.workload = Workload(self.demo, lambda: self.dagster, self.seed)

    @property
    def dagster(self) -> Dagster:
        return Dagster.at(f"http://127.0.0.1:{self._port}")

    # What a service manager does.

    def _launch(self) -> None:
        arguments = ("--project", str(self.demo.project), "dev", "--port", str(self._port))
        home = str(self.folder / ".mv_assets")
        self.dev = Dev(self.folder, *arguments, MV_ASSETS_HOME=home, MV_ASSETS_SENSOR_INTERVAL="2")

    def keep(self) -> None:
        """Start again what has died and nobody else starts."""
        self.postgres.start()
        if self.dev.process.poll() is not None:
            said = self.dev.said()
            self._note(f"mv-assets dev ended with {self.dev.process.returncode}: {said[-700:]}")
            self.restarts += 1
            for pid in (_HOME_IN_USE.findall(said) or [""])[0].split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGINT)
            time.sleep(1)
            self._launch()

    def _note(self, what: str) -> None:
        with (self.folder / "soak.log").open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {what}\n")

    def until(self, what: Callable[[], object], awaited: str, patience_s: float) -> bool:
        """Keep all running until something is so; whether it came to be."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            self.keep()
            with suppress(Refusal, OSError, MvError):
                if what():
                    return True
            time.sleep(_POLL_S)
        self._note(f"waited in vain for {awaited}")
        return False

    # The soak.

    def up(self) -> bool:
        return UP in self.dev.said() and loaded(self._port) is not None

    def begin(self, *, filled: bool, patience_s: float = 600) -> None:
        """Until all is up, and there is something to lose if that is asked for."""
        assert self.until(self.up, "all to be up", patience_s), self.dev.said()
        if filled:
            assert self.until(self._filled, "the first rows", patience_s), self.dev.said()
        self.workload.start()

    def _filled(self) -> bool:
        return bool(self.dagster.partitions("trips_hourly").materialized)

    def kill(self, names: Sequence[str], weights: Sequence[float]) -> str:
        """Wait a moment, then kill somebody; who it was."""
        if self._chance.random() < _IN_WORK:
            self.until(lambda: self.up() and self.dagster.unfinished(), "work", _WORK_WITHIN_S)
        rest = time.monotonic() + self._chance.uniform(*self.pause_s)
        while time.monotonic() < rest:
            self.keep()
            time.sleep(_POLL_S)
        [victim] = self._chance.choices(names, weights)
        killed = None
        if victim == "PostgreSQL":
            killed = self.postgres.kill(self._chance)
            # Some outages are short, some are not.
            time.sleep(self._chance.choice([0, 1, 4]))
        else:
            deadline = time.monotonic() + _VICTIM_WITHIN_S
            while killed is None and time.monotonic() < deadline:
                self.keep()
                killed = victims.kill(self.dev, victim, self._chance)
                time.sleep(0 if killed else _POLL_S)
        if killed is not None:
            self.kills[victim] += 1
            self._note(f"killed {victim}: {killed}")
        return victim

    def look(self) -> None:
        """Compare what is VALID now with DuckDB, while no file moves."""
        self.keep()
        with self.workload.still, city(self.demo) as lake:
            try:
                found = verdict.wrong(lake, complete=False)
                found += verdict.unlike_published(lake, self.published, complete=False)
            except MvError as error:
                self._note(f"not checked: {error}")
                return
        self.wrong += found
        for each in found:
            self._note(f"WRONG {each}")

    def progress(self) -> str:
        """One line."""
        with city(self.demo) as lake:
            parts = []
            for view in lake.store.views():
                snapshot = lake.store.snapshot(view)
                counts, header = health.counts(snapshot), snapshot.header
                w = header.buckets.key(header.watermark)
                parts.append(f"{view} {counts[State.VALID]} VALID {counts[State.STALE]} STALE W {w}")
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        parts += [f"wrong {len(self.wrong)}", f"dev started again {self.restarts} times"]
        return f"{self.kills.total()} kills ({killed}); {'; '.join(parts)}"

    def end(self, patience_s: float) -> list[str]:
        """No more files, no more kills: all comes to rest. What is wrong then."""
        self.workload.stop()
        found = list(self.wrong)
        if not self.until(self._at_rest, "rest", patience_s):
            found.append(f"it did not come to rest within {patience_s:.0f} s: {self.progress()}")
        since = time.time()
        if not self.until(lambda: self._ticked(since), "a tick", 90):
            found.append("the sensor does not tick")
        with city(self.demo) as lake:
            return found + verdict.violations(lake, self.dagster, self.published)

    def _at_rest(self) -> bool:
        if self.dagster.unfinished() or self.dagster.backfills_ahead():
            return False
        with city(self.demo) as lake:
            shown = [
                found.materializing or found.failed
                for found in map(self.dagster.partitions, lake.catalog.views)
            ]
            return lake.at_rest() and not any(shown)

    def _ticked(self, since: float) -> bool:
        ticks = [tick for tick in self.dagster.ticks("watch_trips") if tick.at > since]
        return any(tick.status in ("SKIPPED", "SUCCESS") for tick in ticks)

    def stop(self) -> None:
        self.dev.stop()
        for pid in self.dev.started():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.postgres.stop()
