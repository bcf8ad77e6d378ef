"""Generations that no row, no reader and no running attempt needs are deleted, and the rest compacted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mv_assets.buckets import DAY
from mv_assets.errors import MvError
from mv_assets.maintain.compaction import Bundle, Compactor
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Generation
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store

# An attempt that was taken for dead may still write for this long, and what it writes is deleted again.
_LATE_MS = DAY
# How long the event log tells more of a bucket than its last change.
_LOG_MS = 90 * DAY


@dataclass(slots=True)
class GcReport:
    """What gc did for one view, or would do: generations with the bytes of each, copies with theirs.

    `forgotten` are lines of the event log.
    """

    view: str
    deleted: dict[str, int] = field(default_factory=dict)
    compacted: list[tuple[Bundle, int]] = field(default_factory=list)
    # Mostly dead, but of types that a copy would not keep.
    kept: list[str] = field(default_factory=list)
    errors: list[MvError] = field(default_factory=list)
    forgotten: int = 0

    @contextmanager
    def noting(self) -> Iterator[None]:
        """One view's trouble is not another's."""
        try:
            yield
        except MvError as error:
            self.errors.append(error)


class Garbage:
    """Collects the garbage of views, those too that no project declares any more."""

    def __init__(
        self,
        store: Store,
        manager: PartitionManager,
        warehouse: Warehouse,
        *,
        registry: Registry | None = None,
        leases: Leases | None = None,
    ) -> None:
        self._store = store
        self._warehouse = warehouse
        self._registry = registry or Registry(store)
        self._compactor = Compactor(
            store, manager, warehouse, self._registry, leases or Leases(store, who="mv-assets gc")
        )

    def gc(self, view: str) -> GcReport:
        """Delete what is garbage, compact the rest, delete what that left, and shorten the event log."""
        report = self.collect(view)
        with report.noting():
            report.forgotten = self._registry.shorten_log(view, _LOG_MS)
        compaction = self._compactor.compact(view)
        report.compacted, report.kept = compaction.done, compaction.kept
        report.errors += compaction.errors
        if compaction.done:
            again = self.collect(view)
            report.deleted |= again.deleted
            report.errors += [error for error in again.errors if str(error) not in map(str, report.errors)]
        return report

    def collect(self, view: str) -> GcReport:
        """Delete what is garbage.

        What is doomed stays so until it is deleted, whoever crashes in between: the next gc goes on.
        """
        report = GcReport(view)
        with report.noting():
            for generation in self._registry.doom(view):
                with report.noting():
                    self._delete(generation, report)
        return report

    def would(self, view: str) -> GcReport:
        """What `gc` would do. Nothing is written and nothing deleted."""
        report = GcReport(view)
        with report.noting():
            report.deleted = self._sizes(self._registry.garbage(view), report)
            compaction = self._compactor.due(self._store.snapshot(view))
            report.compacted = [(bundle, bundle.live_bytes) for bundle in compaction.bundles]
            report.kept = compaction.kept
            report.errors += compaction.errors
        return report

    def held(self, view: str) -> GcReport:
        """Generations that no row names, but somebody may still need, as `deleted` later."""
        report = GcReport(view)
        with report.noting():
            report.deleted = self._sizes(self._registry.held(view), report)
        return report

    def _delete(self, generation: Generation, report: GcReport) -> None:
        size = self._warehouse.size(generation.view, generation.id)
        if size is not None:
            self._warehouse.delete(generation.view, generation.id)
            report.deleted[generation.id] = size
        self._registry.forget(generation.view, generation.id, silent_ms=_LATE_MS)

    def _sizes(self, generations: Iterable[Generation], report: GcReport) -> dict[str, int]:
        found = {}
        for generation in generations:
            with report.noting():
                size = self._warehouse.size(generation.view, generation.id)
                if size is not None:
                    found[generation.id] = size
        return found
