"""What happens to the files of a lake, one atomic change at a time, and which buckets it concerns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import DAY, HOUR, Buckets
from mv_assets.demo.city import corrected
from mv_assets.demo.errors import DemoRefused
from mv_assets.demo.feeder import SLOT, late_file
from mv_assets.demo.files import TripFile, day_name, files_in, write, write_bytes
from mv_assets.demo.place import Demo

_HOURS, _DAYS = Buckets.of("1h"), Buckets.of("1d")
_RECENT = 5 * DAY
_LATE_ROWS = 40
# Retention never takes the last days: the other events need something to happen to.
_DAYS_LEFT = 2


@dataclass(frozen=True, slots=True)
class Happened:
    """An event: the files it changed, what was done to them, and what follows for the time they hold."""

    files: tuple[str, ...]
    start: int
    end: int
    what: str
    follows: str

    @property
    def hours(self) -> list[str]:
        """Buckets of trips_hourly."""
        return [_HOURS.key(bucket) for bucket in _HOURS.between(self.start, self.end)]

    @property
    def days(self) -> list[str]:
        """Buckets of trips_daily."""
        return [_DAYS.key(bucket) for bucket in _DAYS.between(self.start, self.end)]


Event = Callable[[Demo, int, np.random.Generator], Happened]


def late(demo: Demo, now: int, chance: np.random.Generator) -> Happened:
    """Trips of some days ago arrive."""
    midnight = now - now % DAY
    day = midnight - int(chance.integers(2, 6)) * DAY
    start = day + int(chance.integers(7, 21)) * HOUR
    path = late_file(demo, start, chance, _LATE_ROWS)
    rows = pq.read_metadata(path).num_rows
    (file,) = [each for each in files_in(demo.trips) if each.path == path]
    return Happened(
        (file.name,),
        file.start,
        file.end,
        f"{file.name} arrived late, with {rows} trips",
        "its hour becomes STALE and is computed again, then its day",
    )


def correct(demo: Demo, now: int, chance: np.random.Generator) -> Happened:
    """Somebody finds that fares were wrong, and rewrites a file."""
    file = _some_file(demo, now, chance)
    factor = float(chance.uniform(1.05, 1.25))
    try:
        content = corrected(pq.read_table(file.path, partitioning=None), factor)
    except (pa.ArrowException, KeyError, OSError) as error:
        why = str(error).split("\n", 1)[0]
        raise DemoRefused(
            f"{file.path} can't be read as a file of trips ({why}); delete it, then try again"
        ) from error
    write(content, file.path)
    return Happened(
        (file.name,),
        file.start,
        file.end,
        f"{file.name} was rewritten, with fares {factor - 1:.0%} higher",
        "its six hours become STALE and are computed again, then their day",
    )


def delete(demo: Demo, now: int, _chance: np.random.Generator) -> Happened:
    """Retention takes the oldest day."""
    kept_from = day_name(now - (_DAYS_LEFT - 1) * DAY)
    days = sorted(path.name for path in demo.trips.glob("[0-9]*") if path.name < kept_from)
    if not days:
        raise DemoRefused(
            "only the last days are left, and they are kept; bring others back with `mv-assets demo backfill`"
        )
    demo.deleted.mkdir(exist_ok=True)
    files = _of_day(demo.trips, days[0])
    _move_day(demo.trips / days[0], demo.deleted / days[0])
    return _whole_day(
        days[0],
        files,
        f"the {len(files)} files of {days[0]} were deleted",
        "its hours become STALE and then empty, and so does the day",
    )


def backfill(demo: Demo, _now: int, _chance: np.random.Generator) -> Happened:
    """The day that was deleted last is back."""
    days = sorted(path.name for path in demo.deleted.glob("[0-9]*"))
    if not days:
        raise DemoRefused("nothing was deleted that could be brought back; try `mv-assets demo delete` first")
    _move_day(demo.deleted / days[-1], demo.trips / days[-1])
    files = _of_day(demo.trips, days[-1])
    return _whole_day(
        days[-1],
        files,
        f"the {len(files)} files of {days[-1]} are back",
        "its hours become STALE and are computed again, then the day",
    )


def poison(demo: Demo, now: int, chance: np.random.Generator) -> Happened:
    """A file loses its end."""
    file = _some_file(demo, now, chance)
    original = demo.originals / file.name
    original.parent.mkdir(parents=True, exist_ok=True)
    original.unlink(missing_ok=True)
    os.link(file.path, original)
    content = file.path.read_bytes()
    write_bytes(content[: len(content) * 2 // 3], file.path)
    return Happened(
        (file.name,),
        file.start,
        file.end,
        f"{file.name} lost its last third, with the footer",
        "its six hours become STALE and fail, with the file's name, and keep the rows they had; "
        "all others go on; `mv-assets demo heal` mends it",
    )


def heal(demo: Demo, _now: int, _chance: np.random.Generator) -> Happened:
    """The damaged file is whole again."""
    damaged = _damaged(demo)
    if not damaged:
        raise DemoRefused("no file is damaged; try `mv-assets demo poison` first")
    file = max(damaged)
    # A day that was deleted meanwhile comes back whole.
    folder = demo.trips if (demo.trips / file.path.parent.name).is_dir() else demo.deleted
    file.path.replace(folder / file.name)
    return Happened(
        (file.name,),
        file.start,
        file.end,
        f"{file.name} is whole again",
        "its hours have the inputs they were computed from, so they are VALID again without being computed, "
        "unless something else changed there",
    )


EVENTS: Mapping[str, Event] = {
    "late": late,
    "correct": correct,
    "delete": delete,
    "backfill": backfill,
    "poison": poison,
    "heal": heal,
}


def happen(name: str, demo: Demo, now: int, chance: np.random.Generator) -> Happened:
    """Let one event happen.

    Raises:
        DemoRefused: there is no demo yet, or nothing for the event to happen to.

    """
    if not demo.exists():
        raise DemoRefused(f"there is no demo data in {demo.root} yet; start the demo with `mv-assets dev`")
    return EVENTS[name](demo, now, chance)


def _some_file(demo: Demo, now: int, chance: np.random.Generator) -> TripFile:
    """A whole file of the last days before today, else of any day before."""
    midnight, damaged = now - now % DAY, {file.name for file in _damaged(demo)}
    whole = [
        file
        for file in files_in(demo.trips)
        if not file.late
        and file.end - file.start == SLOT
        and file.end <= midnight
        and file.name not in damaged
    ]
    if not whole:
        raise DemoRefused(
            "no whole file is left to do that to; bring days back with `mv-assets demo backfill`, "
            "or mend files with `mv-assets demo heal`"
        )
    recent = [file for file in whole if file.start >= midnight - _RECENT] or whole
    return recent[int(chance.integers(len(recent)))]


def _damaged(demo: Demo) -> list[TripFile]:
    """The originals of damaged files whose day still exists, deleted or not."""
    places = (demo.trips, demo.deleted)
    return [
        file
        for file in files_in(demo.originals)
        if any((place / file.path.parent.name).is_dir() for place in places)
    ]


def _of_day(folder: Path, day: str) -> list[TripFile]:
    return [file for file in files_in(folder) if file.path.parent.name == day]


def _whole_day(day: str, files: list[TripFile], what: str, follows: str) -> Happened:
    start = _DAYS.parse(day)
    return Happened(tuple(file.name for file in files), start, start + DAY, what, follows)


def _move_day(source: Path, target: Path) -> None:
    """One rename; file by file only where others have arrived for that day meanwhile."""
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        for path in sorted(source.iterdir()):
            path.replace(target / path.name)
        source.rmdir()
