"""The files of the table `trips`: a folder a day, and names that say which time they hold."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mv_assets.buckets import DAY

# 06:00:00 to 12:00:00 is `trips_060000_120000.parquet`; a day ends at 240000.
_NAME = re.compile(r"(trips|late)_(\d{2})(\d{2})(\d{2})_(\d{2})(\d{2})(\d{2})(?:-\d+)?\.parquet")


@dataclass(frozen=True, slots=True, order=True)
class TripFile:
    """A file, and the time `[start, end)` that its trips lie in."""

    start: int
    end: int
    path: Path

    @property
    def late(self) -> bool:
        return self.path.name.startswith("late")

    @property
    def name(self) -> str:
        """As the table knows it."""
        return f"{self.path.parent.name}/{self.path.name}"


def files_in(folder: Path) -> list[TripFile]:
    """All files of the days in a folder, by their time; what else lies there is left alone."""
    found = [TripFile(*times, path) for path in folder.glob("*/*.parquet") if (times := _times(path))]
    return sorted(found)


def path_for(folder: Path, kind: str, start: int, end: int) -> Path:
    """A path nobody uses yet, for trips of `[start, end)`, which lie within a day."""
    day = start - start % DAY
    stem = f"{kind}_{_clock(start - day)}_{_clock(end - day)}"
    path, count = folder / day_name(start) / f"{stem}.parquet", 1
    while path.exists():
        count += 1
        path = path.with_name(f"{stem}-{count}.parquet")
    return path


def day_name(time: int) -> str:
    return f"{datetime.fromtimestamp(time / 1_000, UTC):%Y-%m-%d}"


def write(table: pa.Table, path: Path) -> None:
    """Put a file in its place whole: hidden while it is written, so that no look sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = _hidden(path)
    pq.write_table(table, hidden)
    hidden.replace(path)


def write_bytes(content: bytes, path: Path) -> None:
    """The same, for content that is no table."""
    hidden = _hidden(path)
    hidden.write_bytes(content)
    hidden.replace(path)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _clock(milliseconds: int) -> str:
    seconds = milliseconds // 1_000
    return f"{seconds // 3600:02}{seconds // 60 % 60:02}{seconds % 60:02}"


def _times(path: Path) -> tuple[int, int] | None:
    found = _NAME.fullmatch(path.name)
    try:
        day = datetime.strptime(path.parent.name, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    if found is None:
        return None
    h, m, s, to_h, to_m, to_s = (int(part) for part in found.groups()[1:])
    start = day + timedelta(hours=h, minutes=m, seconds=s)
    end = day + timedelta(hours=to_h, minutes=to_m, seconds=to_s)
    return int(start.timestamp() * 1_000), int(end.timestamp() * 1_000)
