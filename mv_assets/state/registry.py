"""The generation registry: which attempts are alive, and what gc may delete."""

from __future__ import annotations

from mv_assets.errors import Refused
from mv_assets.state.heartbeat import Heartbeat
from mv_assets.state.model import Generation, GenerationState
from mv_assets.state.store import Store
from mv_assets.state.store.retry import Retry

# Of the event log, deleted in one transaction.
_LINES = 10_000


class Registry:
    """Keeps staged generations alive and dooms the dead ones.

    A heartbeat counts for `lifetime_ms`; nothing younger than that is ever doomed.
    """

    def __init__(self, store: Store, *, lifetime_ms: int = 60_000, retry: Retry | None = None) -> None:
        self._store = store
        self._lifetime_ms = lifetime_ms
        self._retry = retry or store.retry

    def alive(self, view: str) -> frozenset[str]:
        """Staged generations whose attempt is still running."""

        def once() -> frozenset[str]:
            with self._store.read(view) as reader:
                now = reader.now()
                staged = reader.generations(GenerationState.STAGED)
                return frozenset(g.id for g in staged if not self._expired(g, now))

        return self._retry.run(self._retry.critical, view, "read", once)

    def keep_alive(self, view: str, generation: str) -> Heartbeat:
        """Beats while the block runs."""
        return Heartbeat(self._lifetime_ms / 3000, lambda: self.beat(view, generation))

    def beat(self, view: str, generation: str) -> None:
        """Say once that the attempt is still running.

        Raises:
            Collected: gc took it for dead; stop staging.

        """
        with self._store.write(view) as tx:
            tx.known_header()
            tx.beat(generation)

    def doom(self, view: str) -> list[Generation]:
        """Generations to delete, then to `forget`: newly doomed ones and those of a gc that was cut short.

        The header's lock keeps commits out: a generation is either named by a row first, and stays, or
        doomed first, and its commit is refused.
        """

        def once() -> list[Generation]:
            with self._store.write(view) as tx:
                tx.known_header()
                now = tx.now()
                # In this order: a lease that is renewed meanwhile is waited for, and then seen.
                tx.end_leases(now)
                tx.doom(now - self._lifetime_ms, tx.oldest_reader(now))
                return tx.generations(GenerationState.DOOMED)

        return self._retry.run(self._retry.critical, view, "gc", once)

    def garbage(self, view: str) -> list[Generation]:
        """What `doom` would return. Writes nothing."""

        def once() -> list[Generation]:
            with self._store.read(view) as reader:
                now = reader.now()
                return reader.garbage(now - self._lifetime_ms, reader.oldest_reader(now))

        return self._retry.run(self._retry.critical, view, "read", once)

    def held(self, view: str) -> list[Generation]:
        """Generations that no row names but somebody may still read or write."""

        def once() -> list[Generation]:
            with self._store.read(view) as reader:
                return reader.generations(GenerationState.STAGED, GenerationState.DEAD)

        return self._retry.run(self._retry.critical, view, "read", once)

    def forget(self, view: str, generation: str, *, silent_ms: int = 0) -> None:
        """Drop a doomed generation from the registry, after its files are gone.

        One whose heart beat less than `silent_ms` ago stays registered: what made it may not know that it
        is doomed, and write on.
        """

        def once() -> None:
            with self._store.write(view) as tx:
                tx.known_header()
                found = tx.generation(generation)
                if found is None:
                    return
                if found.state is not GenerationState.DOOMED:
                    raise Refused(
                        f"generation {generation} of view {view!r} is {found.state}, not DOOMED; it stays"
                    )
                if tx.now() - found.heartbeat_at >= silent_ms:
                    tx.forget_generation(generation)

        self._retry.run(self._retry.critical, view, "gc", once)

    def shorten_log(self, view: str, keep_ms: int) -> int:
        """Delete lines of the event log that are older; each bucket keeps its last change of state.

        Part by part, so that no commit waits long; how many lines those were.
        """

        def once() -> int:
            with self._store.write(view, lock=False) as tx:
                return tx.shorten_log(tx.now() - keep_ms, _LINES)

        deleted = 0
        while part := self._retry.run(self._retry.critical, view, "gc", once):
            deleted += part
        return deleted

    def _expired(self, generation: Generation, now: int) -> bool:
        # Who lives beats again soon: a heart that beat long after now did so before the clock was set back.
        return abs(now - generation.heartbeat_at) >= self._lifetime_ms
