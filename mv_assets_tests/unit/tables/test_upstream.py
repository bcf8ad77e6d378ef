"""A view as the base table of another."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from mv_assets.state.model import Segment, State
from mv_assets.tables.listing import ALWAYS, Listing
from mv_assets.tables.reach import source_end
from mv_assets.tables.upstream import following, listing_of
from mv_assets_tests.support.harness import Deployment, view
from mv_assets_tests.unit.tables.lake import DAY
from mv_assets_tests.unit.tables.told import Told

END = ALWAYS[1]


def listing(of: Deployment) -> Listing:
    return listing_of(of.map(), of.clock())


def stretches(found: Listing) -> list[tuple[int, int]]:
    """In days; the last one has no end."""
    return [(each.start_ms // DAY, each.end_ms // DAY) for each in found.pending]


def holds(deployment: Deployment) -> Listing:
    """The listing, of which is shown that it splits the coverage into segments and stretches."""
    found, snapshot = listing(deployment), deployment.map()
    pieces = [(segment.start_ms, segment.end_ms + 1) for segment in found.segments()]
    pieces += [(each.start_ms, each.end_ms) for each in found.pending]
    ordered = sorted(pieces)
    assert ordered[0][0] == snapshot.header.start
    assert ordered[-1][1] == END
    assert all(end == start for (_, end), (start, _) in pairwise(ordered))
    assert all(start < end for start, end in ordered)
    assert [each.start_ms for each in found.pending] == sorted(each.start_ms for each in found.pending)
    return found


def valid(found: Listing) -> list[int]:
    return [start // DAY for start in found.starts]


def test_of_an_untouched_view_everything_is_pending_as_it_may_begin_before_its_start(
    deployment: Deployment,
) -> None:
    found = listing(deployment)
    assert (len(found), [(each.start_ms, each.end_ms) for each in found.pending]) == (0, [ALWAYS])
    assert found.pending[0].why == "v, of whose data nothing is known yet"
    assert (found.complete_through, source_end(found, deployment.clock())) == (-1, -1)


def test_a_valid_row_is_a_segment_with_its_content(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    found = holds(deployment)
    row = deployment.row(1)
    assert row is not None
    assert row.content is not None
    assert found.segment(1) == Segment("1970-01-02", row.content, DAY, 2 * DAY - 1)
    assert found.sizes[1] == row.bytes
    assert (found.table, found.at, found.broken) == ("v", deployment.clock(), {})


def test_it_is_complete_through_the_millisecond_before_w(deployment: Deployment) -> None:
    deployment.fill(0, 1, 3)
    found = holds(deployment)
    assert found.complete_through == 2 * DAY - 1 == source_end(found, deployment.clock())
    assert valid(found) == [0, 1, 3]
    assert stretches(found) == [(2, 3), (4, END // DAY)]


def test_64_a_stale_row_is_pending_until_it_is_valid_again(deployment: Deployment) -> None:
    deployment.fill(0, 1, 2)
    before = {segment.name: segment.crc for segment in listing(deployment).segments()}
    deployment.table.day("late", 9, 1)
    deployment.look()
    found = holds(deployment)
    assert (valid(found), stretches(found)) == ([0, 2], [(1, 2), (3, END // DAY)])
    assert found.pending[0].why == "v 1970-01-02, which is STALE"
    deployment.refresh(1)
    after = {segment.name: segment.crc for segment in holds(deployment).segments()}
    assert {name for name in after if after[name] != before[name]} == {"1970-01-02"}


def test_96_neighbours_that_are_not_valid_are_one_stretch(deployment: Deployment) -> None:
    deployment.fill(0, 1, 2, 3)
    for name in ("f1", "f2"):
        deployment.table.remove(name)
    deployment.look()
    assert stretches(holds(deployment)) == [(1, 3), (4, END // DAY)]


def test_a_false_alarm_leaves_the_content(deployment: Deployment) -> None:
    deployment.fill(0)
    before = list(listing(deployment).segments())
    file = deployment.table.remove("f0")
    deployment.look()
    assert valid(holds(deployment)) == []
    deployment.table.restore("f0", file)
    deployment.look()
    deployment.converge()
    assert list(holds(deployment).segments()) == before


def test_an_emptied_bucket_is_a_segment_too(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    deployment.table.remove("f0")
    deployment.look()
    deployment.refresh(0)
    assert deployment.state(0) is State.VALID
    assert valid(holds(deployment)) == [0, 1]


def test_a_failed_bucket_is_pending(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.table.day("f1", 1, 1)
    deployment.look()
    deployment.fail(deployment.begin(1), 1)
    found = holds(deployment)
    assert stretches(found) == [(1, 2), (2, END // DAY)]
    assert found.pending[0].why == "v 1970-01-02, which is STALE"
    assert [each.vacant for each in found.pending] == [False, True]


def test_rows_of_another_definition_are_pending(
    deployment: Deployment, peer: Callable[..., Deployment]
) -> None:
    deployment.fill(0, 1)
    newer = peer(declaration=view(definition="d2"))
    newer.declare()
    found = holds(deployment)
    assert (len(found), found.complete_through) == (0, -1)
    assert found.pending[0].why == "v 1970-01-01, which is STALE"
    newer.refresh(1)
    assert stretches(holds(deployment)) == [(0, 1), (2, END // DAY)]


def test_months_end_where_the_next_begins(deployment: Deployment, peer: Callable[..., Deployment]) -> None:
    monthly = peer(declaration=view("m", width="1mo", start=31 * DAY))
    monthly.declare()
    deployment.table.day("feb", 1, 31, 100)
    monthly.look()
    monthly.refresh(31)
    found = holds(monthly)
    assert list(found.segments()) == [Segment("1970-02-01", found.crcs[0], 31 * DAY, 59 * DAY - 1)]
    assert found.pending[0].start_ms == 59 * DAY


def test_the_version_changes_with_the_map(deployment: Deployment) -> None:
    before = listing(deployment).version
    assert listing(deployment).version == before
    deployment.fill(0)
    assert listing(deployment).version != before


@pytest.mark.parametrize("seed", range(4))
def test_a_listing_that_follows_another_is_what_it_would_be_alone(deployment: Deployment, seed: int) -> None:
    """Whatever happens to the map, and tells how it differs from those before."""
    chance, told = random.Random(seed), Told()
    deployment.fill(*range(4))
    known = following(None, deployment.map(), deployment.clock())
    for _ in range(40):
        day = chance.randrange(8)
        step = chance.choice(["comes", "goes", "refreshed", "forced", "fails", "dropped"])
        if step == "comes":
            deployment.table.day(f"f{day}", chance.randrange(1 << 30), day)
        elif step == "goes" and f"f{day}" in deployment.table.files:
            deployment.table.remove(f"f{day}")
        elif step == "forced" and deployment.row(day) is not None:
            deployment.manager.force(deployment.declaration, [day * DAY], "by hand")
        elif step == "fails" and deployment.state(day) is State.STALE:
            deployment.fail(deployment.begin(day), day)
        elif step == "dropped" and chance.random() < 0.3:
            deployment.manager.drop("v")
        deployment.look()
        if step == "refreshed":
            deployment.converge()
        snapshot = deployment.store.snapshot("v", known=known.snapshot)
        known = following(known, snapshot, deployment.clock())
        anew = listing_of(deployment.map(), deployment.clock())
        assert known.listing == anew
        assert known.listing.sizes == anew.sizes
        told.check(known.listing)
    assert told.times > 10


def test_what_is_told_of_a_view_whose_definition_changed_is_nothing(
    deployment: Deployment, peer: Callable[..., Deployment]
) -> None:
    deployment.fill(0, 1)
    before = following(None, deployment.map(), deployment.clock())
    peer(declaration=view(definition="d2")).declare()
    now = following(before, deployment.store.snapshot("v", known=before.snapshot), deployment.clock())
    assert now.listing.history.since(before.listing.history.origin) is None
    assert not len(now.listing)
