"""What is refused is what Dagster refuses, by Dagster's own word."""

from __future__ import annotations

from contextlib import nullcontext

import dagster as dg
import pytest
from dagster._core.definitions.utils import DISALLOWED_NAMES
from hypothesis import given
from hypothesis import strategies as st

from mv_assets import DeltaTarget, MaterializedView, ParquetTable, build_definitions
from mv_assets.buckets import Buckets
from mv_assets.config.reserved import _OF_JOBS, CHECKS, NAMES, is_owner
from mv_assets.config.values import _start
from mv_assets.defs.partitions import partitions_of

FIRST, LAST = "1001-01-01", "9998-12-31"


@pytest.fixture(scope="module")
def definitions() -> dg.Definitions:
    table = ParquetTable(name="trips", path="trips", time_column="at")
    view = MaterializedView(
        name="daily",
        base="trips",
        sql="SELECT date_trunc('day', at) AS day, count(*) AS n FROM trips GROUP BY ALL",
        time_column="day",
        bucket="1d",
        start="2024-01-01",
    )
    shown = DeltaTarget()
    return build_definitions(tables=[table], views=[view], state="sqlite:///none/state.db", publish=shown)


def test_the_words_are_those_of_dagster() -> None:
    assert NAMES - _OF_JOBS == DISALLOWED_NAMES


def test_the_names_of_our_jobs_and_checks_are_those_there_are(definitions: dg.Definitions) -> None:
    jobs = [job for job in definitions.jobs or [] if isinstance(job, dg.JobDefinition)]
    assert {job.name for job in jobs} | {node.name for job in jobs for node in job.nodes} == _OF_JOBS
    checks = definitions.get_repository_def().asset_graph.asset_check_keys
    assert {check.name for check in checks} == set(CHECKS)


EMAILS = st.emails() | st.from_regex(r"[a|A_.-]{1,3}@[a.-]{1,3}\.[a|A]{1,8}", fullmatch=True)


@given(st.text(max_size=8) | st.text(max_size=3).map("team:{}".format) | EMAILS)
def test_an_owner_is_what_dagster_takes_for_one(owner: str) -> None:
    taken = nullcontext() if is_owner(owner) else pytest.raises(dg.DagsterInvalidDefinitionError)
    with taken:
        dg.AssetSpec("a", owners=[owner])


@pytest.mark.parametrize("width", ["1m", "6h", "1d", "1w", "1mo"])
@pytest.mark.parametrize("start", [FIRST, LAST, f"{LAST}T23:59"])
def test_dagster_has_a_partition_for_the_first_and_the_last_start(width: str, start: str) -> None:
    buckets, time = Buckets.of(width), _start(start) or 0
    key = buckets.key(buckets.floor(time))
    found = partitions_of(buckets, time).time_window_for_partition_key(key)
    assert found.start.timestamp() * 1_000 == buckets.floor(time)
    assert found.end.timestamp() * 1_000 == buckets.next(buckets.floor(time))
    if start == FIRST:
        assert partitions_of(buckets, time).has_partition_key(key)
