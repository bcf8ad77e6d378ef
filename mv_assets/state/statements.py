"""The statements of commits and idle looks, built once: building one costs more than running it."""

from __future__ import annotations

from sqlalchemy import (
    LABEL_STYLE_TABLENAME_PLUS_COL,
    ColumnElement,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from mv_assets.state import schema
from mv_assets.state.model import GenerationState


def at_view(table: Table) -> ColumnElement[bool]:
    return table.c.view == bindparam("at_view")


ROW_COLUMNS = [column for column in schema.partition.c if column.name not in ("view", "segments")]

_partition, _generation = schema.partition, schema.generation
# A range, not a list: the text stays the same for any number of buckets, and so does the database's plan.
_within = _partition.c.bucket.between(bindparam("first"), bindparam("last"))

HEADER = select(schema.view).where(at_view(schema.view))
PULSES = (
    select(schema.view, schema.look)
    .outerjoin_from(schema.view, schema.look, schema.view.c.view == schema.look.c.view)
    .where(schema.view.c.view.in_(bindparam("views", expanding=True)))
    .set_label_style(LABEL_STYLE_TABLENAME_PLUS_COL)
)
LOCKED_HEADER = HEADER.with_for_update()
ROWS = select(*ROW_COLUMNS).where(
    at_view(_partition), _partition.c.bucket.in_(bindparam("buckets", expanding=True))
)
RUN = (
    select(*ROW_COLUMNS)
    .where(at_view(_partition), _partition.c.bucket >= bindparam("from_bucket"))
    .order_by(_partition.c.bucket)
    .limit(bindparam("length"))
)
LOOK = select(schema.look).where(at_view(schema.look))
GENERATION = select(_generation).where(at_view(_generation), _generation.c.id == bindparam("name"))

# The header under lock, a generation and some rows. After a wait for the lock PostgreSQL returns the newest
# header beside older rows; `seen_version`, which is read without the lock, tells. A generation that gc
# doomed meanwhile shows when it is to be enlivened.
_seen = schema.view.alias("seen")
CLAIM = (
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
INSERT = {table.name: insert(table).inline() for table in _partition.metadata.sorted_tables}
PUT_HEADER = update(schema.view).where(at_view(schema.view), schema.view.c.version == bindparam("at_version"))
PUT_ROW = update(_partition).where(
    at_view(_partition),
    _partition.c.bucket == bindparam("at_bucket"),
    _partition.c.token == bindparam("at_token"),
)
PUT_ATTEMPT = update(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket == bindparam("at_bucket")
)
END_ATTEMPT = delete(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket == bindparam("at_bucket")
)
END_OWN_ATTEMPT = END_ATTEMPT.where(schema.attempt.c.generation == bindparam("at_generation"))
PUT_GENERATION = update(_generation).where(_generation.c.id == bindparam("name"))

_alive = and_(_generation.c.id == bindparam("alive"), _generation.c.state != GenerationState.DOOMED.value)
ENLIVEN = (
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
BURY = (
    update(_generation)
    .where(_dead)
    .values(state=GenerationState.DEAD.value, dead_since=bindparam("at_version"))
)
# Both at once, as an overwrite needs them: a round trip less.
TURN_OVER = (
    update(_generation)
    .where(or_(_alive, _dead))
    .values(
        state=case((_alive, GenerationState.LIVE.value), else_=GenerationState.DEAD.value),
        dead_since=case((_alive, None), else_=bindparam("at_version")),
        files=case((_alive, bindparam("new_files")), else_=_generation.c.files),
    )
    .returning(_generation.c.id)
)
LEAVE_BEHIND = (
    update(_generation)
    .where(_generation.c.id == bindparam("name"), _generation.c.state == GenerationState.STAGED.value)
    .values(state=GenerationState.DEAD.value, dead_since=0)
)
_garbage = and_(
    at_view(_generation),
    _generation.c.state.in_([GenerationState.STAGED.value, GenerationState.DEAD.value]),
    _generation.c.heartbeat_at <= bindparam("silent_since"),
    # A reader that started before the last row left may still read it.
    func.coalesce(_generation.c.dead_since, 0) <= bindparam("oldest_reader"),
    ~exists().where(_partition.c.generation == _generation.c.id),
)
DOOM = update(_generation).where(_garbage).values(state=GenerationState.DOOMED.value)
_doomed = and_(at_view(_generation), _generation.c.state == GenerationState.DOOMED.value)
GARBAGE = select(_generation).where(or_(_garbage, _doomed)).order_by(_generation.c.id)

# A bucket keeps its last change of state and whatever came after it: what `explain` tells. Of the lines that
# are about the whole view, the last of each operation stays.
_event, _change = schema.event, schema.event.alias("change")
SHORTEN_LOG = delete(_event).where(
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

RENEW_LEASE = (
    update(schema.lease)
    .where(schema.lease.c.id == bindparam("name"), schema.lease.c.expires_at > bindparam("at"))
    .values(expires_at=bindparam("until"))
)
END_LEASES = delete(schema.lease).where(at_view(schema.lease), schema.lease.c.expires_at <= bindparam("at"))
