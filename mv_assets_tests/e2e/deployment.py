"""All of it together: a site, Spark behind a gate, and Dagster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.gate import Gate
from mv_assets_tests.e2e.graphql_api.records import Run
from mv_assets_tests.e2e.processes import DagsterProcesses
from mv_assets_tests.e2e.site import Site
from mv_assets_tests.e2e.wait import state_of_affairs, wait_until

T = TypeVar("T")


@dataclass(frozen=True)
class Deployment:
    site: Site
    gate: Gate
    processes: DagsterProcesses
    dagster: Dagster

    @classmethod
    def of(cls, site: Site, home: Path, spark: str) -> Self:
        """A deployment of a site with a home of its own, before Spark at an address; not started yet."""
        gate = Gate(spark)
        settings = {
            "MV_ASSETS_PROJECT": str(site.project_file),
            "MV_ASSETS_HOME": str(home / "home"),
            "MV_ASSETS_SPARK_REMOTE": gate.address,
            "MV_ASSETS_SENSOR_INTERVAL": "2",
        }
        processes = DagsterProcesses(home / "dagster", settings)
        return cls(site, gate, processes, Dagster.at(processes.address))

    def shut_down(self) -> None:
        self.gate.open()
        self.processes.stop()
        self.gate.shut_down()

    def wait_until(self, condition: Callable[[], T], awaited: str) -> T:
        return wait_until(condition, awaited, lambda: state_of_affairs(self.dagster, self.processes))

    def finished(self, run_id: str) -> Run:
        """A run when it is over."""

        self.wait_until(lambda: self.dagster.run(run_id).finished, f"the end of run {run_id[:8]}")
        return self.dagster.run(run_id)

    def holding(self, view: str, bucket: str) -> AbstractContextManager[None]:
        """Spark does not begin with a bucket while this lasts, though a run has begun with it."""
        return self.gate.closed(lambda: self.site.being_computed(view, bucket))

    def wait_until_held(self) -> None:
        self.wait_until(lambda: self.gate.is_holding, "a run to be in the middle")

    def calm_down(self) -> None:
        """Until all views are complete and right, and nothing is under way."""
        self.wait_until(self.is_calm, "all views to be complete and nothing to be under way")

    def is_calm(self) -> bool:
        busy = self.dagster.unfinished() or self.dagster.backfills_ahead()
        return not busy and self.site.is_complete() and not self.site.is_due()

    def ticked(self, sensor: str, times: int = 2) -> None:
        """Until a sensor has looked so many times more, from beginning to end."""
        seen = {tick.at for tick in self.dagster.ticks(sensor)}

        def ticks() -> bool:
            new = [tick for tick in self.dagster.ticks(sensor) if tick.at not in seen]
            # The first may have begun before.
            return len([tick for tick in new if tick.status != "STARTED"]) > times

        self.wait_until(ticks, f"{times} ticks of {sensor}")

    def restore(self) -> None:
        """As a test may expect to find it, whatever another left behind."""
        self.gate.open()
        self.site.heal()
        if not self.processes.running:
            self.processes.start()
        for sensor, status in self.dagster.sensors().items():
            if status != "RUNNING":
                self.dagster.start_sensor(sensor)
        self.calm_down()
