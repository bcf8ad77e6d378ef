"""Heartbeats, and the leases that they keep while a reader reads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mv_assets.state.errors import LeaseExpired, StateUnavailable, UnknownView
from mv_assets.state.heartbeat import Heartbeat
from mv_assets.state.leases import Leases
from mv_assets.state.model import Lease
from mv_assets.state.registry import Registry
from mv_assets.state.store.retry import Retry
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.state.faults import at_statement

OFTEN = 0.001
HOURS = 10_000.0
TTL = 30


class Beats:
    """Counts beats, so that a test can wait for them."""

    def __init__(self, beat: Callable[[int], object] = lambda _: None) -> None:
        self._beat = beat
        self._ended = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        try:
            self._beat(self.count)
        finally:
            self._ended.release()

    def wait_for_one_from_now(self) -> None:
        """The beat under way may have begun earlier, the one after it has not."""
        while self._ended.acquire(blocking=False):
            pass
        for _ in range(2):
            self._ended.acquire()


class WatchedLeases(Leases):
    """Leases that say when they are renewed."""

    beats: Beats | None = None

    def _renew(self, lease: Lease) -> Lease:
        if threading.current_thread() is threading.main_thread() or self.beats is None:
            return super()._renew(lease)
        self.beats()
        return lease

    @classmethod
    def of(cls, deployment: Deployment) -> WatchedLeases:
        return cls(deployment.store, ttl_ms=TTL, retry=deployment.retry)

    def watch(self, lease: Lease) -> Beats:
        """From now on each beat really renews the lease, and counts."""
        self.beats = Beats(lambda _: Leases._renew(self, lease))
        return self.beats


@pytest.fixture
def filled(deployment: Deployment) -> Deployment:
    deployment.table.day("a", 1, 0, 2)
    deployment.look()
    deployment.refresh(0, 1, 2)
    return deployment


def held(deployment: Deployment) -> list[Lease]:
    with deployment.store.read(deployment.name) as reader:
        return reader.leases()


def test_it_beats_until_the_block_ends() -> None:
    beats = Beats()
    with Heartbeat(OFTEN, beats) as heartbeat:
        beats.wait_for_one_from_now()
        assert heartbeat._thread.is_alive()
    assert not heartbeat._thread.is_alive()


def test_the_end_of_the_block_does_not_wait_for_the_next_beat() -> None:
    beats = Beats()
    with Heartbeat(HOURS, beats):
        pass
    assert beats.count == 0


def test_the_end_of_the_block_waits_for_a_beat_under_way() -> None:
    begun, finish = threading.Event(), threading.Event()
    ended: list[bool] = []

    def beat() -> None:
        begun.set()
        ended.append(finish.wait())

    with Heartbeat(OFTEN, beat):
        begun.wait()
        finish.set()
    assert all(ended)
    assert ended


def test_a_beat_that_fails_is_repeated() -> None:
    def fail_first(count: int) -> None:
        if count < 3:
            raise StateUnavailable("no database")

    beats = Beats(fail_first)
    with Heartbeat(OFTEN, beats):
        while beats.count < 3:
            beats.wait_for_one_from_now()


def test_the_beats_end_with_what_they_keep_alive(filled: Deployment) -> None:
    work = filled.begin(3)
    filled.outlive()
    filled.registry.doom("v")
    with Heartbeat(OFTEN, lambda: filled.registry.beat("v", work.attempt.generation)) as heartbeat:
        heartbeat._thread.join()


def test_what_the_block_raises_ends_the_beats() -> None:
    heartbeat = Heartbeat(OFTEN, Beats())
    with pytest.raises(FileNotFoundError), heartbeat:
        raise FileNotFoundError
    assert not heartbeat._thread.is_alive()


def test_an_attempt_is_kept_alive(filled: Deployment) -> None:
    work = filled.begin(3)
    beats = Beats(lambda _: filled.registry.beat("v", work.attempt.generation))
    with Heartbeat(OFTEN, beats):
        for _ in range(3):
            filled.clock.now += 40_000
            beats.wait_for_one_from_now()
            assert filled.registry.alive("v") == {work.attempt.generation}
            assert filled.registry.doom("v") == []
    filled.clock.now += 60_000
    assert filled.registry.alive("v") == frozenset()
    assert [generation.id for generation in filled.registry.doom("v")] == [work.attempt.generation]


def test_a_pinned_map_stays_for_longer_than_a_lease(filled: Deployment) -> None:
    leases = WatchedLeases.of(filled)
    with leases.pin("v") as pinned:
        beats = leases.watch(pinned.lease)
        for _ in range(3):
            filled.clock.now += TTL - 1
            beats.wait_for_one_from_now()
        (lease,) = held(filled)
        assert lease.id == pinned.lease.id
        assert lease.expires_at == filled.clock.now + TTL
    assert held(filled) == []


def test_a_pinned_map_is_the_one_at_its_version(filled: Deployment) -> None:
    with filled.leases.pin("v") as pinned:
        filled.table.day("a", 2, 0, 2)
        filled.look()
        filled.refresh(0, 1, 2)
        assert pinned.lease.version == pinned.snapshot.header.version
        assert {row.token for row in pinned.snapshot.rows.values()} <= set(range(pinned.lease.version + 1))
        assert filled.header().version > pinned.lease.version


def test_a_part_of_the_map_can_be_pinned(filled: Deployment) -> None:
    with filled.leases.pin("v", DAY, 2 * DAY) as pinned:
        assert list(pinned.snapshot.rows) == [DAY]


def test_gc_leaves_what_is_pinned(filled: Deployment) -> None:
    leases, registry = WatchedLeases.of(filled), Registry(filled.store, lifetime_ms=TTL)
    row = filled.row(0)
    assert row is not None
    with leases.pin("v") as pinned:
        beats = leases.watch(pinned.lease)
        filled.table.day("a", 2, 0, 2)
        filled.look()
        filled.refresh(0, 1, 2)
        for _ in range(3):
            filled.clock.now += TTL - 1
            beats.wait_for_one_from_now()
        assert registry.doom("v") == []
    assert [generation.id for generation in registry.doom("v")] == [row.generation]


def test_a_lease_that_ran_out_spoils_the_read(filled: Deployment) -> None:
    with (
        pytest.raises(LeaseExpired, match="'v' expired before the read ended") as error,
        filled.leases.pin("v"),
    ):
        filled.clock.now += 60_000
    assert error.value.__cause__ is None
    assert held(filled) == []


def test_a_file_that_vanished_under_an_expired_lease_is_the_leases_fault(filled: Deployment) -> None:
    vanished = FileNotFoundError("part-0.parquet")

    def read() -> None:
        with filled.leases.pin("v"):
            filled.clock.now += 60_000
            raise vanished

    with pytest.raises(LeaseExpired) as error:
        read()
    assert error.value.__cause__ is vanished
    assert held(filled) == []


@pytest.mark.parametrize("kind", [FileNotFoundError, KeyboardInterrupt])
def test_what_the_block_raises_under_a_good_lease_is_raised(
    filled: Deployment, kind: type[BaseException]
) -> None:
    with pytest.raises(kind), filled.leases.pin("v"):
        raise kind
    assert held(filled) == []


def test_a_lease_of_a_collected_reader_is_not_renewed(filled: Deployment) -> None:
    lease = filled.leases.acquire("v")
    filled.clock.now += 60_000
    filled.registry.doom("v")
    assert held(filled) == []
    with pytest.raises(LeaseExpired):
        filled.leases.renew(lease)
    assert held(filled) == []


def test_an_unknown_view_can_not_be_pinned(filled: Deployment) -> None:
    with pytest.raises(UnknownView), filled.leases.pin("w"):
        pass


def test_a_lease_that_took_long_to_get_is_not_born_expired(filled: Deployment) -> None:
    def sleep(_seconds: float) -> None:
        filled.clock.now += DAY

    def lose(_connection: object) -> None:
        raise StateUnavailable("the connection was lost")

    leases = Leases(filled.store, ttl_ms=60_000, retry=Retry(sleep=sleep))
    with at_statement(filled.store, 3, lose):
        lease = leases.acquire("v")
    assert lease.expires_at == filled.clock.now + 60_000
    assert held(filled) == [lease]
