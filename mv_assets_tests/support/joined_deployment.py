"""A deployment of a view of several tables in memory, which looks with the code that deployments run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mv_assets.observe import consistency
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.second_look import SecondLooks
from mv_assets.state.model import CurrentInputs, SecondLook, Segment
from mv_assets.tables.listing import Listing
from mv_assets.views.view import Window
from mv_assets_tests.support.harness import Deployment, Work
from mv_assets_tests.support.memory_table import BASE, DAY, Files, of_table
from mv_assets_tests.support.memory_view import ListedTable, listed, memory_view


@dataclass
class JoinedDeployment(Deployment):
    """Its `table` has the files of all tables; those of a further one as `of_table` has them."""

    windows: tuple[Window, ...] = (Window(BASE),)

    @property
    def version(self) -> str:
        return self._inputs(self.table.files).version

    def current(self, bucket: int) -> CurrentInputs:
        inputs = self._inputs(self.table.files)
        seen, recorded = _seen(inputs, bucket), self._recorded(bucket)
        if recorded is not None:
            seen = inputs.with_recorded({bucket: seen}, {bucket: recorded})[bucket]
        return seen.current

    def look(self, days: Iterable[int] | None = None) -> list[int]:
        snapshot, inputs = self.map(), self._inputs(self.table.files)
        buckets = self.covered(snapshot) if days is None else [day * DAY for day in days]
        seen, as_of = [_seen(inputs, bucket) for bucket in buckets], snapshot.header.version
        found = consistency.differing(snapshot, seen, as_of, freezes=self.freezes, rewritten=inputs.rewritten)
        recorded = self.store.recorded(self.name, consistency.needs_recorded(snapshot, found))
        look = consistency.look(snapshot, as_of, inputs, found, recorded, self.clock())
        return [bucket // DAY for bucket in self.manager.look(self.declaration, look)]

    def read(self, files: Files, bucket: int) -> tuple[Segment, ...]:
        inputs = self._inputs(files)
        return tuple(inputs.segments(_seen(inputs, bucket)))

    def look_again(self, work: Work) -> SecondLook:
        before = self._inputs(work.listed)
        tables = {w.table: ListedTable(self._listing(self.table.files, w.table)) for w in self.windows}
        looks = SecondLooks(before, tables, self.store, self.clock)
        return looks.look({bucket: _seen(before, bucket) for bucket in work.attempt.buckets})

    def _inputs(self, files: Files) -> ViewInputs:
        view = memory_view(self.declaration, self.windows, freezes=self.freezes)
        return ViewInputs(view, [self._listing(files, window.table) for window in self.windows], {})

    def _listing(self, files: Files, table: str) -> Listing:
        own = of_table(files, table)
        told = tuple(rewrite for of, rewrite in self.table.rewrites if of == table)
        version = str(sorted(own.items(), key=lambda file: file[0]))
        return listed(table, own, version, self.clock(), rewrites=told)


def _seen(inputs: ViewInputs, bucket: int) -> BucketInputs:
    [seen] = inputs.over(bucket, inputs.view.buckets.next(bucket))
    return seen
