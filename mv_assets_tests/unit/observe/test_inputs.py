"""What one look saw of a view of several tables, against definitions in the plainest words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mv_assets.buckets import HOUR, Buckets
from mv_assets.observe.inputs import ViewInputs
from mv_assets.observe.observation import Limits, cutoff
from mv_assets.state.model import CurrentInputs, Declaration, Segment
from mv_assets.tables.fingerprint import fingerprint
from mv_assets.tables.listing import Broken, Listing, Pending
from mv_assets.views.view import Window
from mv_assets_tests.support.memory_table import DAY, overlapping
from mv_assets_tests.support.memory_view import memory_view

DAYS = Buckets.of("1d")
TABLES = ("base", "second", "third")
NOW = 6 * DAY
FIRST, END = -2 * DAY, 6 * DAY


@dataclass(frozen=True)
class World:
    """A view, and a listing for each of its windows."""

    windows: tuple[Window, ...]
    listings: tuple[Listing, ...]
    closes: int | None
    now: int

    @property
    def inputs(self) -> ViewInputs:
        view = memory_view(Declaration("v", "d1", "1d", FIRST), self.windows, closes=self.closes)
        return ViewInputs(view, self.listings, {})

    def bounds(self, window: Window, bucket: int) -> tuple[int, int]:
        return bucket - window.before, bucket + DAY + window.after


# On the edges of days, beside them, and in the middle.
TIMES = st.builds(
    lambda day, off: day * DAY + off, st.integers(-3, 7), st.sampled_from((-1, 0, 1, 7 * HOUR, DAY // 2))
)
SPANS = st.tuples(TIMES, TIMES).map(sorted)
LENGTHS = st.sampled_from((0, 1, 6 * HOUR, DAY - 1, DAY, DAY + 1, 2 * DAY))


@st.composite
def listings(draw: st.DrawFn, table: str) -> Listing:
    listing = Listing(table, "1", NOW)
    for number, (start, end) in enumerate(draw(st.lists(SPANS, max_size=4))):
        # The same names in all tables.
        segment = Segment(f"f{number}", draw(st.integers(1, 3)), start, end)
        if draw(st.integers(0, 4)):
            listing.add(segment)
        else:
            listing.place(Broken(segment.name, "is cut off"), (start, end))
    # A view as a table: it says how far it is complete, and what of it is pending.
    if draw(st.booleans()):
        listing.complete_through = draw(TIMES)
        listing.ends_there = draw(st.booleans())
        edges = draw(st.lists(TIMES, max_size=6, unique=True).map(sorted))
        stretches = zip(edges[::2], edges[1::2], strict=False)
        listing.pending = tuple(
            Pending(*each, f"{table} {each}", vacant=draw(st.booleans())) for each in stretches
        )
    return listing


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tables = TABLES[: draw(st.integers(1, 3))]
    windows = tuple(
        Window(table, draw(LENGTHS), draw(LENGTHS), draw(st.booleans()) or table == "base")
        for table in tables
    )
    found = tuple(draw(listings(table)) for table in tables)
    closes = draw(st.none() | st.sampled_from((0, HOUR, DAY)))
    return World(windows, found, closes, draw(TIMES) + 3 * DAY)


@settings(max_examples=300)
@given(worlds())
def test_a_bucket_has_of_each_table_what_reaches_into_its_window(world: World) -> None:
    found = list(world.inputs.over(FIRST, END))
    assert [seen.bucket for seen in found] == list(range(FIRST, END, DAY))
    for seen in found:
        here = [
            overlapping(listing.segments(), *world.bounds(window, seen.bucket))
            for window, listing in zip(world.windows, world.listings, strict=True)
        ]
        read = {
            (None if window.table == "base" else window.table, segment.name, segment.crc)
            for window, segments in zip(world.windows, here, strict=True)
            for segment in segments
        }
        assert {(each.source, each.name, each.crc) for each in world.inputs.segments(seen)} == read
        if seen.current.inputs is not None:
            prints = [fingerprint(segments) for segments in here]
            assert seen.current.inputs.base == prints[0]
            assert seen.current.inputs.further == tuple(zip(TABLES[1 : len(prints)], prints[1:], strict=True))
            assert seen.current.inputs.empty == (not any(here))
        assert seen.has_files == any(here)


@settings(max_examples=200)
@given(worlds())
def test_108_a_broken_file_fails_the_buckets_whose_windows_it_reaches_into(world: World) -> None:
    for seen in world.inputs.over(FIRST, END):
        broken = [
            f"{'' if window.table == 'base' else f'{window.table}: '}file {segment.name}: is cut off"
            for window, listing in zip(world.windows, world.listings, strict=True)
            for segment in overlapping(listing.segments(), *world.bounds(window, seen.bucket))
            if segment.name in listing.broken
        ]
        assert sorted(seen.errors) == sorted(broken)


def pending_there(world: World, bucket: int, closed: int | None) -> list[str]:
    """What the bucket waits for, in any order: pending stretches of its windows.

    Nothing is late beyond what a view is complete through, if nobody waits for that or the bucket is closed.
    """
    found = []
    for window, listing in zip(world.windows, world.listings, strict=True):
        begin, end = world.bounds(window, bucket)
        through = listing.complete_through
        there = [each for each in listing.pending if each.start_ms < end and each.end_ms > begin]
        if through is not None and (not window.waits or bucket + DAY == closed):
            there = [each for each in there if not (each.vacant and each.start_ms > through)]
        found += [each.why for each in there]
    return found


@settings(max_examples=300)
@given(worlds())
def test_116_a_bucket_waits_for_what_is_pending_in_any_of_its_windows(world: World) -> None:
    inputs = world.inputs
    # What is listed is judged by the time of its listing.
    closed = naive_end(world, NOW)[1]
    for seen in inputs.over(FIRST, END):
        there = pending_there(world, seen.bucket, closed)
        said = inputs.waits_for(seen.bucket)
        assert (said in there) if there else (said is None)
        assert (seen.current.inputs is None) == bool(there)
        if there:
            assert seen.current == CurrentInputs(None, said)


def known_end(listing: Listing, now: int) -> int | None:
    """The last millisecond that a table is known to have: what ends after now counts with its start."""
    if listing.complete_through is not None:
        return listing.complete_through
    ends = [each.end_ms if each.end_ms <= now else each.start_ms for each in listing.segments()]
    return max((end for end in ends if end <= now), default=None)


def naive_end(world: World, now: int) -> tuple[int | None, int | None]:
    """Where what is waited for ends, counted without what windows ask beyond a bucket; and what is closed."""
    waited = [each for each in zip(world.windows, world.listings, strict=True) if each[0].waits]
    ends = []
    for window, listing in waited:
        end = known_end(listing, now)
        if end is None:
            return None, None
        ends.append((end - window.after, listing.ends_there))
    least = min(end for end, _ in ends)
    bucket_end = least // DAY * DAY + DAY
    if world.closes is None or least + 1 == bucket_end:
        return least, None
    late = bucket_end + max(window.after for window, _ in waited) + world.closes
    stops_there = all(ends_there for end, ends_there in ends if end + 1 < bucket_end)
    return least, bucket_end if now >= late and stops_there else None


@settings(max_examples=500)
@given(worlds())
def test_102_the_tables_end_where_the_first_of_those_that_are_waited_for_does(world: World) -> None:
    ending, (end, closed) = world.inputs.ending(world.now), naive_end(world, world.now)
    assert (ending.source_end, ending.closed) == (end, closed)
    by_table = dict(zip([window.table for window in world.windows], world.listings, strict=True))
    [held_by] = [window for window in world.windows if window.table == ending.table]
    assert held_by.waits
    data_end = known_end(by_table[held_by.table], world.now)
    assert ending.data_end == data_end
    assert end == (None if data_end is None else data_end - held_by.after)


@settings(max_examples=300)
@given(worlds(), st.sampled_from((0, HOUR)), st.integers(-2, 6))
def test_a_bucket_is_due_when_every_table_that_is_waited_for_has_all_of_its_window(
    world: World, buffer: int, day: int
) -> None:
    inputs, end = world.inputs, day * DAY + DAY
    ending = inputs.ending(world.now)
    limits = Limits(buffer=inputs.view.buffer + buffer)
    latest = cutoff(limits, ending.cap, world.now)
    ends = [
        (window.after, known_end(listing, world.now))
        for window, listing in zip(world.windows, world.listings, strict=True)
        if window.waits
    ]
    there = all(
        known is not None and end + after <= min(world.now - buffer, known + 1) for after, known in ends
    )
    if ending.closed != end:
        assert there == (latest is not None and end <= latest)


@settings(max_examples=200)
@given(worlds(), st.data())
def test_107_a_recorded_file_that_is_gone_is_missing_whichever_table_had_it(
    world: World, data: st.DataObject
) -> None:
    view = memory_view(Declaration("v", "d1", "1d", FIRST), world.windows, freezes=True)
    inputs = ViewInputs(view, world.listings, {})
    names = st.sampled_from(["f0", "f1", "f2", "gone"])
    for seen in inputs.over(FIRST, END):
        recorded = inputs.segments(seen)
        lost = data.draw(st.sets(st.tuples(names, st.sampled_from((None, *TABLES[1 : len(world.windows)])))))
        kept = [each for each in recorded if (each.name, each.source) not in lost]
        gone = [Segment(f"{name} of old", 1, 0, 0, source) for name, source in sorted(lost, key=repr)]
        found = inputs.with_recorded({seen.bucket: seen}, {seen.bucket: [*kept, *gone]})[seen.bucket].current
        if found.inputs is None:
            assert found.missing == ()
            continue
        assert sorted(found.missing) == sorted(each.name for each in gone)
        assert found.rest_equal == (bool(gone) and kept == recorded)


def listing(table: str, *ends: int, through: int | None = None, ends_there: bool = True) -> Listing:
    made = Listing(table, "1", NOW, complete_through=through, ends_there=ends_there)
    for number, end in enumerate(ends):
        made.add(Segment(f"f{number}", 1, 0, end))
    return made


def closed(*tables: tuple[Window, Listing], now: int = NOW) -> int | None:
    windows, listings = zip(*tables, strict=True)
    return World(windows, listings, HOUR, now).inputs.ending(now).closed


def test_141_a_table_that_has_all_of_the_bucket_has_no_say_in_whether_it_is_closed() -> None:
    stops = Window("base"), listing("base", DAY // 2)
    for through, ends_there in ((2 * DAY - 1, False), (DAY - 1, False), (DAY - 2, True)):
        view_below = Window("second"), listing("second", through=through, ends_there=ends_there)
        assert closed(stops, view_below) == DAY, through
    late = Window("second"), listing("second", through=DAY - 2, ends_there=False)
    assert closed(stops, late) is None


def test_141_a_bucket_is_closed_so_long_after_the_last_of_what_it_waits_for_could_be_there() -> None:
    stops = Window("base"), listing("base", DAY // 2)
    follows = Window("second", after=2 * DAY), listing("second", 3 * DAY)
    unwaited = Window("third", after=9 * DAY, waits=False), listing("third")
    assert closed(stops, follows, unwaited, now=3 * DAY + HOUR - 1) is None
    assert closed(stops, follows, unwaited, now=3 * DAY + HOUR) == DAY


@pytest.mark.parametrize("waits", [True, False])
def test_27_a_table_of_which_nothing_is_known_holds_all_that_wait_for_it(waits: bool) -> None:  # noqa: FBT001
    nothing = Window("second", waits=waits), listing("second")
    world = World((Window("base"), nothing[0]), (listing("base", DAY - 1), nothing[1]), None, NOW)
    ending = world.inputs.ending(NOW)
    expected = (None, "second", None) if waits else (DAY - 1, "base", DAY)
    assert (ending.source_end, ending.table, ending.cap) == expected
