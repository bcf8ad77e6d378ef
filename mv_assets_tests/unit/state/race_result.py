"""A view for processes to race on, and what must hold once they are through."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from mv_assets.state import rules
from mv_assets.state.model import Event, Operation, Snapshot
from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Clock, Deployment
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.state.racer import Race, Report, SharedTable

COMMITS = (Operation.APPEND, Operation.OVERWRITE)


def set_up(race: Race) -> None:
    """Every day has a file, and the first look found the source to reach to the end of the last one."""
    table = SharedTable(Path(race.folder))
    for day in range(race.days):
        table.rewrite(day, -day - 1)
    table.relist()
    store = Store(race.url)
    setter = Deployment(store, table, Clock(), who="set-up")
    setter.declare()
    setter.look()
    store.close()


@dataclass(frozen=True, slots=True)
class Result:
    """The map and its log after a race, oldest line first, beside what the processes were told."""

    snapshot: Snapshot
    events: list[Event]
    reports: list[Report]

    @classmethod
    def of(cls, race: Race, reports: list[Report]) -> Result:
        store = Store(race.url)
        with store.read("v") as reader:
            events = reader.events(most=1_000_000)
        snapshot = store.snapshot("v")
        store.close()
        return cls(snapshot, events[::-1], reports)

    @property
    def missing_versions(self) -> set[int]:
        return set(range(1, self.snapshot.header.version + 1)) - {event.version for event in self.events}

    @property
    def shared_versions(self) -> set[int]:
        """Versions that more than one process wrote."""
        writers = Counter(version for version, _ in {(event.version, event.who) for event in self.events})
        return {version for version, count in writers.items() if count > 1}

    @property
    def writes(self) -> dict[str, int]:
        """How many versions each process wrote, by the log."""
        return dict(Counter(who for _, who in {(event.version, event.who) for event in self.events}))

    @property
    def acknowledged(self) -> dict[tuple[int, int], int]:
        """The content read for each commit that a process was told of, by bucket and version."""
        return {
            (day * DAY, token): read
            for report in self.reports
            for day, read, _, token in report.decisions
            if token is not None
        }

    @property
    def lost_updates(self) -> set[tuple[int, int]]:
        """Commits that were acknowledged and not logged, or the reverse, and rows without their last one."""
        logged = [
            (event.bucket, event.version)
            for event in self.events
            if event.operation in COMMITS and event.bucket is not None
        ]
        last = dict(logged)
        rows = {b: row.content for b, row in self.snapshot.rows.items() if row.content is not None}
        wrong = {(bucket, version) for bucket, version in last.items() if rows.get(bucket) != version}
        return (set(logged) ^ self.acknowledged.keys()) | wrong

    @property
    def repeated(self) -> list[Event]:
        """Commits of inputs that the bucket already had, though no person asked for a new read."""
        held: dict[int | None, set[int]] = {}
        found = []
        for event in self.events:
            contents = held.setdefault(event.bucket, set())
            if event.operation is Operation.FORCE:
                contents.clear()
            elif event.operation in COMMITS and event.bucket is not None:
                read = self.acknowledged[event.bucket, event.version]
                if read in contents:
                    found.append(event)
                contents.add(read)
        return found


def derived_watermark(snapshot: Snapshot) -> int:
    """W as the rows alone say it, from the start."""
    from_start = rules.drop(snapshot.header)
    return rules.climb(from_start, (snapshot.rows[bucket] for bucket in sorted(snapshot.rows))).watermark
