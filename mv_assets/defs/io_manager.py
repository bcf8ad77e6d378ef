"""The IO manager: what an asset staged becomes visible here, and downstream assets read what is VALID."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import dagster as dg
from pyspark.sql import DataFrame

# Only this type tells an input that was asked for as a whole; to ask for its keys would take minutes.
from mv_assets.dagster_internals import AllPartitionsSubset
from mv_assets.defs import events
from mv_assets.defs.deployment import Deployment, as_failures
from mv_assets.defs.partitions import milliseconds
from mv_assets.query.execute.stored_rows import rows_of
from mv_assets.run.result import Result
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.state.model import Outcome, PartitionRow
from mv_assets.views.view import View

_MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class StagedWork:
    """What an asset hands over: staged buckets, and where metadata of a partition goes."""

    refresh: TwoStepRefresh
    describe: Callable[[Mapping[str, Any], str], None]


class PartitionMapIOManager(dg.IOManager):
    """Commits data pointers, partition map and watermark together, and reports what was committed.

    What it has loaded stays there while the block runs.
    """

    def __init__(self, deployment: Deployment, spark: Any) -> None:
        self._deployment = deployment
        self._spark = spark
        self._loaded = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loaded.__exit__(kind, error, trace)

    def handle_output(self, context: dg.OutputContext, obj: StagedWork) -> Iterator[dg.DagsterEvent]:  # type: ignore[override]
        """Commit. The partitions of the run are reported as materialized, or those that are, one by one."""
        with as_failures(), obj.refresh:
            results = obj.refresh.commit()
            described = _described(obj.refresh, results)
        missing = [result for result in results.values() if not result.done]
        key = obj.refresh.view.buckets.key
        if not missing:
            for row, metadata in described:
                obj.describe(metadata, key(row.bucket))
            return
        for row, metadata in described:
            made = events.materialization(
                context.asset_key,
                obj.refresh.view,
                row,
                metadata,
                self._provenance(context, obj.refresh.view),
            )
            yield dg.DagsterEvent.asset_materialization(context.step_context, made)
        raise _incomplete(obj.refresh, results)

    def _provenance(self, context: dg.OutputContext, view: View) -> dict[str, str]:
        """What was read, as Dagster itself says of a range: what it knew when the step began."""
        tags: dict[str, str] = {}
        for name in view.declared.reads:
            key = self._deployment.key_of(name)
            found = context.step_context.maybe_fetch_and_get_input_asset_version_info(key)
            version = None if found is None or found.data_version is None else found.data_version.value
            tags |= events.input_tags(key, None if found is None else found.storage_id, version)
        return tags

    def load_input(self, context: dg.InputContext) -> DataFrame:
        """The rows of a view for the partitions that the downstream asset asks for, all of them VALID."""
        view = self._deployment.by_key(self._deployment.catalog.views.values())[context.asset_key]
        window = milliseconds(context.asset_partitions_time_window) if _is_part(context) else None
        with as_failures():
            return self._loaded.enter_context(self._rows(view, window))

    @contextmanager
    def _rows(self, view: View, window: tuple[int, int] | None) -> Iterator[DataFrame]:
        with (
            self._deployment.open("Dagster", self._spark) as project,
            rows_of(project, view, window) as rows,
        ):
            yield rows


def _is_part(context: dg.InputContext) -> bool:
    """Whether some partitions of the view were asked for; an asset that depends on all has the whole."""
    if not context.has_asset_partitions:
        return False
    # How the asset below is partitioned says little: its partition mapping says what it reads.
    asked = context.step_context.asset_partitions_subset_for_input(context.name)
    return not isinstance(asked, AllPartitionsSubset)


def _described(
    refresh: TwoStepRefresh, results: Mapping[int, Result]
) -> list[tuple[PartitionRow, events.Metadata]]:
    """Metadata of each bucket that is done; the last of them has the view's as well."""
    view, project = refresh.view, refresh.project
    snapshot = project.store.snapshot(view.name)
    done = [bucket for bucket, result in sorted(results.items()) if result.done]
    rows = [snapshot.rows[bucket] for bucket in done if bucket in snapshot.rows]
    described = [(row, events.of_result(row, results[row.bucket])) for row in rows]
    if described:
        described[-1][1].update(events.columns_of(project, view, rows))
        described[-1][1].update(events.of_view(snapshot, project.clock()))
        described[-1][1].update(events.published_at(project, view))
    return described


def _incomplete(refresh: TwoStepRefresh, results: Mapping[int, Result]) -> dg.Failure:
    """Why a run did not bring all its buckets up to date, bucket by bucket."""
    buckets = refresh.view.buckets
    # First what needs a person.
    missing = sorted(
        (result for result in results.values() if not result.done),
        key=lambda result: (result.outcome is not Outcome.FAILED, result.bucket),
    )
    said = [
        f"{buckets.key(result.bucket)} {result.outcome.value}: {result.reason or 'no reason known'}"
        for result in missing
    ]
    failed, view = missing[0].outcome is Outcome.FAILED, refresh.view.name
    to_do = "mend that, and it is asked for again" if failed else "it is asked for again when it is due"
    lines = [
        f"{view} {said[0]}; {to_do}",
        f"{len(missing)} of {len(results)} buckets of {view} are not up to date:",
        *(f"- {each}" for each in said[:_MOST_REASONS]),
        *([f"- and {len(said) - _MOST_REASONS} more"] if len(said) > _MOST_REASONS else []),
    ]
    return dg.Failure(
        description="\n".join(lines),
        metadata={"buckets": [buckets.key(result.bucket) for result in missing]},
        allow_retries=False,
    )


def io_manager(deployment: Deployment) -> dg.IOManagerDefinition:
    """What is read by a run stays there until it ends."""

    @dg.io_manager(required_resource_keys={deployment.naming.spark})  # type: ignore[arg-type]
    def partition_map(context: dg.InitResourceContext) -> Iterator[PartitionMapIOManager]:
        with PartitionMapIOManager(
            deployment, getattr(context.resources, deployment.naming.spark)
        ) as manager:
            yield manager

    return partition_map
