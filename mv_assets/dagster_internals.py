"""All of Dagster's that is used here and is no public API of its: what a new version may rename or take away.

A run launcher and an instance can't be written without. A test holds all of it against the installed Dagster.
"""

from __future__ import annotations

from dagster._core.definitions.partitions.subset import AllPartitionsSubset
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from dagster._core.instance.ref import InstanceRef
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClassData, deserialize_value, serialize_value
from dagster._utils.hosted_user_process import recon_repository_from_origin

__all__ = [
    "CALLED",
    "AllPartitionsSubset",
    "BulkActionStatus",
    "BulkActionsFilter",
    "CheckRunHealthResult",
    "ConfigurableClassData",
    "ExecuteRunArgs",
    "InstanceRef",
    "JobPythonOrigin",
    "LaunchRunContext",
    "PartitionBackfill",
    "QueuedRunCoordinator",
    "RepositoryPythonOrigin",
    "WorkerStatus",
    "deserialize_value",
    "execute_run",
    "recon_repository_from_origin",
    "serialize_value",
]

# What is called of classes that are public, or are given, and is not public itself.
CALLED = (
    # In the IO manager.
    "dagster:InputContext.step_context",
    "dagster:OutputContext.step_context",
    "dagster._core.execution.context.system:StepExecutionContext.asset_partitions_subset_for_input",
    "dagster._core.execution.context.system:StepExecutionContext.maybe_fetch_and_get_input_asset_version_info",
    # In ticks.
    "dagster:AutomationContext.get_previous_requested_subset",
    "dagster:DagsterInstance.event_log_storage",
    "dagster:DagsterInstance.get_backfills",
    "dagster:DagsterInstance.get_latest_data_version_record",
    "dagster:DagsterInstance.get_latest_storage_id_by_partition",
    "dagster:DagsterInstance.get_runs_count",
    "dagster:DagsterInstance.report_run_failed",
    "dagster:JobDefinition.asset_layer",
    "dagster._core.execution.backfill:PartitionBackfill.get_asset_backfill_data",
    "dagster._core.execution.backfill:PartitionBackfill.is_asset_backfill",
    "dagster._core.storage.event_log.base:EventLogStorage.get_latest_asset_partition_materialization_attempts_without_materializations",
    "dagster._core.storage.event_log.base:EventLogStorage.get_latest_tags_by_partition",
    # In the launcher, and in what it starts.
    "dagster:DagsterInstance.add_run_tags",
    "dagster:DagsterInstance.get_ref",
    "dagster:DagsterInstance.inject_env_vars",
    "dagster:DagsterInstance.report_engine_event",
    "dagster:DagsterInstance.report_run_canceling",
    "dagster:DagsterInstance.run_coordinator",
    "dagster:DagsterInstance.run_monitoring_enabled",
    "dagster._cli.api:execute_run_command.main",
)


def execute_run(what: str) -> None:
    """What the process of a run does, as Dagster's own launcher has it done."""
    # Only the process of runs needs Dagster's commands.
    from dagster._cli.api import execute_run_command  # noqa: PLC0415

    execute_run_command.main([what], "dagster api execute_run", standalone_mode=False)
