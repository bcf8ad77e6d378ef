"""Spans as sets of milliseconds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mv_assets.query.match.spans import AFTER, BEFORE, EVER, Spans, common, joined, without

_SPANS = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=6)


def times(spans: Spans) -> set[int]:
    return {time for start, end in spans for time in range(start, end)}


@given(_SPANS)
def test_joined_spans_are_in_order_apart_and_hold_the_same_times(spans: list[tuple[int, int]]) -> None:
    found = joined(spans)
    assert times(found) == times(tuple(spans))
    assert all(start < end for start, end in found)
    assert all(one[1] < other[0] for one, other in pairwise(found))
    assert joined(found) == found


@given(_SPANS, _SPANS)
def test_common_times_are_those_of_both(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    left, right = joined(one), joined(other)
    assert times(common(left, right)) == times(left) & times(right)
    assert joined(common(left, right)) == common(left, right) == common(right, left)


@given(_SPANS, _SPANS)
def test_what_is_taken_away_is_all_that_is_missing(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    left, right = joined(one), joined(other)
    rest = without(left, right)
    assert times(rest) == times(left) - times(right)
    assert joined(rest) == rest
    assert joined([*rest, *common(left, right)]) == left


@given(_SPANS)
def test_all_time_without_some_is_the_rest_of_it(taken: list[tuple[int, int]]) -> None:
    spans = joined(taken)
    rest = without([EVER], spans)
    assert joined([*rest, *spans]) == (EVER,)
    assert common(rest, spans) == ()
    assert rest[0][0] == BEFORE
    assert rest[-1][1] == AFTER
