"""What a record follows to has the same rows, whatever a table tells; what was only rewritten is followed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from mv_assets.buckets import Buckets
from mv_assets.observe.rewrites import earlier, followed, steps
from mv_assets.state.model import Segment
from mv_assets.tables.fingerprint import fingerprint, hashed
from mv_assets.tables.listing import Listing, Rewrite
from mv_assets.views.view import Window
from mv_assets_tests.support.memory_table import DAY, overlapping

DAYS = 6
BUCKETS = range(0, DAYS * DAY, DAY)
WINDOWS = st.builds(Window, st.just("t"), st.sampled_from([0, DAY]), st.sampled_from([0, DAY]))
Rows = tuple[tuple[int, int], ...]


@dataclass
class Table:
    """Files as they really are: each has rows, of which the first number is a day; no name is used twice."""

    files: dict[str, Rows] = field(default_factory=dict)
    rewrites: list[Rewrite] = field(default_factory=list)
    names: int = 0
    rows: int = 0
    # By name and checksum, all that ever was.
    held: dict[tuple[str, int], Rows] = field(default_factory=dict)

    def add(self, days: Sequence[int]) -> str:
        self.rows += len(days)
        return self._put(tuple((day, self.rows - at) for at, day in enumerate(days)))

    def delete(self, name: str, at: int) -> None:
        """A row is deleted, as a vector does: the same name, another checksum."""
        rows = self.files[name]
        self.files[name] = rows[: at % len(rows)] + rows[at % len(rows) + 1 :]
        if not self.files[name]:
            del self.files[name]

    def rewrite(self, names: Sequence[str], into: int, *, sort: bool) -> None:
        removed = tuple(self.segment(name) for name in names)
        rows = [row for name in names for row in self.files.pop(name)]
        rows = sorted(rows) if sort else rows
        parts = [tuple(rows[at::into]) if not sort else _slice(rows, at, into) for at in range(into)]
        added = tuple(self.segment(self._put(part)) for part in parts if part)
        self.rewrites.append(Rewrite(removed, added))

    def _put(self, rows: Rows) -> str:
        self.names += 1
        self.files[f"f{self.names}"] = rows
        return f"f{self.names}"

    def segment(self, name: str) -> Segment:
        rows, days = self.files[name], [day for day, _ in self.files[name]]
        found = Segment(name, hashed(repr(rows)), min(days) * DAY, max(days) * DAY + 1)
        self.held[name, found.crc] = rows
        return found

    def rows_of(self, segments: Iterable[Segment], start: int, end: int) -> list[tuple[int, int]]:
        found = (row for each in segments for row in self.held[each.name, each.crc])
        return sorted(row for row in found if start <= row[0] * DAY < end)

    def listing(self) -> Listing:
        listing = Listing("t", str(self.names), 0, rewrites=tuple(self.rewrites))
        for name in self.files:
            listing.add(self.segment(name))
        return listing


def _slice(rows: Sequence[tuple[int, int]], at: int, into: int) -> Rows:
    each = -(-len(rows) // into)
    return tuple(rows[at * each : (at + 1) * each])


def _change(table: Table, data: st.DataObject, *, rewrites_only: bool = False) -> None:
    names = sorted(table.files)
    kind = (
        "rewrite"
        if rewrites_only
        else data.draw(st.sampled_from(["rewrite", "rewrite", "add", "delete", "drop"]))
    )
    if kind == "add" or not names:
        table.add(data.draw(st.lists(st.integers(0, DAYS - 1), min_size=1, max_size=4)))
    elif kind == "rewrite":
        some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
        table.rewrite(some, data.draw(st.integers(1, 3)), sort=data.draw(st.booleans()))
    elif kind == "delete":
        table.delete(data.draw(st.sampled_from(names)), data.draw(st.integers(0, 9)))
    else:
        del table.files[data.draw(st.sampled_from(names))]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_a_record_follows_to_has_its_rows(data: st.DataObject) -> None:
    table, buckets, window = Table(), Buckets.of("1d"), data.draw(WINDOWS)
    for _ in range(data.draw(st.integers(1, 4))):
        _change(table, data)
    first = table.listing()
    for _ in range(data.draw(st.integers(1, 5))):
        _change(table, data)
    listing = table.listing()
    for bucket, rewrites in steps(listing, buckets, window, BUCKETS, 0, DAYS * DAY):
        bounds = buckets.window(bucket, window.before, window.after)
        then, now = (overlapping(each.segments(), *bounds) for each in (first, listing))
        after = followed(then, now, rewrites)
        assert table.rows_of(after.values(), *bounds) == table.rows_of(then, *bounds)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_only_rewrites_are_followed_wherever_they_reach(data: st.DataObject) -> None:
    table = Table()
    for _ in range(data.draw(st.integers(1, 4))):
        _change(table, data)
    buckets, window, first = Buckets.of("1d"), data.draw(WINDOWS), table.listing()
    for _ in range(data.draw(st.integers(1, 4))):
        if table.files:
            _change(table, data, rewrites_only=True)
    listing = table.listing()
    for bucket, rewrites in steps(listing, buckets, window, BUCKETS, 0, DAYS * DAY):
        bounds = buckets.window(bucket, window.before, window.after)
        then, now = (overlapping(each.segments(), *bounds) for each in (first, listing))
        assert fingerprint(followed(then, now, rewrites).values()) == fingerprint(now)
    if listing.rewrites != first.rewrites:
        assert fingerprint(first.segments()) in earlier(listing)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_rewrites_are_followed_after_earlier_ones_were_taken_back(data: st.DataObject) -> None:
    """A table is restored to before it was compacted, and compacted again: otherwise, or with more."""
    table = Table()
    for _ in range(data.draw(st.integers(1, 4))):
        _change(table, data)
    buckets, window = Buckets.of("1d"), data.draw(WINDOWS)
    for _ in range(data.draw(st.integers(1, 3))):
        before = dict(table.files)
        if table.files:
            _change(table, data, rewrites_only=True)
        table.files = before
        if data.draw(st.booleans()):
            _change(table, data)
    first = table.listing()
    if table.files:
        table.rewrite(sorted(table.files), 1, sort=True)
    listing = table.listing()
    for bucket, rewrites in steps(listing, buckets, window, BUCKETS, 0, DAYS * DAY):
        bounds = buckets.window(bucket, window.before, window.after)
        then, now = (overlapping(each.segments(), *bounds) for each in (first, listing))
        assert fingerprint(followed(then, now, rewrites).values()) == fingerprint(now)
