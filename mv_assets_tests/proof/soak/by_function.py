"""A view of the soak by a function; it lies beside the project file then."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it


def by_zone(trips: DataFrame) -> DataFrame:
    """The trips of each zone in a bucket, dated by the first of them."""
    first = F.min("pickup_at").alias("at")
    return trips.groupBy("zone_id").agg(first, F.count("*").alias("trips"))
