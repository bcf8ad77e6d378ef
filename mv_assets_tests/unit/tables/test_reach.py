"""Which segments reach into which buckets."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mv_assets.buckets import Buckets
from mv_assets.state.model import EMPTY, Fingerprint, Segment
from mv_assets.tables import parts
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import ALWAYS, Listing
from mv_assets.tables.parts import Part
from mv_assets.tables.reach import Reach, all_within, earliest, next_end, source_end, sweep
from mv_assets_tests.support.memory_table import overlapping
from mv_assets_tests.unit.tables.lake import DAY

HOUR = DAY // 24
WIDTHS = ("15m", "1h", "6h", "1d", "1w", "1mo")
YEAR = 366 * DAY


def listed(*segments: Segment, complete_through: int | None = None) -> Listing:
    listing = Listing("t", "1", 0, complete_through=complete_through)
    for segment in segments:
        listing.add(segment)
    return listing


def span(start: int, end: int, name: str = "a") -> Segment:
    return Segment(name, 1, start, end)


def plainly(
    segments: list[Segment], buckets: Buckets, first: int, end: int, before: int = 0, after: int = 0
) -> list[tuple[int, set[str], Fingerprint]]:
    """The definition, bucket by bucket."""
    found = []
    for bucket in buckets.between(first, end):
        here = overlapping(segments, bucket - before, buckets.next(bucket) + after)
        found.append((bucket, {segment.name for segment in here}, fingerprint(here)))
    return found


def swept(
    listing: Listing, buckets: Buckets, first: int, end: int, before: int = 0, after: int = 0
) -> list[tuple[int, set[str], Fingerprint]]:
    return [
        (reach.bucket, {listing.names[at] for at in reach.members}, reach.fingerprint)
        for reach in sweep(listing, buckets, first, end, before, after)
    ]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Segment], Buckets, int, int]:
    buckets = Buckets.of(draw(st.sampled_from(WIDTHS)))
    width = buckets.next(buckets.floor(0)) - buckets.floor(0)
    # Times around 1970, where the signs change, and on the edges of buckets, where the ends are.
    edges = st.integers(-12, 12).map(lambda number: buckets.floor(number * width))
    times = st.builds(lambda edge, off: edge + off, edges, st.sampled_from((-1, 0, 1, width // 2)))
    spans = (
        st.tuples(times, times).map(sorted)
        | st.just(list(ALWAYS))
        | times.map(lambda time: [time, ALWAYS[1]])
    )
    drawn = draw(st.lists(st.tuples(spans, st.integers(-(2**63), 2**63 - 1)), max_size=12))
    segments = [Segment(f"f{n}", crc, *bounds) for n, (bounds, crc) in enumerate(drawn)]
    first = draw(times)
    return segments, buckets, first, first + draw(st.integers(0, 15)) * width


@settings(max_examples=300)
@given(worlds(), st.randoms(use_true_random=False))
def test_a_sweep_is_the_definition_in_any_listing_order(
    world: tuple[list[Segment], Buckets, int, int], order: random.Random
) -> None:
    segments, buckets, first, end = world
    expected = plainly(segments, buckets, first, end)
    assert swept(listed(*segments), buckets, first, end) == expected
    shuffled = order.sample(segments, len(segments))
    assert swept(listed(*shuffled), buckets, first, end) == expected


@settings(max_examples=300)
@given(worlds(), st.data())
def test_a_sweep_with_a_window_around_each_bucket_is_the_definition(
    world: tuple[list[Segment], Buckets, int, int], data: st.DataObject
) -> None:
    segments, buckets, first, end = world
    width = buckets.next(buckets.floor(0)) - buckets.floor(0)
    around = st.sampled_from((0, 1, width // 2, width - 1, width, width + 1, 3 * width))
    before, after = data.draw(around, "before"), data.draw(around, "after")
    expected = plainly(segments, buckets, first, end, before, after)
    assert swept(listed(*segments), buckets, first, end, before, after) == expected


def test_101_a_window_reaches_from_its_first_millisecond_to_its_last() -> None:
    days = Buckets.of("1d")
    ends = [span(0, DAY - 1, "too early"), span(0, DAY, "just"), span(5 * DAY - 1, 9 * DAY, "last")]
    late = span(5 * DAY, 9 * DAY, "too late")
    [(_, names, _)] = swept(listed(*ends, late), days, 3 * DAY, 4 * DAY, 2 * DAY, DAY)
    assert names == {"just", "last"}


def test_101_with_six_days_back_one_file_of_a_day_is_in_seven_buckets() -> None:
    found = swept(listed(span(7 * DAY, 8 * DAY - 1)), Buckets.of("1d"), 0, 30 * DAY, before=6 * DAY)
    assert [bucket // DAY for bucket, names, _ in found if names] == [7, 8, 9, 10, 11, 12, 13]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_sweep_over_years_and_many_segments_is_the_definition(width: str) -> None:
    chance, buckets = random.Random(width), Buckets.of(width)
    reach = 400 * (buckets.next(buckets.floor(0)) - buckets.floor(0))
    segments = []
    for number in range(300):
        start = chance.randint(-reach // 2, reach // 2)
        length = chance.choice((0, HOUR, DAY, 40 * DAY))
        segments.append(
            Segment(f"f{number}", chance.getrandbits(63), start, start + chance.randint(0, length))
        )
    bounds = (-reach // 2, reach // 2)
    assert swept(listed(*segments), buckets, *bounds) == plainly(segments, buckets, *bounds)


def test_an_empty_listing_gives_the_empty_fingerprint() -> None:
    assert list(sweep(listed(), Buckets.of("1d"), 0, 2 * DAY)) == [Reach(0, (), EMPTY), Reach(DAY, (), EMPTY)]
    assert list(sweep(listed(), Buckets.of("1d"), DAY, DAY)) == []


def test_23_a_segment_reaches_up_to_its_inclusive_end() -> None:
    days = Buckets.of("1d")
    touches, before = span(0, DAY, "touches"), span(0, DAY - 1, "before")
    found = swept(listed(touches, before), days, 0, 3 * DAY)
    assert [names for _, names, _ in found] == [{"touches", "before"}, {"touches"}, set()]


def test_a_gap_between_segments_is_empty() -> None:
    found = list(sweep(listed(span(0, 5), span(2 * DAY, 2 * DAY, "b")), Buckets.of("1d"), 0, 3 * DAY))
    assert found[1].fingerprint == EMPTY
    assert found[0].fingerprint != found[2].fingerprint


def test_months_and_weeks_follow_the_calendar_before_1970() -> None:
    # Saturday, 28 February 1970, and the last millisecond of 1969.
    late = span(58 * DAY, 59 * DAY - 1, "late")
    early = span(-1, -1, "early")
    months = swept(listed(late, early), Buckets.of("1mo"), -DAY, 60 * DAY)
    assert [(bucket // DAY, names) for bucket, names, _ in months] == [
        (-31, {"early"}),
        (0, set()),
        (31, {"late"}),
        (59, set()),
    ]
    weeks = swept(listed(early), Buckets.of("1w"), -DAY, DAY)
    assert [(bucket // DAY, names) for bucket, names, _ in weeks] == [(-3, {"early"})]


def test_27_the_source_ends_at_the_latest_known_end() -> None:
    assert source_end(listed(), now=5) is None
    assert source_end(listed(span(0, 10), span(3, 7, "b")), now=100) == 10
    assert source_end(listed(span(-9, -5)), now=100) == -5
    assert source_end(listed(span(0, 100)), now=100) == 100


def test_94_an_end_after_now_counts_with_its_start_if_that_is_past() -> None:
    future = span(30, 4_000_000_000_000, "2096")
    assert source_end(listed(span(0, 10), future), now=50) == 30
    assert source_end(listed(span(0, 10), future), now=20) == 10
    assert source_end(listed(future), now=29) is None
    assert source_end(listed(span(*ALWAYS)), now=50) == ALWAYS[0]


def test_a_table_that_says_how_far_it_is_complete_is_believed() -> None:
    assert source_end(listed(span(0, 10), complete_through=6), now=100) == 6
    assert source_end(listed(complete_through=-1), now=100) == -1


def test_the_next_end_is_when_the_same_listing_means_more() -> None:
    assert next_end(listed(span(0, 10)), now=10) is None
    assert next_end(listed(span(0, 10)), now=9) == 10
    assert next_end(listed(span(0, 10), span(0, 7, "b"), span(0, 3, "c")), now=5) == 7


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted), max_size=5), st.integers(0, 30)
)
def test_the_source_end_does_not_move_before_it_is_rechecked(spans: list[list[int]], now: int) -> None:
    listing = listed(*(span(start, end, f"f{n}") for n, (start, end) in enumerate(spans)))
    again = next_end(listing, now)
    until = 40 if again is None else again
    assert {source_end(listing, later) for later in range(now, until)} <= {source_end(listing, now)}


@given(
    edges=st.sets(st.integers(-6, 6), max_size=6),
    spans=st.lists(st.tuples(st.integers(-7, 7), st.integers(0, 4)), max_size=3),
)
def test_spans_lie_within_stretches_if_each_of_their_moments_does(
    edges: set[int], spans: list[tuple[int, int]]
) -> None:
    ordered = sorted(edges)
    stretches = list(zip(ordered[::2], ordered[1::2], strict=False))
    ends = [(first, first + length) for first, length in spans]
    inside = all(any(begin <= first and last < stop for begin, stop in stretches) for first, last in ends)
    assert all_within(ends, stretches) == inside


def test_a_span_over_two_stretches_that_touch_lies_in_neither() -> None:
    assert not all_within([(0, 2)], [(0, 2), (2, 4)])
    assert all_within([(0, 1), (2, 3)], [(0, 2), (2, 4)])
    assert not all_within([(0, 1)], [])


@pytest.mark.parametrize("tiny", [1, 4_096])
@pytest.mark.parametrize("seed", range(10))
def test_a_listing_in_parts_says_what_one_without_says(
    seed: int, tiny: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_TINY", tiny)
    chance, days, made = random.Random(seed), Buckets.of("1d"), list[Part]()
    whole, joined = listed(), listed()
    for _ in range(chance.randrange(1, 5)):
        part = Part()
        for _ in range(chance.randrange(4)):
            start = chance.randrange(10) * DAY
            segment = span(start, start + chance.randrange(3 * DAY), f"{len(whole)}")
            whole.add(segment)
            part.names.append(segment.name)
            values = (segment.crc, segment.start_ms, segment.end_ms, 0, 0, 0)
            for column, value in zip(parts.NUMBERS, values, strict=True):
                getattr(part, column).append(value)
        made.append(part)
    joined.take(made)
    for listing in (whole, joined):
        listing.add(span(5 * DAY, 6 * DAY, "own"))
    assert [*joined.segments()] == [*whole.segments()]
    assert [*joined.some([len(whole) - 1, 0])] == [*whole.some([len(whole) - 1, 0])]
    assert [*sweep(joined, days, 0, 14 * DAY)] == [*sweep(whole, days, 0, 14 * DAY)]
    for now in range(0, 14 * DAY, DAY // 2):
        assert source_end(joined, now) == source_end(whole, now)
        assert next_end(joined, now) == next_end(whole, now)
    first = earliest(joined)
    assert first is not None
    assert joined.starts[first] == min(whole.starts)
    assert earliest(listed()) is None
