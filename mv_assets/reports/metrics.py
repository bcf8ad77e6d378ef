"""What a monitoring system asks of the views: OpenMetrics, by Prometheus' own client library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector

from mv_assets.errors import StateError
from mv_assets.reports import publication
from mv_assets.reports.status import Status, ViewStatus
from mv_assets.state import health, rules
from mv_assets.state.change import BYTES, LOOKS, MILLISECONDS, ROWS
from mv_assets.state.model import Doing, Operation, Snapshot, State
from mv_assets.text import printable

_VIEW = "mv_assets_view_"
_COMMITS = (Operation.APPEND, Operation.OVERWRITE, Operation.DELETE)
# All states are shown, also those that no bucket is in: else a rate or an alert finds nothing to look at.
_STATES = ("valid", "stale", "failed", "frozen", "vacant")
_S = 1_000
_ABOUT = {
    "buckets": "Buckets by state. Those that failed or are frozen count as that alone.",
    "computing_buckets": "Buckets that are being computed now.",
    "rows": "Rows that are stored.",
    "bytes": "Bytes of the stored rows; what awaits garbage collection is not counted.",
    "map_version": "Version of the partition map; each change of it is one more.",
    "start_timestamp_seconds": "Where coverage begins.",
    "watermark_timestamp_seconds": "The view is complete through this time.",
    "source_end_timestamp_seconds": "How far the data of its tables is known to reach.",
    "lag_seconds": "How long ago the watermark is, or the end of the data where that is earlier.",
    "max_staleness_seconds": "The lag that the view's owner allows.",
    "oldest_waiting_seconds": "How long the oldest bucket waits that could be computed; 0 if none does.",
    "last_look_timestamp_seconds": "When its tables were last compared with the map. A look that finds the "
    "tables unchanged is not noted.",
    "last_refresh_timestamp_seconds": "When a bucket was last computed.",
    "wrong": "1 if a person should see to something: what `status` ends with 1 for.",
    "stalled": "1 if a bucket is due for longer than stall_after, and nobody computes it.",
    "fenced": "1 if the definition in force is a newer one than this project's.",
    "broken_files": "Files of its tables that can't be used, up to 50.",
    "troubles": "1 if something keeps the whole view from being looked at, worked on or published.",
    "published_map_version": "The version of the map that other tools see.",
    "published_timestamp_seconds": "When the view was last published.",
    "published_behind": "How many versions of the map behind other tools are.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Metrics(Collector):
    """The views as they are in the state, each with its counters; without a status, there is no state."""

    status: Status | None
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    # Why.
    error: StateError | None = None

    def collect(self) -> Iterator[Metric]:
        """The metrics, as a registry asks for them."""
        up = int(self.status is not None)
        yield GaugeMetricFamily("mv_assets_up", "1 if the state could be read, else 0.", up)
        if self.status is not None:
            yield from _of_views(self.status, self.counters)

    def text(self) -> str:
        """OpenMetrics text."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return str(generate_latest(registry).decode())  # type: ignore[no-untyped-call]


def _of_views(status: Status, counters: Mapping[str, Mapping[str, int]]) -> Iterator[Metric]:
    # OpenMetrics' own "info" is an error to those that read Prometheus' older text, as the node exporter.
    about = ["base", "bucket", "definition"]
    info = GaugeMetricFamily(f"{_VIEW}info", "What the view is; always 1.", labels=["view", *about])
    for each in status.views:
        declared = each.view.declared
        what = [declared.base.table, each.view.buckets.text, each.view.definition]
        info.add_metric([each.view.name, *what], 1)
    yield info
    yield from _gauges(status.views, status.now)
    yield from _counts(counters)


# A metric's name, its labels besides the view, and its value.
_Sample = tuple[str, Mapping[str, str], float]


def _gauges(views: Iterable[ViewStatus], now: int) -> Iterator[Metric]:
    families: dict[str, GaugeMetricFamily] = {}
    for each in views:
        for name, labels, value in _samples(each, now):
            if name not in families:
                families[name] = GaugeMetricFamily(_VIEW + name, _ABOUT[name], labels=["view", *labels])
            families[name].add_metric([each.view.name, *labels.values()], value)
    yield from families.values()


def _samples(each: ViewStatus, now: int) -> Iterator[_Sample]:
    snapshot, most = each.snapshot, each.view.declared.max_staleness
    counted = dict.fromkeys(_STATES, 0) if snapshot is None else _states(snapshot)
    for state, count in counted.items():
        yield "buckets", {"state": state}, count
    yield "computing_buckets", {}, len(each.computing)
    yield "wrong", {}, bool(each.wrong)
    yield "fenced", {}, each.wrong.fenced is not None
    yield "stalled", {}, each.wrong.stalled is not None
    yield "broken_files", {}, len(each.wrong.broken)
    for doing in Doing:
        hindered = any(trouble.doing is doing for trouble in each.wrong.troubles)
        yield "troubles", {"doing": doing.value}, hindered
    if most is not None:
        yield "max_staleness_seconds", {}, most / _S
    if snapshot is not None:
        yield from _of_map(snapshot, now)
        yield from _of_publications(each, snapshot.header.version)


def _of_map(snapshot: Snapshot, now: int) -> Iterator[_Sample]:
    header, look, rows = snapshot.header, snapshot.look, snapshot.rows.values()
    waits = None if look is None else look.oldest_waiting
    yield "rows", {}, sum(row.rows for row in rows)
    yield "bytes", {}, sum(row.bytes for row in rows)
    yield "map_version", {}, header.version
    yield "start_timestamp_seconds", {}, header.start / _S
    yield "watermark_timestamp_seconds", {}, header.watermark / _S
    yield "lag_seconds", {}, health.lag(header, now) / _S
    yield "oldest_waiting_seconds", {}, 0 if waits is None else max(now - waits.since, 0) / _S
    if header.source_end is not None:
        yield "source_end_timestamp_seconds", {}, header.source_end / _S
    if look is not None:
        yield "last_look_timestamp_seconds", {}, look.at / _S
    refreshed = [row.refreshed_at for row in rows if row.refreshed_at is not None]
    if refreshed:
        yield "last_refresh_timestamp_seconds", {}, max(refreshed) / _S


def _states(snapshot: Snapshot) -> dict[str, int]:
    found = dict.fromkeys(_STATES, 0)
    # What could not be computed has a record, if not a row.
    for bucket in snapshot.rows.keys() | snapshot.attempts.keys():
        condition = health.condition(snapshot, bucket).lower()
        found[condition] += condition != State.VACANT.value.lower()
    header, cap = snapshot.header, rules.cap(snapshot.header)
    end = max(header.watermark, header.start if cap is None else header.buckets.floor(cap))
    known = sum(header.start <= bucket < end for bucket in snapshot.rows)
    found["vacant"] = max(header.buckets.count(header.start, end) - known, 0)
    return found


def _of_publications(each: ViewStatus, version: int) -> Iterator[_Sample]:
    for known in each.publications:
        if known.version is not None and known.table is not None:
            labels = {"table": printable(known.table)}
            yield "published_map_version", labels, known.version
            yield "published_behind", labels, publication.behind(known, version)
            if known.at is not None:
                yield "published_timestamp_seconds", labels, known.at / _S


def _counts(counters: Mapping[str, Mapping[str, int]]) -> Iterator[Metric]:
    def family(name: str, about: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(_VIEW + name, about, labels=["view", *labels])

    refreshed = family("refreshed_buckets", "Buckets that were computed, by operation.", "operation")
    sums = {
        LOOKS: family("looks", "Complete looks that compared the tables with the map."),
        Operation.MARK: family("marked_buckets", "Buckets that looks found to be STALE."),
        Operation.FAIL: family("failed_buckets", "Times that a bucket could not be computed."),
        ROWS: family("refreshed_rows", "Rows that were computed."),
        BYTES: family("refreshed_bytes", "Bytes that were written for them."),
        MILLISECONDS: family("refresh_seconds", "Time that was spent computing."),
    }
    for view, counted in counters.items():
        for operation in _COMMITS:
            refreshed.add_metric([view, operation.value.lower()], counted.get(operation, 0))
        for name, each in sums.items():
            value = counted.get(name, 0)
            each.add_metric([view], value / _S if name == MILLISECONDS else value)
    yield refreshed
    yield from sums.values()
