"""Names that Dagster knows this project's things by."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import dagster as dg
from pydantic import AfterValidator, Field, field_validator

from mv_assets.config.declared import Declared, written
from mv_assets.config.values import KeyPrefix, Kinds, Label, Owners, Tags, label

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

BACKFILL_TAG = "dagster/backfill"

# Tag of runs of the launchpad's jobs that compute: whose they are.
PROJECT_TAG = "mv_assets/project"

# Metadata of a materialization: which content it is.
CONTENT = "content"


@contextmanager
def without_beta_warnings() -> Iterator[None]:
    """Which of Dagster's features are in beta is our concern, not that of whoever uses this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        yield


class Options(Declared):
    """What is said of a project beside what it is made of, in Python or in a component's file."""

    name_prefix: Annotated[str, AfterValidator(lambda given: given and label(given))] = ""
    key_prefix: KeyPrefix = written(())
    group: Label = GROUP
    tags: Tags = Field({})
    kinds: Kinds = written(())
    owners: Owners = written(())
    interval_seconds: int | None = Field(None, ge=1)

    @field_validator("key_prefix", "kinds", "owners", mode="before")
    @classmethod
    def _one_alone(cls, given: Any) -> Any:
        return (given,) if isinstance(given, str) else given

    @property
    def naming(self) -> Naming:
        return Naming(
            self.name_prefix,
            self.key_prefix or (),
            self.group,
            self.tags,
            frozenset(self.kinds),
            self.owners,
        )


@dataclass(frozen=True, slots=True)
class Naming:
    """What a project's things are called and shown as, where one Dagster has several projects."""

    # Before the names of jobs, sensors, schedules and resources.
    prefix: str = ""
    # Before the keys of views and tables.
    key_prefix: tuple[str, ...] = ()
    group: str = GROUP
    tags: Mapping[str, str] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    owners: tuple[str, ...] = ()

    def of(self, name: str) -> str:
        """The name of a job, a sensor or its like."""
        return f"{self.prefix}_{name}" if self.prefix else name

    def key(self, name: str, key_prefix: tuple[str, ...] | None = None) -> dg.AssetKey:
        """The key of a view or table; a view may have a prefix of its own."""
        return dg.AssetKey([*(self.key_prefix if key_prefix is None else key_prefix), name])

    @property
    def io_manager(self) -> str:
        return self.of("mv_assets_io")

    @property
    def spark(self) -> str:
        return self.of("mv_assets_spark")
