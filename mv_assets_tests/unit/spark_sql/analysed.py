from __future__ import annotations

from collections.abc import Sequence

from mv_assets.buckets import Buckets
from mv_assets.config.errors import Mistake
from mv_assets.spark_sql.scope import Source
from mv_assets.views.admission import Scope, ViewSql, analyse

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
RIDES = Source("rides", {"at": "timestamp", "zone_id": "int", "km": "double"}, time_column="at")
ZONES = Source("zones", {"zone_id": "int", "borough": "string"})
EVENTS = Source("events", {"ts": "bigint", "v": "int"}, time_column="ts", time_unit="ms")

ADVICE = (
    "; with `scope: bucket` it would be allowed, and mean the rows of each bucket alone, "
    "whose hour must lie in it"
)
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
    scope: Scope = "table",
    functions: Sequence[str] = (),
) -> tuple[ViewSql | None, list[Mistake]]:
    """Analyse; without `dimensions`, zones is one iff the text mentions it, as rides is a further table."""
    if dimensions is None:
        dimensions = [ZONES] if "zones" in sql else []
    view, mistakes = analyse(
        sql,
        base=base,
        further=[RIDES] if scope == "bucket" and "rides" in sql else [],
        dimensions=dimensions,
        time_column=time_column,
        buckets=Buckets.of(bucket),
        scope=scope,
        functions=functions,
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
