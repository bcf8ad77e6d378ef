"""Names that Dagster knows this project's things by."""

from __future__ import annotations

IO_MANAGER = "mv_assets_io"
SPARK = "mv_assets_spark"
# Runs that compute take a place in it, so that they do not fight for one Spark.
POOL = "mv_assets_spark"
GROUP = "mv_assets"

# Tags of the sensor's runs: which work it was, so that the same work asked for again is known as such.
WORK_TAG = "mv_assets/work"
VIEW_TAG = "mv_assets/view"
REASON_TAG = "mv_assets/reason"

# Dagster's own tags: the partition of a run, or the first and the last of its range.
PARTITION_TAG = "dagster/partition"
FIRST_TAG = "dagster/asset_partition_range_start"
LAST_TAG = "dagster/asset_partition_range_end"

# Tag of runs of the launchpad's jobs that compute: whose they are.
PROJECT_TAG = "mv_assets/project"

# Metadata of a materialization: which content it is.
CONTENT = "content"
