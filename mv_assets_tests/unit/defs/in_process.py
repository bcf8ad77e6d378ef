"""A Dagster without processes: ticks are evaluated, and the runs that they ask for executed, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster import DagsterInstance, ExecuteInProcessResult
from dagster_pyspark import LazyPySparkResource

from mv_assets.config import Draft, StateDatabase, WarehouseFolder
from mv_assets.defs import Deployment, definitions_of
from mv_assets.defs.names import Naming
from mv_assets.views.catalog import prepare
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.support.spark_lake import SparkLake


@dataclass
class InProcessDagster:
    """A lake's views in Dagster."""

    lake: SparkLake
    instance: DagsterInstance
    extra: dg.Definitions = field(default_factory=dg.Definitions)
    produced_by: Mapping[str, dg.AssetKey] = field(default_factory=dict)
    naming: Naming = field(default_factory=Naming)
    automated: bool = False
    cursors: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.load()

    def load(self) -> None:
        """Load the definitions, as a code location does."""
        lake = self.lake
        project = lake.project.model_copy(
            update={
                "state": StateDatabase(url=f"sqlite:///{lake.folder.parent}/state.db"),
                "warehouse": WarehouseFolder(path=str(lake.folder / lake.storehouse)),
                "spark": lake.engine.declared,
            }
        )
        catalog = prepare(Draft("test", project, folder=lake.code), schemas=False)
        self.deployment = Deployment(
            catalog,
            lake.clock,
            self.produced_by,
            shared=lambda _store: lake.clock,
            naming=self.naming,
            automated=self.automated,
        )
        ours = definitions_of(self.deployment, _spark(lake))
        self.definitions = dg.Definitions.merge(ours, self.extra)
        self.repository = self.definitions.get_repository_def()

    def tick(self, table: str = "events", *, lost: bool = False) -> dg.SensorResult:
        """One tick of a sensor, its events stored; unless the daemon dies before it can."""
        sensor = self.repository.get_sensor_def(self.naming.of(f"watch_{table}"))
        context = dg.build_sensor_context(
            instance=self.instance, repository_def=self.repository, cursor=self.cursors.get(table)
        )
        found = sensor.evaluate_tick(context)
        if not lost:
            for event in found.asset_events:
                self.instance.report_runless_asset_event(event)
            self.cursors[table] = found.cursor
        return dg.SensorResult(
            run_requests=found.run_requests, skip_reason=found.skip_message, asset_events=found.asset_events
        )

    def run(self, request: dg.RunRequest) -> ExecuteInProcessResult:
        """What the daemon makes of a request."""
        tags = {**request.tags, "dagster/sensor_name": "watch", "dagster/run_key": request.run_key or ""}
        return self.execute(request.asset_selection or [], request.partition_key, tags)

    def materialize(
        self,
        view: str,
        first: str,
        last: str | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> ExecuteInProcessResult:
        """What a person does in the UI."""
        ranged = {
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last or first,
        }
        given = {"ops": {view: {"config": dict(config)}}} if config else None
        return self.execute([dg.AssetKey(view)], None, {**ranged, **(tags or {})}, given)

    def execute(
        self,
        assets: Sequence[dg.AssetKey],
        partition: str | None,
        tags: Mapping[str, str],
        config: Mapping[str, Any] | None = None,
    ) -> ExecuteInProcessResult:
        job = self.repository.get_implicit_global_asset_job_def().get_subset(
            asset_selection=set(assets), asset_check_selection=set()
        )
        return job.execute_in_process(
            instance=self.instance,
            tags=dict(tags),
            partition_key=partition,
            run_config=config,
            raise_on_error=False,
        )

    def job(self, name: str, **config: Any) -> ExecuteInProcessResult:
        """What a person does in the launchpad."""
        job = self.repository.get_job(self.naming.of(name))
        op = job.graph.node_defs[0].name
        return job.execute_in_process(
            instance=self.instance, run_config={"ops": {op: {"config": config}}}, raise_on_error=False
        )

    def settle(self, table: str = "events", most: int = 20) -> list[str]:
        """Ticks and runs until nothing is asked for; the runs, as view and buckets."""
        asked: list[str] = []
        for _ in range(most):
            requests = self.tick(table).run_requests or []
            if not requests:
                return asked
            for request in requests:
                asked.append(name_of(request))
                self.run(request)
        raise AssertionError(f"it never comes to rest: {asked}")

    def materialized(self, view: str) -> dict[str, dg.AssetMaterialization]:
        """The latest materialization of each partition."""
        found: dict[str, dg.AssetMaterialization] = {}
        records = self.instance.fetch_materializations(
            self.naming.key(view), limit=10_000, ascending=True
        ).records
        for record in records:
            event = record.asset_materialization
            assert event is not None
            found[event.partition or ""] = event
        return found

    def generations(self, view: str = "v") -> dict[int, str | None]:
        """By day, where its rows are."""
        rows = self.lake.store.snapshot(view).rows
        return {bucket // DAY: row.generation for bucket, row in rows.items()}

    def check(self, view: str, name: str) -> dg.AssetCheckEvaluation | None:
        """What a check said last."""
        key = dg.AssetCheckKey(self.naming.key(view), name)
        record = self.instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
        if record is None or record.event is None or record.event.dagster_event is None:
            return None
        found = record.event.dagster_event.event_specific_data
        assert isinstance(found, dg.AssetCheckEvaluation)
        return found


def name_of(request: dg.RunRequest) -> str:
    """A request as `v 1970-01-01..1970-01-03`."""
    (asset,) = request.asset_selection or ()
    first = request.partition_key or request.tags["dagster/asset_partition_range_start"]
    last = request.partition_key or request.tags["dagster/asset_partition_range_end"]
    return f"{asset.to_user_string()} {first}" + (f"..{last}" if last != first else "")


def failure_of(result: ExecuteInProcessResult) -> str:
    """What a failed run says."""
    (event,) = [event for event in result.all_events if event.is_step_failure]
    data = event.step_failure_data
    failure = data.user_failure_data
    return (failure.description or "") if failure is not None else str(data.error)


@contextmanager
def in_process_dagster(
    lake: SparkLake,
    extra: dg.Definitions | None = None,
    produced_by: Mapping[str, dg.AssetKey] | None = None,
    naming: Naming | None = None,
    *,
    automated: bool = False,
) -> Iterator[InProcessDagster]:
    # In memory: files of its own would take longer to set up than most tests take.
    with DagsterInstance.ephemeral() as instance:
        yield InProcessDagster(
            lake, instance, extra or dg.Definitions(), produced_by or {}, naming or Naming(), automated
        )


def _spark(lake: SparkLake) -> LazyPySparkResource:
    class SharedSpark(LazyPySparkResource):
        @property
        def spark_session(self) -> Any:
            lake.engine.check()
            return lake.engine._spark

    return SharedSpark(spark_config={})
