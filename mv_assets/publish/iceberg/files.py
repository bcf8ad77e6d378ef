"""A file of the warehouse as an Iceberg table lists it, with its statistics."""

from __future__ import annotations

import math
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType

from mv_assets.state.model import BUCKET

_FLOATING = ("FLOAT", "DOUBLE")
# Stands for columns that the table does not have: ours that tells the bucket.
_NO_COLUMN = -1


class _Ids(dict[str, int]):
    def __missing__(self, _path: str) -> int:
        return _NO_COLUMN


def data_file(metadata: TableMetadata, uri: str, size: int, footer: pq.FileMetaData) -> DataFile:
    """A file that stays where it is."""
    schema, unbounded = metadata.schema(), _with_nan(footer)
    plan = compute_statistics_plan(schema, metadata.properties)
    plan[_NO_COLUMN] = StatisticsCollector(
        field_id=_NO_COLUMN,
        iceberg_type=LongType(),
        mode=MetricsMode(MetricModeTypes.NONE),
        column_name=BUCKET,
    )
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=plan,
        parquet_column_mapping=_Ids(parquet_path_to_id_mapping(schema)),
    )
    statistics.column_sizes.pop(_NO_COLUMN, None)
    for path, number in parquet_path_to_id_mapping(schema).items():
        if path in unbounded:
            statistics.column_aggregates.pop(number, None)
    described: dict[str, Any] = statistics.to_serialized_dict()
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=statistics.partition(metadata.spec(), schema),
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **described,
    )


def _with_nan(footer: pq.FileMetaData) -> set[str]:
    """Columns of which a row group says that a bound is NaN: compared with others, it is lost."""
    groups = [footer.row_group(at) for at in range(footer.num_row_groups)]
    columns = [group.column(at) for group in groups for at in range(group.num_columns)]
    floating = [each for each in columns if each.physical_type in _FLOATING and each.is_stats_set]
    told = [(each.path_in_schema, each.statistics) for each in floating if each.statistics.has_min_max]
    return {path for path, found in told if math.isnan(found.min) or math.isnan(found.max)}
