from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.errors import Refused
from mv_assets.state.errors import Collected, LeaseExpired
from mv_assets.state.leases import Leases
from mv_assets.state.model import Generation, GenerationState, Lease, Snapshot
from mv_assets.state.store.retry import Retry
from mv_assets_tests.support.faults import failing, lost_acknowledgements
from mv_assets_tests.support.harness import Deployment

Peer = Callable[..., Deployment]
HALF = 30_000


def _overwrite(deployment: Deployment) -> str:
    """New content for day 0; returns the generation that it left."""
    left = deployment.row(0)
    assert left is not None
    assert left.generation is not None
    deployment.table.day("f0", deployment.table.writes + 1, 0)
    deployment.converge()
    return left.generation


def _live_at(deployment: Deployment, *leases: Lease) -> None:
    """Let the heartbeats run out, but not the leases."""
    for _ in range(2):
        deployment.clock.now += HALF
        for lease in leases:
            deployment.leases.renew(lease)


def _registered(deployment: Deployment, snapshot: Snapshot) -> list[Generation | None]:
    return [deployment.generation(row.generation) for row in snapshot.rows.values()]


def test_65_the_earlier_readers_generation_survives_though_the_later_reader_finished_first(
    deployment: Deployment,
) -> None:
    deployment.fill(0)
    earlier = deployment.leases.acquire("v")
    first = _overwrite(deployment)
    later = deployment.leases.acquire("v")
    second = _overwrite(deployment)
    deployment.leases.release(later)
    _live_at(deployment, earlier)
    assert deployment.collect() == []
    deployment.leases.release(earlier)
    assert sorted(deployment.collect()) == sorted([first, second])


def test_65_a_later_reader_does_not_keep_what_died_before_it(deployment: Deployment) -> None:
    deployment.fill(0)
    first = _overwrite(deployment)
    later = deployment.leases.acquire("v")
    second = _overwrite(deployment)
    _live_at(deployment, later)
    assert deployment.collect() == [first]
    deployment.leases.release(later)
    assert deployment.collect() == [second]


def test_66_gc_between_the_lease_and_the_read_of_the_map_deletes_nothing_listed(
    deployment: Deployment, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.fill(0)
    read, other = deployment.store.snapshot, peer()

    def late(
        view: str, start: int | None = None, end: int | None = None, known: Snapshot | None = None
    ) -> Snapshot:
        monkeypatch.undo()
        with deployment.store.read(view) as reader:
            (lease,) = reader.leases()
        left = _overwrite(other)
        _live_at(other, lease)
        assert other.collect() == []
        listed = read(view, start, end, known)
        assert left not in {row.generation for row in listed.rows.values()}
        return listed

    monkeypatch.setattr(deployment.store, "snapshot", late)
    with deployment.leases.pin("v") as pinned:
        _overwrite(other)
        _live_at(other, pinned.lease)
        other.collect()
        (found,) = _registered(deployment, pinned.snapshot)
        assert found is not None
        assert found.state is not GenerationState.DOOMED


def _read_after_expiry(deployment: Deployment) -> None:
    with deployment.leases.pin("v") as pinned:
        _overwrite(deployment)
        deployment.outlive()
        deployment.collect()
        assert _registered(deployment, pinned.snapshot) == [None]
        raise FileNotFoundError("part-0.parquet")


def test_67_a_reader_whose_lease_expired_gets_an_error_that_says_so(deployment: Deployment) -> None:
    deployment.fill(0)
    with pytest.raises(LeaseExpired, match=r"lease on view 'v' expired.*; run it again$") as raised:
        _read_after_expiry(deployment)
    assert isinstance(raised.value.__cause__, FileNotFoundError)


def test_67_an_answer_that_took_longer_than_its_lease_is_not_given(deployment: Deployment) -> None:
    deployment.fill(0)
    with pytest.raises(LeaseExpired), deployment.leases.pin("v"):
        deployment.outlive()


def test_67_a_readers_own_error_is_its_own_while_the_lease_lives(deployment: Deployment) -> None:
    deployment.fill(0)
    with pytest.raises(FileNotFoundError), deployment.leases.pin("v"):
        raise FileNotFoundError("of another table")
    with deployment.store.read("v") as reader:
        assert reader.leases() == []


def _slow(deployment: Deployment) -> Retry:
    """Each pause is longer than leases and heartbeats live."""

    def sleep(_seconds: float) -> None:
        deployment.clock.now += 61_000

    return Retry(sleep=sleep)


def test_68_a_lease_whose_registration_took_longer_than_it_lasts_is_live(deployment: Deployment) -> None:
    leases = Leases(deployment.store, ttl_ms=60_000, retry=_slow(deployment))
    with failing(deployment.store, "INSERT", times=2):
        lease = leases.acquire("v")
    assert lease.expires_at == deployment.clock.now + 60_000
    assert leases.renew(lease).id == lease.id


def test_68_a_lease_whose_acknowledgement_was_lost_is_one_lease_and_live(deployment: Deployment) -> None:
    leases = Leases(deployment.store, ttl_ms=60_000, retry=_slow(deployment))
    with lost_acknowledgements(deployment.store, times=2):
        lease = leases.acquire("v")
    with deployment.store.read("v") as reader:
        assert reader.leases() == [lease]
    assert lease.expires_at > deployment.clock.now


@pytest.mark.parametrize("landed", [False, True], ids=["failed", "unheard"])
def test_68_a_generation_whose_registration_took_longer_than_a_heartbeat_is_live(
    deployment: Deployment, *, landed: bool
) -> None:
    deployment.retry = _slow(deployment)
    deployment.manager._retry = deployment.retry
    work = deployment.plan(0)
    fault = lost_acknowledgements(deployment.store) if landed else failing(deployment.store, "INSERT")
    with fault:
        deployment.register(work)
    assert deployment.registry.alive("v") == {work.attempt.generation}
    assert deployment.map().attempts[0].count == 1


def test_69_a_gc_that_crashed_halfway_is_finished_by_the_next(deployment: Deployment) -> None:
    deployment.fill(0)
    first, second = _overwrite(deployment), _overwrite(deployment)
    deployment.outlive()
    doomed = sorted(generation.id for generation in deployment.registry.doom("v"))
    assert doomed == sorted([first, second])
    deployment.registry.forget("v", first)
    assert deployment.collect() == [second]
    assert deployment.collect() == []
    assert deployment.generation(second) is None


def test_69_gc_forgets_only_what_it_doomed(deployment: Deployment) -> None:
    deployment.fill(0)
    row = deployment.row(0)
    assert row is not None
    assert row.generation is not None
    with pytest.raises(Refused, match="LIVE, not DOOMED"):
        deployment.registry.forget("v", row.generation)
    deployment.registry.forget("v", "never there")


def test_69_gc_leaves_staged_generations_while_their_heart_beats(deployment: Deployment) -> None:
    deployment.table.day("a", 1, 0)
    work = deployment.begin(0)
    deployment.clock.now += HALF
    deployment.registry.beat("v", work.attempt.generation)
    deployment.clock.now += HALF
    assert deployment.collect() == []
    deployment.clock.now += HALF
    assert deployment.collect() == [work.attempt.generation]
    with pytest.raises(Collected):
        deployment.registry.beat("v", work.attempt.generation)


def test_70_a_pinned_read_has_the_same_rows_throughout_commits_and_gc(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    with deployment.leases.pin("v") as pinned:
        before, rows = _registered(deployment, pinned.snapshot), dict(pinned.snapshot.rows)
        for _ in range(3):
            _overwrite(deployment)
            _live_at(deployment, pinned.lease)
            deployment.collect()
        assert pinned.snapshot.rows == rows
        after = _registered(deployment, pinned.snapshot)
        assert [found.files for found in after if found] == [found.files for found in before if found]
        assert {found.state for found in after if found} <= {GenerationState.LIVE, GenerationState.DEAD}
    deployment.collect()
    with deployment.store.read("v") as reader:
        assert {generation.state for generation in reader.generations()} == {GenerationState.LIVE}
