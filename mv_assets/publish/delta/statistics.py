"""What a Delta log says of a file: how many rows it has, and between which values they lie."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

from mv_assets.state.model import BUCKET

# Longer texts would have to be cut, and the log is read by everybody.
_LONGEST = 64
_MILLISECOND = timedelta(milliseconds=1)
# Beyond, there is no millisecond that Python can name.
_LAST = datetime.max.replace(tzinfo=UTC) - _MILLISECOND


def statistics(footer: pq.FileMetaData) -> str:
    """Bounds only of columns whose values tell for sure, and that every reader compares alike."""
    bounds: dict[str, tuple[Any, Any]] = {}
    nulls: dict[str, int] = {}
    unknown = set[str]()
    for name, found in _chunks(footer):
        if found is None or not found.has_null_count:
            unknown.add(name)
            continue
        nulls[name] = nulls.get(name, 0) + found.null_count
        if not found.has_min_max:
            if found.num_values:
                unknown.add(name)
            continue
        try:
            least, most = found.min, found.max
        except (OverflowError, ValueError):
            # Times that Spark has, and Python has not.
            unknown.add(name)
            continue
        if isinstance(least, float) and (math.isnan(least) or math.isnan(most)):
            # Spark says of what holds NaN that it is the greatest; compared with others, it would be lost.
            unknown.add(name)
            continue
        low, high = bounds.get(name, (least, most))
        bounds[name] = min(low, least), max(high, most)
    sure = {name: each for name, each in bounds.items() if name not in unknown and _sure(*each)}
    return json.dumps(
        {
            "numRecords": footer.num_rows,
            "minValues": {name: _shown(low) for name, (low, _) in sure.items()},
            "maxValues": {name: _shown(high, above=True) for name, (_, high) in sure.items()},
            "nullCount": {name: count for name, count in nulls.items() if name not in unknown},
        }
    )


def _chunks(footer: pq.FileMetaData) -> Iterator[tuple[str, Any]]:
    """The statistics of each column that is not inside of another, row group by row group."""
    for at in range(footer.num_row_groups):
        group = footer.row_group(at)
        for number in range(group.num_columns):
            column = group.column(number)
            if "." not in column.path_in_schema and column.path_in_schema != BUCKET:
                yield column.path_in_schema, column.statistics if column.is_stats_set else None


def _sure(low: Any, high: Any) -> bool:
    for value in (low, high):
        if isinstance(value, str):
            if len(value) > _LONGEST:
                return False
        elif isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif isinstance(value, datetime):
            if value.replace(tzinfo=UTC) > _LAST:
                return False
        elif not isinstance(value, int | date):
            return False
    return not isinstance(low, bool)


def _shown(value: Any, *, above: bool = False) -> Any:
    if not isinstance(value, datetime):
        return value.isoformat() if isinstance(value, date) else value
    # Of milliseconds, as readers take it: so a bound lies beyond what it bounds.
    cut = value.replace(microsecond=value.microsecond // 1_000 * 1_000)
    shown = cut + _MILLISECOND if above and cut < value else cut
    return (
        shown.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if shown.tzinfo
        else (shown.isoformat(timespec="milliseconds"))
    )
