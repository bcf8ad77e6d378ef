"""Rows of the SQL tables as values of the model, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from mv_assets.errors import StateError
from mv_assets.state.model import (
    _SEAL,
    AttemptRecord,
    DataFile,
    Doing,
    Event,
    Fingerprint,
    Generation,
    GenerationState,
    Header,
    Inputs,
    LookRecord,
    MapSummary,
    OldestWaiting,
    Operation,
    PartitionRow,
    Publication,
    Segment,
    State,
    Trouble,
)

Record = Mapping[str, Any]


def header(record: Record, prefix: str = "") -> Header:
    return Header(
        view=record[f"{prefix}view"],
        version=record[f"{prefix}version"],
        watermark=record[f"{prefix}watermark"],
        width=record[f"{prefix}width"],
        start=record[f"{prefix}start"],
        definition=record[f"{prefix}definition"],
        source_end=record[f"{prefix}source_end"],
        reset_at=record[f"{prefix}reset_at"],
        closed=record[f"{prefix}closed"],
        seal=_SEAL,
    )


def header_columns(value: Header) -> dict[str, Any]:
    return {
        "view": value.view,
        "version": value.version,
        "watermark": value.watermark,
        "width": value.width,
        "start": value.start,
        "definition": value.definition,
        "source_end": value.source_end,
        "reset_at": value.reset_at,
        "closed": value.closed,
    }


def row(record: Record) -> PartitionRow:
    return PartitionRow(
        bucket=record["bucket"],
        state=State(record["state"]),
        token=record["token"],
        inputs=inputs(record["inputs"]),
        generation=record["generation"],
        content=record["content"],
        rows=record["rows"],
        bytes=record["bytes"],
        duration_ms=record["duration_ms"],
        operation=None if record["operation"] is None else Operation(record["operation"]),
        refreshed_at=record["refreshed_at"],
        reason=record["reason"],
        forced=record["forced"],
        forced_at=record["forced_at"],
        frozen=record["frozen"],
        seal=_SEAL,
    )


def row_columns(value: PartitionRow) -> dict[str, Any]:
    return {
        "bucket": value.bucket,
        "state": value.state.value,
        "token": value.token,
        "inputs": _inputs_text(value.inputs),
        "generation": value.generation,
        "content": value.content,
        "rows": value.rows,
        "bytes": value.bytes,
        "duration_ms": value.duration_ms,
        "operation": None if value.operation is None else value.operation.value,
        "refreshed_at": value.refreshed_at,
        "reason": _text(value.reason),
        "forced": value.forced,
        "forced_at": value.forced_at,
        "frozen": value.frozen,
    }


def of_definition(definition: str) -> str:
    """A pattern of the inputs of that definition: it stands alone in quotes after the base's fingerprint."""
    return f'[[%],"{definition}"%'


def inputs(text: str | None) -> Inputs | None:
    if text is None:
        return None
    # Most views have one table with a time, and inputs without further ones.
    base, definition, *named = json.loads(text)
    return Inputs(Fingerprint(*base), definition, *map(_named, named))


def _named(prints: Iterable[tuple[str, list[int]]]) -> tuple[tuple[str, Fingerprint], ...]:
    return tuple((name, Fingerprint(*print_)) for name, print_ in prints)


def _inputs_text(value: Inputs | None) -> str | None:
    if value is None:
        return None
    named = [value.dimensions, value.further] if value.further else [value.dimensions]
    lists = [[[name, _print(print_)] for name, print_ in prints] for prints in named]
    return _json([_print(value.base), value.definition, *lists])


def segments(text: str | None) -> tuple[Segment, ...]:
    return () if text is None else tuple(Segment(*fields) for fields in json.loads(text))


def segments_text(values: Iterable[Segment]) -> str:
    return _json([_segment(segment) for segment in values])


def _segment(value: Segment) -> list[Any]:
    fields = [value.name, value.crc, value.start_ms, value.end_ms]
    return fields if value.source is None else [*fields, value.source]


def generation(record: Record) -> Generation:
    return Generation(
        id=record["id"],
        view=record["view"],
        state=GenerationState(record["state"]),
        heartbeat_at=record["heartbeat_at"],
        dead_since=record["dead_since"],
        files=files(record["view"], record["files"]),
    )


def files(view: str, text: str) -> tuple[DataFile, ...]:
    return tuple(_data_file(view, *fields) for fields in json.loads(text))


def _data_file(view: str, path: str, size: int, rows: int, buckets: Iterable[int] | None = None) -> DataFile:
    # Whoever can write the database must not thereby have other files read as a view's.
    if path.startswith("/") or ".." in path.split("/"):
        raise StateError(
            f"view {view!r} names the file {path!r}, which is outside of the warehouse; somebody has changed "
            "the state database, restore it from a backup"
        )
    return DataFile(path, size, rows, None if buckets is None else tuple(buckets))


def generation_columns(value: Generation) -> dict[str, Any]:
    return {
        "id": value.id,
        "view": value.view,
        "state": value.state.value,
        "heartbeat_at": value.heartbeat_at,
        "dead_since": value.dead_since,
        "files": files_text(value.files),
    }


def files_text(values: Iterable[DataFile]) -> str:
    return _json([_data_file_fields(file) for file in values])


def _data_file_fields(file: DataFile) -> list[Any]:
    fields = [file.path, file.bytes, file.rows]
    return fields if file.buckets is None else [*fields, file.buckets]


def attempt(record: Record) -> AttemptRecord:
    return AttemptRecord(
        count=record["count"],
        generation=record["generation"],
        last_error=record["last_error"],
        retry_after=record["retry_after"],
        inputs=inputs(record["inputs"]),
    )


def attempt_columns(value: AttemptRecord) -> dict[str, Any]:
    return {
        "count": value.count,
        "generation": value.generation,
        "last_error": _text(value.last_error),
        "retry_after": value.retry_after,
        "inputs": _inputs_text(value.inputs),
    }


def look(record: Record, prefix: str = "") -> LookRecord:
    vacant, oldest_waiting = record[f"{prefix}vacant"], record[f"{prefix}unserved"]
    return LookRecord(
        record[f"{prefix}table_version"],
        record[f"{prefix}map_version"],
        record[f"{prefix}at"],
        record[f"{prefix}recheck_at"],
        tuple(json.loads(record[f"{prefix}broken"])),
        vacant,
        None if oldest_waiting is None else OldestWaiting(oldest_waiting, record[f"{prefix}unserved_since"]),
        record[f"{prefix}ends_first"],
        record[f"{prefix}whole_at"],
    )


def summary(record: Record) -> MapSummary:
    looked = record["mv_look_view"] is not None
    return MapSummary(header(record, "mv_view_"), look(record, "mv_look_") if looked else None)


def look_columns(value: LookRecord) -> dict[str, Any]:
    return {
        "table_version": value.table_version,
        "map_version": value.map_version,
        "at": value.at,
        "recheck_at": value.recheck_at,
        "broken": _json(value.broken),
        "vacant": value.first_vacant,
        "unserved": None if value.oldest_waiting is None else value.oldest_waiting.bucket,
        "unserved_since": None if value.oldest_waiting is None else value.oldest_waiting.since,
        "ends_first": value.ends_first,
        "whole_at": value.whole_at,
    }


def trouble(record: Record) -> Trouble:
    return Trouble(Doing(record["doing"]), record["since"], record["what"])


def trouble_columns(value: Trouble) -> dict[str, Any]:
    return {"doing": value.doing.value, "since": value.since, "what": _text(value.what)}


def publication(record: Record) -> Publication:
    return Publication(**record)


def publication_columns(value: Publication) -> dict[str, Any]:
    return asdict(value) | {"replaced": _text(value.replaced)}


def event(record: Record) -> Event:
    return Event(
        operation=Operation(record["operation"]),
        bucket=record["bucket"],
        before=None if record["before"] is None else State(record["before"]),
        after=None if record["after"] is None else State(record["after"]),
        version=record["version"],
        at=record["at"],
        who=record["who"],
        why=record["why"],
    )


def event_columns(value: Event) -> dict[str, Any]:
    return {
        "operation": value.operation.value,
        "bucket": value.bucket,
        "before": None if value.before is None else value.before.value,
        "after": None if value.after is None else value.after.value,
        "version": value.version,
        "at": value.at,
        "who": value.who,
        "why": _text(value.why),
    }


def _print(value: Fingerprint) -> list[int]:
    return [value.segment_count, value.crc]


def _text(value: str | None) -> str | None:
    """Free text as every database can hold it: it may name a file whose name is not UTF-8."""
    if value is None:
        return None
    return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
