"""The look after staging: what a commit is decided on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.state.model import SecondLook
from mv_assets.state.store import Store
from mv_assets.tables import upstream
from mv_assets.tables.listing import Listing, Table, relisted, replaced


class SecondLooks:
    """Looks at a view's inputs again, and whether the files that were read are still those of `before`.

    What was listed is listed anew only where something changed, so that many looks cost little.
    """

    def __init__(
        self,
        before: ViewInputs,
        tables: Mapping[str, Table],
        store: Store,
        clock: Callable[[], int],
    ) -> None:
        self._view = before.view
        self._before = before
        self._last = before
        self._tables = tables
        self._store = store
        self._clock = clock

    def look(self, seen: Mapping[int, BucketInputs]) -> SecondLook:
        """ViewInputs of some buckets, and which file of which changed."""
        now, found = self._now(), seen
        if now is not self._before:
            first, end = min(seen), self._view.buckets.next(max(seen))
            found = {each.bucket: each for each in now.over(first, end) if each.bucket in seen}
        if self._view.freezes:
            # A peer may have committed since, from files that are gone: that they are missing is news.
            recorded = self._store.recorded(self._view.name, found)
            found = {b: now.with_recorded(each, recorded.get(b, ())) for b, each in found.items()}
        changed = {} if now is self._before else dict(self._changed(now, seen))
        return SecondLook({bucket: each.current for bucket, each in found.items()}, changed)

    def _now(self) -> ViewInputs:
        """The inputs now; those of the last look if nothing at all has changed since."""
        last = self._last
        base = self._listing(last.base)
        dimensions = {name: self._listing(listed) for name, listed in last.dimensions.items()}
        if base is not last.base or any(dimensions[name] is not last.dimensions[name] for name in dimensions):
            self._last = ViewInputs(self._view, base, dimensions)
        return self._last

    def _listing(self, last: Listing) -> Listing:
        name = last.table
        if name not in self._tables:
            if upstream.version_of(self._store.pulse(name).header) == last.version:
                return last
            return upstream.listing_of(self._store.snapshot(name), self._clock())
        return relisted(self._tables[name], last)

    def _changed(self, now: ViewInputs, seen: Mapping[int, BucketInputs]) -> Iterator[tuple[int, str]]:
        """Buckets of which a file that was read is not the listed one any more."""
        gone = replaced(self._before.base, now.base)
        joined = [
            f"dimension {name}: {file}"
            for name, listed in self._before.dimensions.items()
            for file in sorted(replaced(listed, now.dimensions[name]))
        ]
        names = self._before.base.names
        for bucket, each in seen.items():
            lost = [names[at] for at in each.members if names[at] in gone] if gone else []
            if lost or joined:
                yield bucket, [*lost, *joined][0]
