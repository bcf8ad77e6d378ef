"""Leases: a reader's claim on everything the map names from the version it started at."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from mv_assets.errors import StateError
from mv_assets.state.errors import LeaseExpired
from mv_assets.state.heartbeat import Heartbeat
from mv_assets.state.model import Lease, Snapshot
from mv_assets.state.store import Store
from mv_assets.state.store.retry import Retry


class Leases:
    """Takes, renews and releases leases. They expire by the database's clock."""

    def __init__(
        self, store: Store, *, ttl_ms: int = 60_000, who: str = "mv-assets", retry: Retry | None = None
    ) -> None:
        self._store = store
        self._ttl_ms = ttl_ms
        self._who = who
        self._retry = retry or store.retry

    def acquire(self, view: str) -> Lease:
        """A lease at the view's current version. Read the map only after this returned."""
        name = uuid.uuid4().hex

        def once() -> Lease:
            with self._store.write(view, lock=False) as tx:
                header = tx.known_header()
                # Computed anew at each try: one that took longer than the lease must not be born expired.
                lease = Lease(name, view, header.version, tx.now() + self._ttl_ms, self._who)
                tx.put_lease(lease)
                return lease

        return self._retry.run(self._retry.critical, view, "lease", once)

    def renew(self, lease: Lease) -> Lease:
        """The lease with a new expiry.

        Raises:
            LeaseExpired: it ran out before; what it protected may be gone.

        """
        return self._retry.run(self._retry.critical, lease.view, "renew lease", lambda: self._renew(lease))

    def _renew(self, lease: Lease) -> Lease:
        with self._store.write(lease.view, lock=False) as tx:
            now = tx.now()
            renewed = replace(lease, expires_at=now + self._ttl_ms)
            if not tx.renew_lease(renewed, now):
                raise LeaseExpired(lease.view)
            return renewed

    def release(self, lease: Lease) -> None:
        def once() -> None:
            with self._store.write(lease.view, lock=False) as tx:
                tx.release_lease(lease.id)

        self._retry.run(self._retry.critical, lease.view, "release lease", once)

    def held(self, view: str) -> bool:
        """Whether somebody reads the view."""

        def once() -> bool:
            with self._store.read(view) as reader:
                now = reader.now()
                return any(lease.expires_at > now for lease in reader.leases())

        return self._retry.run(self._retry.critical, view, "read", once)

    @contextmanager
    def pin(
        self, view: str, start: int | None = None, end: int | None = None, known: Snapshot | None = None
    ) -> Iterator[Pinned]:
        """The map, or its part in `[start, end)`, at one version whose files stay while the block runs.

        What is `known` of that part from before is not read again unless it changed.

        Raises:
            LeaseExpired: at the end of the block, if the lease could not be kept; discard what was read.

        """
        lease = self.acquire(view)
        try:
            with Heartbeat(self._ttl_ms / 3000, lambda: self._renew(lease)):
                yield Pinned(lease, self._store.snapshot(view, start, end, known))
        except Exception as error:
            self._confirm(lease, error)
            raise
        else:
            self._confirm(lease, None)
        finally:
            # One that can't be released expires; the block's own error matters more.
            with suppress(StateError):
                self.release(lease)

    def _confirm(self, lease: Lease, error: Exception | None) -> None:
        """A file that vanished under an expired lease is the lease's fault, not the file's."""
        try:
            self.renew(lease)
        except LeaseExpired as expired:
            raise expired from error
        except StateError:
            # Whether it lived can't be told; the block's own error says more, if there is one.
            if error is None:
                raise


@dataclass(frozen=True, slots=True)
class Pinned:
    """A map that does not change under its reader."""

    lease: Lease
    snapshot: Snapshot
