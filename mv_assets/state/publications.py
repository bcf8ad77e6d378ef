"""What of each view is published where, and what its readers may still hold: gc asks here."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from sqlalchemy import select

from mv_assets.state.errors import LeaseExpired
from mv_assets.state.model import Lease, Publication
from mv_assets.state.store import Store, codec, schema
from mv_assets.state.store.map_reader import chunks
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.state.store.retry import Retry

T = TypeVar("T")


class Publications:
    """Beside the map: a projection of it, of which a crash leaves at most that files are kept too long."""

    def __init__(self, store: Store, *, retry: Retry | None = None) -> None:
        self._store = store
        self._retry = retry or store.retry

    def of(self, view: str) -> list[Publication]:
        """What is published of a view, by target."""
        return self.all([view])

    def at(self, view: str, target: str) -> Publication | None:
        """What is published of a view at one target."""
        return next((each for each in self.of(view) if each.target == target), None)

    def all(self, views: Iterable[str] | None = None) -> list[Publication]:
        """What is published of some views, or of all that ever were."""
        table = schema.publication
        wanted = None if views is None else list(views)

        def once() -> list[Publication]:
            with self._store.database.read() as connection:
                pages = (
                    [select(table)]
                    if wanted is None
                    else [select(table).where(table.c.view.in_(chunk)) for chunk in chunks(wanted)]
                )
                found = [record for page in pages for record in connection.execute(page).mappings()]
            return sorted(
                (codec.publication(dict(each)) for each in found), key=lambda each: (each.view, each.target)
            )

        return self._retry.run(self._retry.critical, None, "read publications", once)

    def behind(self, targets: Iterable[tuple[str, str]]) -> list[str]:
        """Of views, each with its target, those whose map has changed since it was published.

        Those come first that are most writes behind: where time is short, none waits for ever.
        """
        wanted = dict(targets)
        view, table = schema.view, schema.publication

        def once() -> list[str]:
            with self._store.database.read() as connection:
                found = [
                    record
                    for chunk in chunks(wanted)
                    for record in connection.execute(
                        select(view.c.view, view.c.version, table.c.target, table.c.seen)
                        .outerjoin_from(view, table, view.c.view == table.c.view)
                        .where(view.c.view.in_(chunk))
                    )
                ]
            seen = {each.view: each.seen for each in found if each.target == wanted[each.view]}
            lags = {each.view: each.version - (seen.get(each.view) or 0) for each in found}
            return sorted((name for name, lag in lags.items() if lag), key=lambda name: (-lags[name], name))

        return self._retry.run(self._retry.critical, None, "read publications", once)

    def retain(self, view: str, target: str, version: int, lease: Lease) -> Publication:
        """Keep what the map names from a version on, before the first snapshot that shows it.

        Raises:
            LeaseExpired: whoever calls it slept too long, and some of what it read may be gone.

        """

        def decide(tx: MapWriter, found: Publication | None) -> Publication:
            now = tx.now()
            if not any(each.id == lease.id and each.expires_at > now for each in tx.leases()):
                raise LeaseExpired(view)
            if found is not None and found.oldest <= version:
                return found
            # One mark for all targets: the same table may be reached by another address from now on.
            marks = (each.mark for each in tx.publications() if each.mark is not None)
            mark = next(marks, None) or uuid.uuid4().hex
            kept = Publication(view, target, version, mark=mark) if found is None else found
            kept = replace(kept, oldest=version)
            tx.put_publication(kept)
            return kept

        return self._write(view, target, decide)

    def record(self, publication: Publication) -> bool:
        """Note what is published now; versions only grow, whoever comes last. Whether it still is retained.

        It is not if the view was dropped meanwhile: what was published must be withdrawn then.
        """

        def decide(tx: MapWriter, found: Publication | None) -> bool:
            if found is None:
                return False
            if (found.version or 0) <= (publication.version or 0):
                # What others keep, they keep: only `expire` gives up something.
                kept = replace(
                    publication, oldest=found.oldest, passed=found.passed, passed_at=found.passed_at
                )
                tx.put_publication(kept)
            return True

        return self._write(publication.view, publication.target, decide)

    def expire(self, view: str, target: str, oldest: int) -> None:
        """No snapshot before that version is there any more."""

        def decide(tx: MapWriter, found: Publication | None) -> None:
            if found is not None and found.oldest < oldest:
                tx.put_publication(replace(found, oldest=oldest))

        self._write(view, target, decide)

    def pass_over(self, view: str, target: str, now: int, keep: int) -> None:
        """Give up what is no longer shown for longer than it is kept, for at most twice as long."""

        def decide(tx: MapWriter, found: Publication | None) -> None:
            if found is None or found.version is None:
                return
            if found.passed is None or found.passed_at is None:
                tx.put_publication(replace(found, passed=found.version, passed_at=now))
            elif found.passed_at > now:
                # The clock was set back: it was at the latest now.
                tx.put_publication(replace(found, passed_at=now))
            elif found.passed_at < now - keep:
                oldest = max(found.oldest, found.passed)
                tx.put_publication(replace(found, oldest=oldest, passed=found.version, passed_at=now))

        self._write(view, target, decide)

    def end(self, view: str, target: str) -> None:
        """Nothing is published there any more, and nothing kept for it."""

        def decide(tx: MapWriter, _found: Publication | None) -> None:
            tx.end_publication(target)

        self._write(view, target, decide)

    def _write(self, view: str, target: str, decide: Callable[[MapWriter, Publication | None], T]) -> T:
        def once() -> T:
            # The header's lock keeps gc out, which asks under it what is retained.
            with self._store.write(view) as tx:
                tx.known_header()
                found = {each.target: each for each in tx.publications()}
                return decide(tx, found.get(target))

        return self._retry.run(self._retry.critical, view, "publish", once)
