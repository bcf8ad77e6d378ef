"""What happens to the demo meanwhile: files of all kinds, and people who ask for things."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import numpy as np

from mv_assets.clock import clock
from mv_assets.demo import Demo
from mv_assets.demo.errors import DemoRefused
from mv_assets.demo.events import happen
from mv_assets.demo.feeder import feed
from mv_assets.errors import MvError
from mv_assets.maintain.garbage import Garbage
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.graphql_api.client import Refusal
from mv_assets_tests.proof.soak import fares
from mv_assets_tests.proof.soak.city import city, fares_of

_PAUSE_S = 5.0
# How often each.
_FILES = {"late": 30, "correct": 20, "delete": 7, "backfill": 8, "poison": 4, "heal": 8}
_ROWS = {"fares": 8, "delete fares": 6, "delete fares by a vector": 6}
_PEOPLE = {"materialize": 6, "dagster backfill": 4, "gc": 6}
_NOTHING = {"nothing": 7}


class Workload:
    """A thread that feeds the demo. While `still` is held nothing happens."""

    def __init__(self, demo: Demo, dagster: Callable[[], Dagster], seed: int) -> None:
        self._demo = demo
        self._dagster = dagster
        self._chance = np.random.default_rng([seed, 1])
        self._over = threading.Event()
        self.still = threading.Lock()
        self.happened: Counter[str] = Counter()
        self.errors: list[str] = []
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and mend what was damaged."""
        self._over.set()
        self._thread.join()
        with suppress(DemoRefused):
            while True:
                happen("heal", self._demo, clock(), self._chance)

    def _run(self) -> None:
        feed(
            self._demo,
            clock=clock,
            wait=self._between,
            chance=self._chance,
            failed=lambda e: self.errors.append(str(e)),
        )

    def _between(self, _seconds: float) -> bool:
        if self._over.wait(_PAUSE_S):
            return True
        chances = {**_FILES, **_ROWS, **_PEOPLE, **_NOTHING}
        name = str(
            self._chance.choice(list(chances), p=np.array(list(chances.values())) / sum(chances.values()))
        )
        with self.still:
            try:
                self._happen(name)
                self.happened[name] += 1
            except (DemoRefused, Refusal, OSError, MvError) as error:
                # Nothing to do it to, or those who would do it are down at the moment.
                self.happened["refused"] += 1
                if isinstance(error, MvError) and not isinstance(error, DemoRefused):
                    self.errors.append(f"{name}: {error}")
        return False

    def _happen(self, name: str) -> None:
        if name in _FILES:
            happen(name, self._demo, clock(), self._chance)
        elif name in _ROWS:
            change = {"fares": fares.append, "delete fares": fares.delete}.get(name, fares.delete_by_vector)
            change(fares_of(self._demo), self._chance)
        elif name == "gc":
            self._collect()
        elif name != "nothing":
            self._ask(name)

    def _ask(self, name: str) -> None:
        """A person wants some hours computed again."""
        dagster = self._dagster()
        known = dagster.partitions("trips_hourly").materialized
        if not known:
            return
        at = int(self._chance.integers(len(known)))
        wanted = known[at : at + 4]
        if name == "materialize":
            dagster.materialize("trips_hourly", wanted[0], wanted[-1])
        else:
            dagster.backfill("trips_hourly", wanted)

    def _collect(self) -> None:
        with city(self._demo) as lake:
            for view in lake.store.views():
                Garbage(lake.store, lake.manager, lake.warehouse).gc(view)
