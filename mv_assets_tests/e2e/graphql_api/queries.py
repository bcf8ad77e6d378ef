"""The GraphQL of Dagster 1.13, one text a question."""

from __future__ import annotations

_ERRORS = """
    ... on Error { message }
    ... on RunConfigValidationInvalid { errors { message } }
"""
_METADATA = """
    metadataEntries {
        __typename
        label
        ... on IntMetadataEntry { intRepr }
        ... on FloatMetadataEntry { floatRepr }
        ... on TextMetadataEntry { text }
        ... on MarkdownMetadataEntry { mdStr }
        ... on UrlMetadataEntry { url }
        ... on PathMetadataEntry { path }
        ... on JsonMetadataEntry { jsonString }
        ... on BoolMetadataEntry { boolValue }
        ... on TimestampMetadataEntry { timestamp }
    }
"""
_RUN = "runId status jobName creationTime assetSelection { path } tags { key value }"


def _of_asset(fields: str, *, of_partition: bool = True) -> str:
    variables = "$key: AssetKeyInput!, $partition: String!" if of_partition else "$key: AssetKeyInput!"
    return f"""query({variables}) {{
        assetNodeOrError(assetKey: $key) {{ __typename ... on AssetNode {{ {fields} }} }}
    }}"""


ASSETS = "{ assetNodes { assetKey { path } } }"
PARTITIONS = _of_asset(
    """
    partitionKeys
    assetPartitionStatuses { ... on TimePartitionStatuses { ranges { startKey endKey status } } }
    """,
    of_partition=False,
)
MATERIALIZATION = _of_asset(
    f"latestMaterializationByPartition(partitions: [$partition]) {{ runId tags {{ key value }} {_METADATA} }}"
)
UNSYNCED = _of_asset(
    "staleStatus(partition: $partition) staleCauses(partition: $partition) { reason key { path } }"
)
CHECK = f"""query($key: AssetKeyInput!, $name: String!) {{
    assetCheckExecutions(assetKey: $key, checkName: $name, limit: 50) {{
        status evaluation {{ severity description {_METADATA} }}
    }}
}}"""

RUNS = f"""query($filter: RunsFilter) {{
    runsOrError(filter: $filter) {{ __typename ... on Runs {{ results {{ {_RUN} }} }} }}
}}"""
RUN = f"query($id: ID!) {{ runOrError(runId: $id) {{ __typename ... on Run {{ {_RUN} }} }} }}"
FAILURES = """query($id: ID!) {
    logsForRun(runId: $id) {
        __typename
        ... on EventConnection {
            events {
                ... on ExecutionStepFailureEvent { error { message } failureMetadata { description } }
                ... on RunFailureEvent { message error { message } }
            }
        }
    }
}"""
LAUNCH = f"""mutation($params: ExecutionParams!) {{
    launchRun(executionParams: $params) {{
        __typename
        ... on LaunchRunSuccess {{ run {{ runId }} }}
        {_ERRORS}
    }}
}}"""
REEXECUTE = f"""mutation($params: ReexecutionParams!) {{
    launchRunReexecution(reexecutionParams: $params) {{
        __typename
        ... on LaunchRunSuccess {{ run {{ runId }} }}
        {_ERRORS}
    }}
}}"""
CANCEL = """mutation($id: String!) {
    terminateRun(runId: $id, terminatePolicy: SAFE_TERMINATE) {
        __typename
        ... on TerminateRunFailure { message }
        ... on Error { message }
    }
}"""

BACKFILL = f"""mutation($params: LaunchBackfillParams!) {{
    launchPartitionBackfill(backfillParams: $params) {{
        __typename
        ... on LaunchBackfillSuccess {{ backfillId }}
        {_ERRORS}
    }}
}}"""
BACKFILLS = """query($statuses: [BulkActionStatus!]) {
    partitionBackfillsOrError(filters: { statuses: $statuses }) {
        __typename
        ... on PartitionBackfills { results { id status error { message } } }
    }
}"""

REPOSITORY = """{
    repositoriesOrError {
        __typename
        ... on RepositoryConnection {
            nodes { name location { name } sensors { name sensorState { id status } } }
        }
    }
}"""
START_SENSOR = """mutation($which: SensorSelector!) {
    startSensor(sensorSelector: $which) { __typename ... on Error { message } }
}"""
STOP_SENSOR = "mutation($id: String) { stopSensor(id: $id) { __typename ... on Error { message } } }"
TICKS = """query($which: SensorSelector!, $most: Int) {
    sensorOrError(sensorSelector: $which) {
        __typename
        ... on Sensor {
            sensorState {
                ticks(limit: $most) {
                    status timestamp runIds skipReason error { message causes { message } }
                }
            }
        }
    }
}"""
