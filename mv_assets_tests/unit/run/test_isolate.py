"""What fails is found among what does not, and costs no other bucket anything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mv_assets.run.attempt import Parts, halves, isolate


class Job:
    """Fails wherever one of the bad buckets is; notes what it tried, did and blamed."""

    def __init__(self, bad: frozenset[int], *, everywhere: bool = False) -> None:
        self.bad = bad
        self.everywhere = everywhere
        self.tried = list[list[int]]()
        self.done = list[int]()
        self.blamed = list[int]()

    def __call__(self, buckets: Sequence[int]) -> Parts:
        self.tried.append(list(buckets))
        if self.bad.isdisjoint(buckets):
            self.done += buckets
            return ()
        parts = halves(buckets, everywhere=self.everywhere)
        if not parts:
            self.blamed += buckets
        return parts


@given(st.integers(0, 40), st.frozensets(st.integers(0, 39)))
def test_exactly_what_fails_alone_is_blamed_and_all_else_is_done_once(
    count: int, bad: frozenset[int]
) -> None:
    job, buckets = Job(bad), list(range(count))
    isolate(buckets, job)
    assert job.blamed == [bucket for bucket in buckets if bucket in bad]
    assert job.done == [bucket for bucket in buckets if bucket not in bad]


def test_nothing_is_attempted_of_nothing() -> None:
    job = Job(frozenset())
    isolate([], job)
    assert job.tried == []


def test_one_among_many_is_found_by_halves_from_the_first_on() -> None:
    job = Job(frozenset({2}))
    isolate(range(8), job)
    assert job.tried == [list(range(8)), [0, 1, 2, 3], [0, 1], [2, 3], [2], [3], [4, 5, 6, 7]]


def test_what_would_fail_in_every_part_is_not_parted() -> None:
    job = Job(frozenset({2}), everywhere=True)
    isolate(range(8), job)
    assert (job.tried, job.blamed) == ([list(range(8))], list(range(8)))


@pytest.mark.parametrize("left", [[[1, 2]], [[]], []])
def test_an_attempt_may_leave_out_what_it_knows_not_to_be_to_blame(left: Parts) -> None:
    tried = list[Sequence[int]]()

    def attempt(buckets: Sequence[int]) -> Parts:
        tried.append(buckets)
        return left if len(tried) == 1 else ()

    isolate([0, 1, 2], attempt)
    assert tried == [[0, 1, 2], *(part for part in left if part)]
