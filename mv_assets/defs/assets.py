"""Views as partitioned assets: a run stages its buckets, and hands them to the IO manager to be committed.

Dagster reads the type of the config, so annotations can't be left for later.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

from mv_assets.buckets import duration
from mv_assets.config import MaterializedView
from mv_assets.defs import checks
from mv_assets.defs.base_tables import width_of
from mv_assets.defs.deployment import Deployment, as_failures
from mv_assets.defs.intent import Expected, RefreshConfig, expected_of
from mv_assets.defs.io_manager import StagedWork
from mv_assets.defs.names import BACKFILL_TAG, POOL, without_beta_warnings
from mv_assets.defs.partitions import partitions_of
from mv_assets.defs.publication import publish_after
from mv_assets.defs.signs_of_life import SignsOfLife
from mv_assets.publish.names import table_of
from mv_assets.run.opened import OpenProject
from mv_assets.run.two_steps import TwoStepRefresh
from mv_assets.state.model import Outcome
from mv_assets.text import code_block
from mv_assets.views.python import ViewFunction
from mv_assets.views.view import View, Window

_MOST = 20


def view_asset(
    deployment: Deployment, view: View, start: int, condition: dg.AutomationCondition[dg.AssetKey] | None
) -> dg.AssetsDefinition:
    """The asset of one view, with partitions from `start` on."""
    declared, naming = view.declared, deployment.naming

    @dg.asset(
        key=deployment.key_of(view.name),
        deps=_deps(deployment, view),
        partitions_def=partitions_of(view.buckets, start),
        backfill_policy=dg.BackfillPolicy.multi_run(declared.max_buckets_per_run),
        io_manager_key=naming.io_manager,
        required_resource_keys={naming.spark},
        description=_description(view),
        freshness_policy=_freshness(declared),
        automation_condition=condition,
        metadata=_metadata(deployment, view),
        owners=list(declared.owners or naming.owners),
        kinds=set(declared.kinds) or naming.kinds or {"spark", "parquet"},
        tags={**naming.tags, **declared.tags},
        group_name=declared.group or naming.group,
        pool=POOL,
        code_version=view.definition,
        output_required=False,
    )
    def compute(context: dg.AssetExecutionContext, config: RefreshConfig) -> Iterator[dg.Output[StagedWork]]:
        who = f"Dagster run {context.run.run_id[:8]}"
        buckets = [view.buckets.parse(key) for key in context.partition_keys]
        expected = expected_of(context.run, context.instance, force=config.force)
        by_person = expected is not Expected.DUE
        context.log.info("%s: %s", expected.value, view.buckets.span(buckets))
        spark = getattr(context.resources, naming.spark)
        with (
            as_failures(),
            deployment.open(who, spark) as project,
            TwoStepRefresh(
                project, view, buckets, named=by_person, progress=SignsOfLife(context.log)
            ) as refresh,
        ):
            if by_person:
                refresh.force(f"asked for by {who}", valid_too=expected is Expected.FORCED)
            if refresh.stage() or _has_to_report(refresh, expected, context.run):
                # The IO manager commits before this goes on.
                yield _output(StagedWork(refresh, _describer(context)), context.run.run_id)
            else:
                for bucket, result in refresh.results.items():
                    context.log.info("%s: %s", view.buckets.key(bucket), result.reason)
            publish_after(context.log, project, view)
            _report_wrong(context, project, view)

    return compute


def _output(staged: StagedWork, version: str) -> dg.Output[StagedWork]:
    with without_beta_warnings():
        return dg.Output(staged, data_version=dg.DataVersion(version))


def _report_wrong(context: dg.AssetExecutionContext, project: OpenProject, view: View) -> None:
    """A run that did its part must not be all that is seen of a view that has something wrong."""
    wrong = view.kept_in(project.store, project.clock())[1]
    for line in wrong.sentences(view.name, view.buckets)[:_MOST]:
        context.log.error(line)
    verdict = checks.no_failed_buckets(view, wrong)
    if not verdict.passed:
        # After the materialization: Dagster counts a check only if it is younger.
        context.instance.report_runless_asset_event(verdict.evaluation(context.asset_key))


def _has_to_report(refresh: TwoStepRefresh, expected: Expected, run: dg.DagsterRun) -> bool:
    """Whether a run that staged nothing has something to report; a machine's, too early or late, has not.

    But a backfill, whosesoever, waits for its partitions until it hears of them.
    """
    failed = any(result.outcome is Outcome.FAILED for result in refresh.results.values())
    return failed or expected is not Expected.DUE or BACKFILL_TAG in run.tags


def _describer(context: dg.AssetExecutionContext) -> Callable[[Mapping[str, Any], str], None]:
    return lambda metadata, key: context.add_asset_metadata(metadata, partition_key=key)


def _deps(deployment: Deployment, view: View) -> list[dg.AssetDep]:
    declared = view.declared
    mappings: dict[str, dg.PartitionMapping | None] = {
        **{window.table: _overlapping(deployment, view, window) for window in view.windows},
        **dict.fromkeys(declared.joined),
    }
    # How an asset of the user's own is partitioned is not known here: in another time zone, for one, no
    # partition matches a bucket, and Dagster would fail every run.
    mappings |= {name: dg.AllPartitionMapping() for name in mappings if name in deployment.produced_by}
    return [
        dg.AssetDep(deployment.key_of(name), partition_mapping=mapping) for name, mapping in mappings.items()
    ]


def _overlapping(deployment: Deployment, view: View, window: Window) -> dg.PartitionMapping:
    """The partitions of a table that a bucket's window reaches; in another time zone Dagster can't tell."""
    upstream = deployment.catalog.views.get(window.table)
    width = upstream.buckets if upstream is not None else width_of(deployment, window.table)
    if width is None or width.zone != view.buckets.zone:
        return dg.AllPartitionMapping()
    bucket = view.buckets.floor(0)
    begin, end = view.buckets.window(bucket, window.before, window.after)
    return dg.TimeWindowPartitionMapping(
        start_offset=-width.count(begin, bucket),
        end_offset=width.count(view.buckets.next(bucket), end),
        allow_nonexistent_upstream_partitions=True,
    )


def _freshness(declared: MaterializedView) -> dg.FreshnessPolicy | None:
    """What Dagster itself watches: the last materialization; the check `fresh` looks at all buckets."""
    if declared.max_staleness is None:
        return None
    # Dagster looks each minute, and takes no shorter window.
    longest = max(timedelta(milliseconds=declared.max_staleness), timedelta(minutes=1))
    return dg.FreshnessPolicy.time_window(fail_window=longest)


def _description(view: View) -> str:
    declared = view.declared
    about = f"{declared.description.strip()}\n\n" if declared.description.strip() else ""
    tables = " and ".join(f"`{name}`" for name in declared.timed)
    what = f"A materialized view of {tables}, {view.buckets.text} buckets."
    return f"{about}{what}\n\n{_body(declared)}"


def _body(declared: MaterializedView) -> str:
    """What computes it, for people."""
    if declared.sql is None:
        return f"`{declared.python_name}`"
    return code_block(declared.sql.strip(), "sql")


def _metadata(deployment: Deployment, view: View) -> dict[str, Any]:
    declared = view.declared
    sources = {
        name: [dg.TableColumnDep(deployment.key_of(table), column) for table, column in found]
        for name, found in view.body.lineage.items()
    }
    limit = {} if declared.max_staleness is None else {"max_staleness": duration(declared.max_staleness)}
    return {
        "python" if declared.sql is None else "sql": dg.MetadataValue.md(_body(declared)),
        "bucket": view.buckets.text,
        "time_column": declared.time_column,
        "on_base_delete": declared.on_base_delete,
        **limit,
        **_published_as(deployment, view),
        **({} if view.body.columns is None else {"dagster/column_schema": _columns(view.body.columns)}),
        "dagster/column_lineage": dg.TableColumnLineage(sources),
        **_code_references(deployment, view),
    }


def _code_references(deployment: Deployment, view: View) -> dict[str, Any]:
    """Where what computes it is written: its function, or its place in the project file."""
    catalog = deployment.catalog
    if isinstance(view.body, ViewFunction):
        code = view.body.loaded.function.__code__
        file, line = code.co_filename, code.co_firstlineno
    elif catalog.file is not None:
        file, line = str(catalog.file), catalog.lines.get(f"views.{view.name}", 1)
    else:
        return {}
    found = dg.LocalFileCodeReference(file_path=file, line_number=line, label=view.name)
    return {"dagster/code_references": dg.CodeReferencesMetadataValue(code_references=[found])}


def _published_as(deployment: Deployment, view: View) -> dict[str, Any]:
    """Where other tools find it."""
    target = deployment.catalog.target(view.name)
    if target is None:
        return {}
    return {"dagster/table_name": table_of(target, view.name, deployment.catalog.project.warehouse.path)}


def _columns(names: Iterable[str]) -> dg.TableSchema:
    return dg.TableSchema([dg.TableColumn(name, "?") for name in names])
