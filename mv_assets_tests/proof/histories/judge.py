"""Whether a view's map tells the truth: of what it stored, and of the files that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta

import pyarrow.parquet as pq

from mv_assets.config import MaterializedView
from mv_assets.state import rules
from mv_assets.state.model import BUCKET, PartitionRow, Segment, Snapshot, State
from mv_assets.tables.fingerprint import fingerprint, fingerprint_of
from mv_assets_tests.proof.histories.files import Contents, Files
from mv_assets_tests.proof.histories.oracle import Calendar, Oracle, Rows
from mv_assets_tests.support.spark_lake import SparkLake, plainly


class Judge:
    """Compares the views of a lake with DuckDB; `compared` is how many buckets it had."""

    def __init__(self, lake: SparkLake, files: Files) -> None:
        self._lake, self._files, self._oracle = lake, files, Oracle()
        # Views by their definitions, and the last day of each that ever was due.
        self._views: dict[str, MaterializedView] = {}
        self._farthest: dict[str, date] = {}
        self.compared = 0

    def close(self) -> None:
        self._oracle.close()

    def note(self) -> None:
        """Note what is declared now, and how far it could be computed."""
        for view in self._lake.catalog.views.values():
            self._views[view.definition] = view.declared
            calendar = Calendar(view.declared)
            last = max([calendar.first - timedelta(1), *calendar.complete(self._files)])
            self._farthest[view.definition] = max(last, self._farthest.get(view.definition, last))

    def stored(self, name: str) -> None:
        """Every VALID bucket has the rows of the files that it records."""
        snapshot = self._lake.snapshot(name)
        view, valid = self._views[snapshot.header.definition], _valid(snapshot)
        recorded, found = self._recorded(view, valid), self._rows(snapshot, valid)
        for bucket, row in valid.items():
            day, here = Calendar(view).day(bucket), found.get(bucket, Counter())
            expected = self._computed(view, day, recorded[bucket])
            assert here == expected, f"{name} {day} is not what it records: {_unlike(expected, here)}"
            assert here.total() == row.rows, f"{name} {day} has {here.total()} rows and records {row.rows}"
            self.compared += 1

    def current(self, name: str, buckets: Collection[int] | None = None) -> None:
        """Some buckets are VALID and record what is there now; or all that have a row or are due are."""
        snapshot = self._lake.snapshot(name)
        definition, valid = snapshot.header.definition, _valid(snapshot)
        calendar = Calendar(self._views[definition])
        due = [calendar.start(day) for day in calendar.complete(self._files)]
        wanted = {*snapshot.rows, *due} if buckets is None else buckets
        late = [calendar.day(bucket) for bucket in sorted(wanted) if bucket not in valid]
        assert not late, f"{name}: not VALID: {', '.join(map(str, late))}"
        for bucket, before in self._recorded(calendar.view, {b: valid[b] for b in wanted}).items():
            day = calendar.day(bucket)
            now = self._there(calendar, day)
            assert before == now, f"{name} {day} is VALID, of {_names(before)}, and there is {_names(now)}"
            assert day <= self._farthest[definition], f"{name} {day} was never due"

    def asked(self, name: str, found: Rows) -> None:
        """A strict answer is all that the SQL gives on the files as they are now."""
        calendar = Calendar(self._lake.catalog.view(name).declared)
        expected: Rows = Counter()
        day, last = calendar.first, self._files.end("events")
        while calendar.start(day) <= last:
            expected += self._computed(calendar.view, day, self._there(calendar, day))
            day += timedelta(1)
        assert found == expected, f"{name} by its name: {_unlike(expected, found)}"

    def columns(self, name: str) -> tuple[str, ...]:
        return tuple(self._lake.catalog.view(name).select.columns)

    def _recorded(self, view: MaterializedView, rows: Mapping[int, PartitionRow]) -> dict[int, Contents]:
        """The files that rows say they were made of."""
        recorded = self._lake.store.recorded(view.name, sorted(rows))
        return {bucket: self._contents(view, row, recorded.get(bucket, ())) for bucket, row in rows.items()}

    def _contents(self, view: MaterializedView, row: PartitionRow, segments: Sequence[Segment]) -> Contents:
        """As the segments say, and as the inputs must say too."""
        assert row.inputs is not None
        base = view.base.table
        by_table = {
            table: [each for each in segments if (each.source or base) == table] for table in view.timed
        }
        said = dict(zip(view.timed, row.inputs.windows, strict=True))
        read = {table: fingerprint(some) for table, some in by_table.items()}
        assert said == read, f"{view.name} has inputs {said}, and its segments make {read}"
        joined = dict(row.inputs.dimensions)
        return {
            table: frozenset(self._files.once(table, each.name, each.crc) for each in some)
            for table, some in by_table.items()
        } | {
            name: frozenset(
                each
                for each in self._files.ever(name)
                if fingerprint_of([(each.name, each.crc)]) == joined[name]
            )
            for name in view.joined
        }

    def _there(self, calendar: Calendar, day: date) -> Contents:
        """The files that a bucket reads now."""
        dimensions = {name: frozenset(self._files.of(name)) for name in calendar.view.joined}
        return {**calendar.reached(day, self._files), **dimensions}

    def _computed(self, view: MaterializedView, day: date, contents: Contents) -> Rows:
        return self._oracle.rows(view, self.columns(view.name), day, contents)

    def _rows(self, snapshot: Snapshot, valid: Mapping[int, PartitionRow]) -> dict[int, Rows]:
        """The rows of a view as its map names them, read without Spark."""
        found: dict[int, Rows] = {}
        name, columns = snapshot.header.view, self.columns(snapshot.header.view)
        generations = {row.generation for row in valid.values() if row.generation is not None}
        for generation, files in self._lake.store.files(name, generations).items():
            for file in files:
                with self._lake.warehouse.open(file.path) as opened:
                    rows = pq.read_table(opened)
                for row in rows.to_pylist():
                    owner = valid.get(row[BUCKET])
                    if owner is not None and owner.generation == generation:
                        values = tuple(plainly(row[column]) for column in columns)
                        found.setdefault(owner.bucket, Counter())[values] += 1
        return found


def _valid(snapshot: Snapshot) -> dict[int, PartitionRow]:
    rows, header = snapshot.rows.items(), snapshot.header
    return {bucket: row for bucket, row in rows if rules.effective_state(row, header) is State.VALID}


def _unlike(expected: Rows, found: Rows) -> str:
    return f"missing {dict(expected - found)}, too many {dict(found - expected)}"


def _names(contents: Contents) -> list[str]:
    return sorted(f"{each}@{each.crc}" for some in contents.values() for each in some)
