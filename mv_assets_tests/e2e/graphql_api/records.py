"""What Dagster tells of runs, partitions, checks and ticks, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

PARTITION = "dagster/partition"
FIRST, LAST = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
_UNFINISHED = frozenset({"QUEUED", "NOT_STARTED", "MANAGED", "STARTING", "STARTED", "CANCELING"})


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    status: str
    job: str
    assets: tuple[str, ...]
    tags: Mapping[str, str]
    created: float

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        return cls(
            found["runId"],
            found["status"],
            found["jobName"],
            tuple("/".join(key["path"]) for key in found["assetSelection"] or ()),
            {tag["key"]: tag["value"] for tag in found["tags"]},
            found["creationTime"],
        )

    @property
    def finished(self) -> bool:
        return self.status not in _UNFINISHED

    @property
    def range(self) -> tuple[str, str] | None:
        """The first and the last bucket that the run is about."""
        first, last = self.tags.get(FIRST), self.tags.get(LAST)
        one = self.tags.get(PARTITION)
        return (first, last) if first and last else (one, one) if one else None

    @property
    def sensor(self) -> str | None:
        return self.tags.get("dagster/sensor_name")

    def covers(self, view: str, bucket: str) -> bool:
        # Keys of buckets sort as their times do.
        return view in self.assets and self.range is not None and self.range[0] <= bucket <= self.range[1]


@dataclass(frozen=True, slots=True)
class Statuses:
    """Which partitions of an asset are what; keys in their order."""

    materialized: Sequence[str]
    failed: Sequence[str]
    materializing: Sequence[str]
    missing: Sequence[str]

    @classmethod
    def of(cls, keys: Sequence[str], ranges: Sequence[Mapping[str, str]]) -> Self:
        found = dict.fromkeys(keys, "MISSING")
        at = {key: number for number, key in enumerate(keys)}
        for each in ranges:
            for key in keys[at[each["startKey"]] : at[each["endKey"]] + 1]:
                found[key] = each["status"]

        def those(status: str) -> list[str]:
            return [key for key in keys if found[key] == status]

        return cls(those("MATERIALIZED"), those("FAILED"), those("MATERIALIZING"), those("MISSING"))


@dataclass(frozen=True, slots=True)
class Materialization:
    run: str
    metadata: Mapping[str, Any]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Check:
    """The latest execution of an asset check."""

    status: str
    severity: str | None
    description: str | None
    metadata: Mapping[str, Any]

    @property
    def passed(self) -> bool:
        return self.status == "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class Tick:
    status: str
    at: float
    runs: tuple[str, ...]
    error: str | None
    skipped: str | None

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        error = found["error"] and "".join(
            each["message"] for each in (found["error"], *found["error"]["causes"])
        )
        return cls(found["status"], found["timestamp"], tuple(found["runIds"]), error, found["skipReason"])


def metadata(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata by its labels: the one field that an entry has beside its label and type."""
    return {
        entry["label"]: next((v for k, v in entry.items() if k not in ("__typename", "label")), None)
        for entry in entries
    }
