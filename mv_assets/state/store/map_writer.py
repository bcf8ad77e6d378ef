"""The writing half of a view's map. Only the manager, and what stands beside the map, hold one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Connection,
    Table,
    TextClause,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    or_,
    select,
    text,
    update,
)

from mv_assets.buckets import Buckets
from mv_assets.state.errors import CommitConflict, UnknownView
from mv_assets.state.model import (
    AttemptRecord,
    DataFile,
    Doing,
    Event,
    Generation,
    GenerationState,
    Header,
    Lease,
    LookRecord,
    PartitionRow,
    Publication,
    Segment,
    Trouble,
)
from mv_assets.state.store import codec, schema
from mv_assets.state.store.map_reader import COLLECTABLE, HEADER, ROW_COLUMNS, MapReader, at_view

# Built once: building a statement costs more than running it.
_partition, _generation = schema.partition, schema.generation
_LOCKED_HEADER = HEADER.with_for_update()

# The header under lock, a generation and some rows. After a wait for the lock PostgreSQL returns the newest
# header beside older rows; `seen_version`, which is read without the lock, tells. A generation that gc
# doomed meanwhile shows when it is to be enlivened.
_seen = schema.view.alias("seen")
# A range, not a list: the text stays the same for any number of buckets, and so does the database's plan.
_within = _partition.c.bucket.between(bindparam("first"), bindparam("last"))
_CLAIM = (
    select(
        *(column.label(f"header_{column.name}") for column in schema.view.c),
        _seen.c.version.label("seen_version"),
        _generation.c.state.label("generation_state"),
        *ROW_COLUMNS,
    )
    .select_from(
        schema.view.join(_seen, _seen.c.view == schema.view.c.view)
        .outerjoin(_generation, and_(at_view(_generation), _generation.c.id == bindparam("name")))
        .outerjoin(_partition, and_(at_view(_partition), _within))
    )
    .where(at_view(schema.view))
    .with_for_update(of=schema.view)
)

# Inline: nobody asks for the number of a new line in the log.
_INSERT = {table.name: insert(table).inline() for table in _partition.metadata.sorted_tables}
_PUT_HEADER = update(schema.view).where(
    at_view(schema.view), schema.view.c.version == bindparam("at_version")
)
_PUT_ROW = update(_partition).where(
    at_view(_partition),
    _partition.c.bucket == bindparam("at_bucket"),
    _partition.c.token == bindparam("at_token"),
)
_PUT_ATTEMPT = update(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket == bindparam("at_bucket")
)
_END_ATTEMPT = delete(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket == bindparam("at_bucket")
)
_END_OWN_ATTEMPT = _END_ATTEMPT.where(schema.attempt.c.generation == bindparam("at_generation"))
_PUT_GENERATION = update(_generation).where(_generation.c.id == bindparam("name"))

_alive = and_(_generation.c.id == bindparam("alive"), _generation.c.state != GenerationState.DOOMED.value)
_ENLIVEN = (
    update(_generation)
    .where(_alive)
    .values(state=GenerationState.LIVE.value, dead_since=None, files=bindparam("new_files"))
    .returning(_generation.c.id)
)
_dead = and_(
    _generation.c.id == bindparam("left"),
    _generation.c.state == GenerationState.LIVE.value,
    ~exists().where(_partition.c.generation == bindparam("left")),
)
_BURY = (
    update(_generation)
    .where(_dead)
    .values(state=GenerationState.DEAD.value, dead_since=bindparam("at_version"))
)
# Both at once, as an overwrite needs them: a round trip less.
_TURN_OVER = (
    update(_generation)
    .where(or_(_alive, _dead))
    .values(
        state=case((_alive, GenerationState.LIVE.value), else_=GenerationState.DEAD.value),
        dead_since=case((_alive, None), else_=bindparam("at_version")),
        files=case((_alive, bindparam("new_files")), else_=_generation.c.files),
    )
    .returning(_generation.c.id)
)
_LEAVE_BEHIND = (
    update(_generation)
    .where(_generation.c.id == bindparam("name"), _generation.c.state == GenerationState.STAGED.value)
    .values(state=GenerationState.DEAD.value, dead_since=0)
)
_DOOM = update(_generation).where(COLLECTABLE).values(state=GenerationState.DOOMED.value)

# A bucket keeps its last change of state and whatever came after it: what `explain` tells. Of the lines that
# are about the whole view, the last of each operation stays.
_event, _change = schema.event, schema.event.alias("change")
_SHORTEN_LOG = delete(_event).where(
    _event.c.id.in_(
        select(_event.c.id)
        .where(
            at_view(_event),
            _event.c.at < bindparam("before_ms"),
            exists().where(
                _change.c.view == _event.c.view,
                _change.c.id > _event.c.id,
                or_(
                    and_(
                        _change.c.bucket == _event.c.bucket,
                        _change.c.before.is_distinct_from(_change.c.after),
                    ),
                    and_(
                        _change.c.bucket.is_(None),
                        _event.c.bucket.is_(None),
                        _change.c.operation == _event.c.operation,
                    ),
                ),
            ),
        )
        .limit(bindparam("most"))
        .scalar_subquery()
    )
)

_RENEW_LEASE = (
    update(schema.lease)
    .where(schema.lease.c.id == bindparam("name"), schema.lease.c.expires_at > bindparam("at"))
    .values(expires_at=bindparam("until"))
)
_END_LEASES = delete(schema.lease).where(at_view(schema.lease), schema.lease.c.expires_at <= bindparam("at"))


@lru_cache(maxsize=64)
def _counting(number: int) -> TextClause:
    """Add to so many counters in one statement, which both databases know; else each is a round trip."""
    rows = ", ".join(f"(:view, :name{at}, :value{at})" for at in range(number))
    return text(
        f"INSERT INTO mv_counter (view, name, value) VALUES {rows} "  # noqa: S608 - names of ours
        "ON CONFLICT (view, name) DO UPDATE SET value = mv_counter.value + excluded.value"
    )


class MapWriter(MapReader):
    """The writing half. Only the manager, and what stands beside the map, hold one."""

    def __init__(self, connection: Connection, view: str, now: Callable[[], int], *, lock: bool) -> None:
        super().__init__(connection, view, now)
        self._lock = lock

    def header(self) -> Header | None:
        return self._header(_LOCKED_HEADER if self._lock else HEADER)

    def claim(
        self, buckets: Buckets, wanted: Sequence[int], generation: str
    ) -> tuple[Header, dict[int, PartitionRow], GenerationState | None]:
        """`known_header`, rows and a generation's state; of buckets in a run in one round trip."""
        if [buckets.next(bucket) for bucket in wanted[:-1]] == wanted[1:]:
            return self._claim_run(wanted[0], wanted[-1], generation)
        header, rows, named = self.known_header(), self.rows(wanted), self.generation(generation)
        return header, rows, None if named is None else named.state

    def _claim_run(
        self, first: int, last: int, generation: str
    ) -> tuple[Header, dict[int, PartitionRow], GenerationState | None]:
        at = {"at_view": self.view, "first": first, "last": last, "name": generation}
        found = self._all(_CLAIM, **at)
        if found and found[0]["seen_version"] != found[0]["header_version"]:
            found = self._all(_CLAIM, **at)
        if not found:
            raise UnknownView(self.view)
        rows = {record["bucket"]: codec.row(record) for record in found if record["bucket"] is not None}
        state = found[0]["generation_state"]
        header = codec.header(found[0], "header_")
        return header, rows, None if state is None else GenerationState(state)

    def put_header(self, before: Header | None, after: Header) -> None:
        """Write the header if it is still the one that was read."""
        columns = codec.header_columns(after)
        if before is None:
            self._insert(schema.view, [columns])
        else:
            at = {"at_view": columns.pop("view"), "at_version": before.version}
            self._verify(self._run(_PUT_HEADER, columns | at), 1)

    def put_definition(self, definition: str, width: str, since: int) -> None:
        self._insert(schema.definition, [{"definition": definition, "width": width, "since": since}])

    def put_rows(
        self,
        before: Mapping[int, PartitionRow | None],
        after: Iterable[PartitionRow],
        segments: Mapping[int, tuple[Segment, ...]] | None = None,
    ) -> None:
        """Insert rows of VACANT buckets, update the others where they still carry the token that was read."""
        fresh, changed = [], []
        for row in after:
            columns = codec.row_columns(row)
            if segments is not None:
                columns["segments"] = codec.segments_text(segments[row.bucket])
            known = before.get(row.bucket)
            if known is not None:
                at = {"at_view": self.view, "at_token": known.token}
                changed.append({"at_bucket": columns.pop("bucket"), **columns, **at})
            else:
                fresh.append(columns)
        self._insert(schema.partition, fresh)
        if changed:
            self._verify(self._run(_PUT_ROW, changed), len(changed))

    def delete_rows(self) -> None:
        """Forget all rows and attempts of the view."""
        for table in (schema.partition, schema.attempt):
            self._connection.execute(delete(table).where(table.c.view == self.view))

    def put_events(self, events: Iterable[Event]) -> None:
        self._insert(schema.event, [codec.event_columns(event) for event in events])

    def count(self, counted: Mapping[str, int]) -> None:
        """Add to the view's counters."""
        more = {name: value for name, value in counted.items() if value}
        if not more:
            return
        parameters: dict[str, str | int] = {"view": self.view}
        for at, (name, value) in enumerate(more.items()):
            parameters |= {f"name{at}": name, f"value{at}": value}
        self._run(_counting(len(more)), parameters)

    def shorten_log(self, before: int, most: int) -> int:
        """Delete lines older than that which a later one has made history; how many those were."""
        return self._run(_SHORTEN_LOG, {"at_view": self.view, "before_ms": before, "most": most})

    def put_attempts(self, before: Mapping[int, AttemptRecord], after: Mapping[int, AttemptRecord]) -> None:
        fresh, changed = [], []
        for bucket, record in after.items():
            columns = codec.attempt_columns(record)
            if bucket in before:
                changed.append(columns | {"at_view": self.view, "at_bucket": bucket})
            else:
                fresh.append(columns | {"bucket": bucket})
        self._insert(schema.attempt, fresh)
        if changed:
            self._run(_PUT_ATTEMPT, changed)

    def end_attempts(self, buckets: Iterable[int], only_of: str | None = None) -> None:
        """Forget the attempts on buckets, or those among them that belong to one generation."""
        at = {"at_view": self.view} | ({} if only_of is None else {"at_generation": only_of})
        ended = [at | {"at_bucket": bucket} for bucket in buckets]
        if ended:
            self._run(_END_ATTEMPT if only_of is None else _END_OWN_ATTEMPT, ended)

    def put_look(self, look: LookRecord | None) -> None:
        """Remember the last completed look; None forgets it."""
        self._connection.execute(delete(schema.look).where(schema.look.c.view == self.view))
        if look is not None:
            self._insert(schema.look, [codec.look_columns(look)])

    def put_trouble(self, doing: Doing, trouble: Trouble | None) -> None:
        """Remember what keeps the view from it; None if nothing does."""
        table = schema.trouble
        self._connection.execute(delete(table).where(table.c.view == self.view, table.c.doing == doing.value))
        if trouble is not None:
            self._insert(table, [codec.trouble_columns(trouble)])

    def add_generation(self, generation: Generation) -> None:
        self._insert(schema.generation, [codec.generation_columns(generation)])

    def beat(self, name: str) -> None:
        """The attempt that makes the generation is still running; Collected if that is in vain."""
        self.put_generation(replace(self.uncollected(name), heartbeat_at=self.now()))

    def put_generation(self, generation: Generation) -> None:
        columns = codec.generation_columns(generation)
        columns["name"] = columns.pop("id")
        self._verify(self._run(_PUT_GENERATION, columns), 1)

    def forget_generation(self, name: str) -> None:
        self._connection.execute(delete(schema.generation).where(schema.generation.c.id == name))

    def mark_live(self, name: str, files: Iterable[DataFile], left: Sequence[str], version: int) -> None:
        """Rows name a generation from now on, and have left others: `mark_dead` these.

        Raises:
            CommitConflict: gc doomed it after it was claimed.

        """
        at: dict[str, Any] = {"alive": name, "new_files": codec.files_text(files)}
        statement = _ENLIVEN
        if left:
            statement, at = _TURN_OVER, at | {"left": left[0], "at_version": version}
        if name not in self._connection.execute(statement, at).scalars().all():
            raise CommitConflict(f"generation {name} of view {self.view!r} was doomed by gc")
        self.mark_dead(left[1:], version)

    def mark_dead(self, left: Sequence[str], version: int) -> None:
        """Those of the generations that no row names any more are dead since `version`."""
        if left:
            self._run(_BURY, [{"left": old, "at_version": version} for old in left])

    def leave_behind(self, name: str) -> None:
        """The attempt ended and no row names its generation: dead, and for gc alone to delete."""
        self._run(_LEAVE_BEHIND, {"name": name})

    def mark_all_dead(self, version: int) -> None:
        """Every live generation of the view that no row names any more is dead."""
        live = [generation.id for generation in self.generations(GenerationState.LIVE)]
        self.mark_dead(live, version)

    def doom(self, silent_since: int, oldest_reader: int) -> None:
        """Doom what no row names, no heartbeat keeps and no reader that old can see."""
        at = {"at_view": self.view, "silent_since": silent_since, "oldest_reader": oldest_reader}
        self._run(_DOOM, at)

    def put_publication(self, publication: Publication) -> None:
        """Remember what is published at a target, in place of what was known of it."""
        self.end_publication(publication.target)
        self._insert(schema.publication, [codec.publication_columns(publication)])

    def end_publication(self, target: str) -> None:
        table = schema.publication
        self._connection.execute(delete(table).where(table.c.view == self.view, table.c.target == target))

    def put_lease(self, lease: Lease) -> None:
        """Insert the lease, or prolong it where an earlier try had landed unheard."""
        if not self.renew_lease(lease, 0):
            columns = {"id": lease.id, "version": lease.version, "expires_at": lease.expires_at}
            self._insert(schema.lease, [columns | {"who": lease.who}])

    def renew_lease(self, lease: Lease, now: int) -> bool:
        """Prolong the lease if it has not expired: the check and the write are one statement."""
        at = {"name": lease.id, "at": now, "until": lease.expires_at}
        return self._run(_RENEW_LEASE, at) == 1

    def end_leases(self, now: int) -> None:
        """Delete expired leases. A renewal under way is waited for, and then counts."""
        self._run(_END_LEASES, {"at_view": self.view, "at": now})

    def release_lease(self, name: str) -> None:
        self._connection.execute(delete(schema.lease).where(schema.lease.c.id == name))

    def _insert(self, table: Table, records: list[dict[str, Any]]) -> None:
        if records:
            self._run(_INSERT[table.name], [{"view": self.view, **record} for record in records])

    def _run(self, statement: Any, parameters: dict[str, Any] | list[dict[str, Any]]) -> int:
        """Execute and count; a single row goes without the driver's path for many."""
        if isinstance(parameters, list) and len(parameters) == 1:
            [parameters] = parameters
        return int(self._connection.execute(statement, parameters).rowcount)

    def _verify(self, written: int, expected: int) -> None:
        if written != expected:
            raise CommitConflict(
                f"{expected - written} row(s) of view {self.view!r} were changed by another writer"
            )
