"""What a session is told for one job: how finely it is dealt out, by what there is to read, and read how."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHUFFLED = "spark.sql.shuffle.partitions"
_DEALT = "spark.sql.adaptive.coalescePartitions.initialPartitionNum"
_SPLIT = "spark.sql.files.maxPartitionBytes"
_PRUNING = "spark.sql.optimizer.nestedSchemaPruning.enabled"
_LISTED, _USUALLY_LISTED = "spark.sql.sources.parallelPartitionDiscovery.threshold", 32
# What a session had been told of splits before the first job.
_OWN_SPLIT = "spark.mv_assets.split"
# What a session is told for one job, and who uses it next must not find.
PER_JOB = (_DEALT, _SPLIT, _OWN_SPLIT, _LISTED, _PRUNING)
# Parts that are shuffled, and how many at least, as a join or a generator may make much of little: Spark puts
# them together where they are small, but takes none apart.
_PART, _PARTS = 16 << 20, 8
# Tasks among which cores share evenly, and what is too little for one.
_TASKS, _LEAST_SPLIT = 64, 32 << 20
_BYTES = re.compile(r"(\d+)([kmgt]?)b?")
_SCALES = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def size(spark: SparkSession, read: int) -> None:
    """Set a session for a job that reads so many bytes: in smaller parts than it is set to, or fewer."""
    most = str(spark.conf.get(_SHUFFLED))
    # Some vendors' Spark may be told to find the number itself.
    if most.isdecimal():
        spark.conf.set(_DEALT, str(min(int(most), max(_PARTS, -(-read // _PART)))))
    own = spark.conf.get(_OWN_SPLIT, None)
    if own is None:
        own = spark.conf.get(_SPLIT) or ""
        spark.conf.set(_OWN_SPLIT, own)
    split = max(_LEAST_SPLIT, read // _TASKS)
    spark.conf.set(_SPLIT, str(split) if split < _bytes(own) else own)


def list_at_once(spark: SparkSession, paths: Iterable[str]) -> None:
    """Have files looked up here that are on this machine: a job with a task for each takes far longer."""
    known = list(paths)
    if len(known) > _USUALLY_LISTED and all(path.startswith("file:") for path in known):
        spark.conf.set(_LISTED, str(len(known)))


def read_whole_columns(spark: SparkSession) -> None:
    """Have columns read with all their fields.

    Where Spark reads some of them only, it loses the id of the column, finds none of that name, and gives
    nulls. No expression around the column keeps it from that: Spark takes fields out of most, and of those
    that it has to leave alone it allows none in a lateral subquery.
    """
    spark.conf.set(_PRUNING, "false")


def _bytes(text: str) -> int:
    """A size as Spark writes it; of what is written otherwise nothing is known."""
    found = _BYTES.fullmatch(text.strip().lower())
    return int(found[1]) << _SCALES[found[2]] if found else 0
