"""A view with many committed buckets, inserted in bulk, and single commits into it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial

from sqlalchemy import insert, text, update

from mv_assets.state.errors import CommitConflict
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import (
    _SEAL,
    Attempt,
    CurrentInputs,
    DataFile,
    Declaration,
    Event,
    Fingerprint,
    Generation,
    GenerationState,
    Inputs,
    Look,
    Mark,
    Operation,
    PartitionRow,
    Planned,
    SecondLook,
    Segment,
    Staged,
    State,
)
from mv_assets.state.store import Store, codec, schema

HOUR = 3_600_000
VIEW = Declaration("sales_by_hour", "d" * 32, "1h", 0)
BUCKETS_A_GENERATION = 100
_CHUNK = 5_000
_FAR = 2_000_000 * HOUR


class FilledView:
    """The map of an hourly view: `size` VALID buckets, W right above them, data known far beyond."""

    def __init__(self, url: str, size: int) -> None:
        self.size = size
        self.store = Store(url)
        self.manager = PartitionManager(self.store, clock=lambda: _FAR)
        self._chance = random.Random(size)
        self._names = (f"new{n}" for n in itertools.count())
        self._bare_version = 1
        self.manager.declare(VIEW)
        self.manager.look(VIEW, Look("1", 1, 0, _FAR))
        self._insert()

    def close(self) -> None:
        self.store.close()

    def overwrite(self) -> Callable[[], object]:
        """Ready to commit one of the buckets again, after it was marked."""
        bucket = self._chance.randrange(self.size) * HOUR
        self.manager.mark_stale(VIEW, {bucket: Mark("a file arrived")})
        return self._ready(bucket, Operation.OVERWRITE)

    def append(self) -> Callable[[], object]:
        """Ready to commit the bucket at W."""
        with self.store.read(VIEW.view) as reader:
            return self._ready(reader.known_header().watermark, Operation.APPEND)

    def bare(self) -> Callable[[], object]:
        """Ready for the least that a versioned map could do: one version-checked UPDATE."""
        return self._bare_update

    def _ready(self, bucket: int, operation: Operation) -> Callable[[], object]:
        segments = _segments(bucket, self._chance.getrandbits(62))
        inputs = _inputs(segments)
        with self.store.read(VIEW.view) as reader:
            version = reader.known_header().version
            row = reader.rows([bucket]).get(bucket)
        planned = Planned(bucket, None if row is None else row.token, inputs)
        attempt = Attempt(next(self._names), version, (planned,))
        self.manager.register(VIEW, attempt)
        return partial(
            self._commit,
            operation,
            attempt,
            {bucket: Staged(1_000, 50_000, 900, segments)},
            SecondLook({bucket: CurrentInputs(inputs)}),
            [DataFile(f"{attempt.generation}/part-0.parquet", 50_000, 1_000)],
        )

    def _commit(
        self,
        operation: Operation,
        attempt: Attempt,
        staged: dict[int, Staged],
        seen: SecondLook,
        files: list[DataFile],
    ) -> None:
        (decision,) = self.manager.commit(VIEW, attempt, staged, lambda: seen, files).values()
        if decision.row is None or decision.row.operation is not operation:
            raise CommitConflict(f"{decision.outcome} instead of {operation}")

    def _bare_update(self) -> None:
        table, version = schema.view, self._bare_version
        with self.store.database.write() as connection:
            changed = (
                update(table)
                .where(table.c.view == "bare", table.c.version == version)
                .values(version=version + 1, watermark=version * HOUR)
            )
            if connection.execute(changed).rowcount != 1:
                raise CommitConflict("the bare row was changed by another writer")
        self._bare_version += 1

    def _insert(self) -> None:
        """Rows, generations and log as `size` commits would have left them."""
        with self.store.read(VIEW.view) as reader:
            header = reader.known_header()
        of_view = {"view": VIEW.view}
        with self.store.database.write() as connection:
            for first in range(0, self.size, _CHUNK):
                numbers = range(first, min(first + _CHUNK, self.size))
                rows = [_row(number) for number in numbers]
                connection.execute(
                    insert(schema.partition),
                    [
                        {
                            **of_view,
                            **codec.row_columns(row),
                            "segments": codec.segments_text(_segments(row.bucket, row.bucket)),
                        }
                        for row in rows
                    ],
                )
                connection.execute(
                    insert(schema.event), [{**of_view, **codec.event_columns(_event(row))} for row in rows]
                )
            generations = range(0, self.size, BUCKETS_A_GENERATION)
            connection.execute(
                insert(schema.generation), [codec.generation_columns(_generation(n)) for n in generations]
            )
            filled = {"version": self.size + 2, "watermark": self.size * HOUR}
            connection.execute(update(schema.view).values(filled))
            bare = codec.header_columns(header) | {"view": "bare", "version": self._bare_version}
            connection.execute(insert(schema.view).values(bare))
        with self.store.database.write() as connection:
            # A map that grew by itself would have been analyzed on the way.
            connection.execute(text("ANALYZE"))


def _segments(bucket: int, crc: int) -> tuple[Segment, ...]:
    return tuple(Segment(f"part-{bucket}-{n}.parquet", crc + n, bucket, bucket + HOUR - 1) for n in range(3))


def _inputs(segments: tuple[Segment, ...]) -> Inputs:
    return Inputs(Fingerprint(len(segments), segments[0].crc), VIEW.definition)


def _row(number: int) -> PartitionRow:
    bucket = number * HOUR
    return PartitionRow(
        bucket=bucket,
        state=State.VALID,
        token=number + 3,
        inputs=_inputs(_segments(bucket, bucket)),
        generation=_name(number),
        content=number + 3,
        rows=1_000,
        bytes=50_000,
        duration_ms=900,
        operation=Operation.APPEND,
        refreshed_at=bucket,
        seal=_SEAL,
    )


def _event(row: PartitionRow) -> Event:
    return Event(
        Operation.APPEND, row.bucket, State.VACANT, State.VALID, row.token, row.bucket, "benchmark", None
    )


def _name(number: int) -> str:
    return f"old{number // BUCKETS_A_GENERATION}"


def _generation(number: int) -> Generation:
    name = _name(number)
    files = (DataFile(f"{name}/part-0.parquet", 5_000_000, 100_000),)
    return Generation(name, VIEW.view, GenerationState.LIVE, 0, None, files)
