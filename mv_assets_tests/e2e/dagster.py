"""Dagster as a person or a program sees it, in this project's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mv_assets_tests.e2e.graphql_api import queries
from mv_assets_tests.e2e.graphql_api.client import GraphQL
from mv_assets_tests.e2e.graphql_api.records import (
    FIRST,
    LAST,
    PARTITION,
    Check,
    Materialization,
    Run,
    Statuses,
    Tick,
    metadata,
)

_ASSET_JOB = "__ASSET_JOB"


@dataclass(frozen=True, slots=True)
class Dagster:
    graphql: GraphQL
    _where: dict[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, address: str) -> Dagster:
        return cls(GraphQL(address))

    def assets(self) -> list[str]:
        found = self.graphql.ask(queries.ASSETS)["assetNodes"]
        return sorted("/".join(node["assetKey"]["path"]) for node in found)

    def partitions(self, asset: str) -> Statuses:
        found = self.graphql.only("AssetNode", queries.PARTITIONS, key=_key(asset))
        # Before the first materialization the answer may be of another type.
        return Statuses.of(found["partitionKeys"], found["assetPartitionStatuses"].get("ranges", []))

    def materialization(self, asset: str, partition: str) -> Materialization | None:
        """The latest of a partition."""
        asked = queries.MATERIALIZATION
        answer = self.graphql.only("AssetNode", asked, key=_key(asset), partition=partition)
        [found] = answer["latestMaterializationByPartition"]
        if found is None:
            return None
        tags = {tag["key"]: tag["value"] for tag in found["tags"]}
        return Materialization(found["runId"], metadata(found["metadataEntries"]), tags)

    def unsynced(self, asset: str, partition: str) -> list[str]:
        """Why Dagster calls a partition unsynced; nothing if it does not."""
        found = self.graphql.only("AssetNode", queries.UNSYNCED, key=_key(asset), partition=partition)
        if found["staleStatus"] != "STALE":
            return []
        return [f"{'/'.join(cause['key']['path'])} {cause['reason']}" for cause in found["staleCauses"]]

    def check(self, asset: str, name: str) -> Check | None:
        """The latest result of a check; executions that gave none do not count."""
        found = self.graphql.ask(queries.CHECK, key=_key(asset), name=name)["assetCheckExecutions"]
        for each in found:
            if (said := each["evaluation"]) is not None:
                told = metadata(said["metadataEntries"])
                return Check(each["status"], said["severity"], said["description"], told)
        return None

    def runs(self, *, since: float = 0, view: str | None = None) -> list[Run]:
        """Runs created after a time, the oldest first; all of them, or those of a view."""
        found = self.graphql.only("Runs", queries.RUNS, filter={"createdAfter": since})
        runs = [Run.of(each) for each in reversed(found["results"])]
        return [run for run in runs if view is None or view in run.assets]

    def run(self, run_id: str) -> Run:
        return Run.of(self.graphql.only("Run", queries.RUN, id=run_id))

    def unfinished(self) -> list[Run]:
        return [run for run in self.runs() if not run.finished]

    def errors(self, run_id: str) -> str:
        """What a run says it failed of."""
        lines = []
        for event in self.graphql.only("EventConnection", queries.FAILURES, id=run_id)["events"]:
            for part in (event.get("failureMetadata") or {}, event.get("error") or {}, event):
                lines += [text for text in (part.get("description"), part.get("message")) if text]
        return "\n".join(lines)

    def materialize(
        self, view: str, first: str, last: str | None = None, config: Mapping[str, Any] | None = None
    ) -> str:
        """Launch a run over one bucket or a range, as a person does; its id."""
        tags = {PARTITION: first} if last is None else {FIRST: first, LAST: last}
        selector = {"jobName": _ASSET_JOB, "assetSelection": [_key(view)], "assetCheckSelection": []}
        return self._launch(selector, {} if config is None else {"ops": {view: {"config": config}}}, tags)

    def launch_job(self, job: str, config: Mapping[str, Any]) -> str:
        """Launch a job with the config of a run; the run's id."""
        return self._launch({"jobName": job}, config, {})

    def _launch(self, selector: Mapping[str, Any], config: Mapping[str, Any], tags: Mapping[str, str]) -> str:
        params = {
            "selector": {**self._repository(), **selector},
            "runConfigData": config,
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        }
        found = self.graphql.only("LaunchRunSuccess", queries.LAUNCH, params=params)
        return str(found["run"]["runId"])

    def cancel(self, run_id: str) -> None:
        self.graphql.only("TerminateRunSuccess", queries.CANCEL, id=run_id)

    def reexecute_from_failure(self, run_id: str) -> str:
        """Launch a failed run again as the UI does; the new run's id."""
        params = {"parentRunId": run_id, "strategy": "FROM_FAILURE"}
        found = self.graphql.only("LaunchRunSuccess", queries.REEXECUTE, params=params)
        return str(found["run"]["runId"])

    def backfill(self, view: str, partitions: Sequence[str]) -> str:
        """Request a backfill; its id. The daemon takes it up within half a minute."""
        params = {"assetSelection": [_key(view)], "partitionNames": list(partitions)}
        found = self.graphql.only("LaunchBackfillSuccess", queries.BACKFILL, params=params)
        return str(found["backfillId"])

    def backfill_runs(self, backfill: str) -> list[Run]:
        return [run for run in self.runs() if run.tags.get("dagster/backfill") == backfill]

    def backfills_ahead(self) -> list[str]:
        """Backfills that were requested and have no runs yet; they are called requested long after that."""
        found = self.graphql.only("PartitionBackfills", queries.BACKFILLS, statuses=["REQUESTED"])
        return [each["id"] for each in found["results"] if not self.backfill_runs(each["id"])]

    def sensors(self) -> dict[str, str]:
        """Sensors and whether each is RUNNING or STOPPED."""
        return {each["name"]: each["sensorState"]["status"] for each in self._node()["sensors"]}

    def start_sensor(self, name: str) -> None:
        which = {**self._repository(), "sensorName": name}
        self.graphql.only("Sensor", queries.START_SENSOR, which=which)

    def stop_sensor(self, name: str) -> None:
        [state] = [each["sensorState"] for each in self._node()["sensors"] if each["name"] == name]
        self.graphql.only("StopSensorMutationResult", queries.STOP_SENSOR, id=state["id"])

    def ticks(self, sensor: str, most: int = 20) -> list[Tick]:
        """The last ticks of a sensor, the newest first."""
        which = {**self._repository(), "sensorName": sensor}
        found = self.graphql.only("Sensor", queries.TICKS, which=which, most=most)
        return [Tick.of(each) for each in found["sensorState"]["ticks"]]

    def _node(self) -> Any:
        [node] = self.graphql.only("RepositoryConnection", queries.REPOSITORY)["nodes"]
        return node

    def _repository(self) -> dict[str, str]:
        """Where the definitions are, which a restart does not change."""
        if not self._where:
            node = self._node()
            self._where.update(repositoryName=node["name"], repositoryLocationName=node["location"]["name"])
        return self._where


def _key(asset: str) -> dict[str, list[str]]:
    return {"path": asset.split("/")}
