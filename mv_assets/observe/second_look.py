"""The look after staging: what a commit is decided on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mv_assets.observe.difference import named
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.maps import StoredViews
from mv_assets.observe.present import Present, Tables
from mv_assets.state.model import SecondLook
from mv_assets.state.store import Store
from mv_assets.tables.listing import Table, replaced


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
        self._views = StoredViews(store, clock)

    def look(self, seen: Mapping[int, BucketInputs]) -> SecondLook:
        """ViewInputs of some buckets, and which file of which changed."""
        now, found = self._now(), seen
        if now is not self._before:
            found = {each.bucket: each for each in now.of(seen)}
        if self._view.freezes:
            # A peer may have committed since, from files that are gone: so look which of them are missing.
            found = now.with_recorded(found, self._store.recorded(self._view.name, found))
        changed = {} if now is self._before else dict(self._changed(now, seen))
        return SecondLook({bucket: each.current for bucket, each in found.items()}, changed)

    def _now(self) -> ViewInputs:
        """The inputs now; those of the last look if nothing at all has changed since."""
        self._last = Present(Tables(self._tables), self._views).again(self._last)
        return self._last

    def _changed(self, now: ViewInputs, seen: Mapping[int, BucketInputs]) -> Iterator[tuple[int, str]]:
        """Buckets of which a file that was read is not the listed one any more."""
        gone = [replaced(*each) for each in zip(self._before.listings, now.listings, strict=True)]
        joined = [
            f"dimension {name}: {file}"
            for name, listed in self._before.dimensions.items()
            for file in sorted(replaced(listed, now.dimensions[name]))
        ]
        for bucket, each in seen.items():
            lost = [
                named(segment)
                for segment in (self._before.segments(each) if any(gone) else ())
                if segment.name in gone[self._place(segment.source)]
            ]
            if lost or joined:
                yield bucket, [*lost, *joined][0]

    def _place(self, source: str | None) -> int:
        return 0 if source is None else self._view.declared.timed.index(source)
