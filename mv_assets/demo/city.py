"""A made-up city: its zones, and the trips that people take through the day and the week."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from mv_assets.buckets import HOUR

_BOROUGHS = {
    "Harbour": ("Old Docks", "Ferry Landing", "Fish Market", "Customs House", "Lighthouse"),
    "Old Town": ("Cathedral", "Town Hall", "Guild Square", "Theatre", "Mint", "Archive"),
    "Hillside": ("Observatory", "Vineyards", "Upper Park", "Hospital", "Funicular"),
    "Riverbank": ("Mill Race", "Boathouses", "University", "Botanic Garden"),
    "Eastfield": ("Airport", "Stadium", "Fairground", "Rail Yards"),
}
_PER_HOUR = 450
_NIGHT = 0.15
_WEEKEND = 5

TRIPS = pa.schema(
    [
        ("pickup_at", pa.timestamp("ms", "UTC")),
        ("zone_id", pa.int32()),
        ("passengers", pa.int32()),
        ("distance_km", pa.decimal128(6, 2)),
        ("fare", pa.decimal128(8, 2)),
    ]
)


def zones() -> pa.Table:
    """The dimension: every zone with its borough."""
    named = [(borough, zone) for borough, names in _BOROUGHS.items() for zone in names]
    return pa.table(
        {
            "zone_id": pa.array(range(1, len(named) + 1), pa.int32()),
            "zone": [zone for _, zone in named],
            "borough": [borough for borough, _ in named],
        }
    )


def trips(chance: np.random.Generator, start: int, end: int, least: int = 1) -> pa.Table:
    """The trips that begin in `[start, end)`, as many as the hours have, and at least so many."""
    times = [_times(chance, at, min(at - at % HOUR + HOUR, end)) for at in _hours(start, end)]
    times.append(chance.integers(start, end, max(least - sum(map(len, times)), 0)))
    pickup = np.sort(np.concatenate(times))
    count = len(pickup)
    distance = 0.8 + chance.gamma(1.8, 2.4, count)
    fare = 3.2 + 1.9 * distance + chance.gamma(1.2, 1.1, count)
    popularity = 1 / np.arange(1, _zone_count() + 1) ** 0.6
    columns = [
        pa.array(pickup, pa.timestamp("ms", "UTC")),
        pa.array(chance.choice(_zone_count(), count, p=popularity / popularity.sum()) + 1, pa.int32()),
        pa.array(1 + chance.binomial(3, 0.2, count), pa.int32()),
        _decimals(distance, TRIPS.field("distance_km").type),
        _decimals(fare, TRIPS.field("fare").type),
    ]
    return pa.table(columns, schema=TRIPS)


def corrected(found: pa.Table, factor: float) -> pa.Table:
    """The same trips with other fares."""
    place = found.schema.get_field_index("fare")
    fares = found.column("fare").cast(pa.float64()).to_numpy() * factor
    return found.set_column(
        place, found.schema.field(place), _decimals(fares, found.schema.field(place).type)
    )


def bustle(time: int) -> float:
    """How busy the city is at a time, from 0 to 1: two rush hours on weekdays, late nights at weekends."""
    when = datetime.fromtimestamp(time / 1_000, UTC)
    hour = when.hour + when.minute / 60
    if when.weekday() >= _WEEKEND:
        return _NIGHT + 0.6 * _peak(hour, 15, 5) + 0.4 * _peak(hour, 0.5, 2)
    return _NIGHT + 0.7 * _peak(hour, 8.5, 1.7) + 0.85 * _peak(hour, 18, 2.6) + 0.2 * _peak(hour, 13, 2)


def _peak(hour: float, at: float, width: float) -> float:
    away = min(abs(hour - at), 24 - abs(hour - at))
    return math.exp(-((away / width) ** 2))


def _times(chance: np.random.Generator, start: int, end: int) -> np.ndarray:
    expected = _PER_HOUR * bustle(start) * (end - start) / HOUR
    return chance.integers(start, end, chance.poisson(expected))


def _hours(start: int, end: int) -> list[int]:
    """The start, and every full hour after it."""
    return [start, *range(start - start % HOUR + HOUR, end, HOUR)]


def _zone_count() -> int:
    return sum(map(len, _BOROUGHS.values()))


def _decimals(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array(np.round(values, kind.scale)).cast(kind)
