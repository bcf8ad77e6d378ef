from __future__ import annotations

from collections.abc import Sequence

from mv_assets.buckets import Buckets
from mv_assets.errors import Mistake
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import ViewSql, analyse

TRIPS = Source(
    "trips",
    {
        "pickup_at": "timestamp",
        "zone_id": "int",
        "Fare": "decimal(10,2)",
        "payload": "struct<a:int,b:struct<c:string>>",
        "stops": "array<int>",
        "legs": "array<struct<km:double>>",
        "tags": "map<string,string>",
    },
    time_column="pickup_at",
)
ZONES = Source("zones", {"zone_id": "int", "borough": "string"})
EVENTS = Source("events", {"ts": "bigint", "v": "int"}, time_column="ts", time_unit="ms")

HOURLY = """
    SELECT date_trunc('hour', t.pickup_at) AS hour, z.borough, count(*) AS trips, sum(t.fare) AS fare
    FROM trips t JOIN zones z USING (zone_id) GROUP BY ALL
"""


def look(
    sql: str,
    *,
    base: Source = TRIPS,
    dimensions: Sequence[Source] | None = None,
    time_column: str = "hour",
    bucket: str = "1d",
) -> tuple[ViewSql | None, list[Mistake]]:
    """Analyse; without `dimensions`, zones is one iff the text mentions it."""
    if dimensions is None:
        dimensions = [ZONES] if "zones" in sql else []
    view, mistakes = analyse(
        sql, base=base, dimensions=dimensions, time_column=time_column, buckets=Buckets.of(bucket)
    )
    assert (view is None) == bool(mistakes)
    return view, mistakes


def view_of(sql: str, **given: object) -> ViewSql:
    view, mistakes = look(sql, **given)  # type: ignore[arg-type]
    assert not mistakes, mistakes
    assert view is not None
    return view


def whats(sql: str, **given: object) -> list[str]:
    return [mistake.what for mistake in look(sql, **given)[1]]  # type: ignore[arg-type]


def only(sql: str, **given: object) -> Mistake:
    (mistake,) = look(sql, **given)[1]  # type: ignore[arg-type]
    return mistake
