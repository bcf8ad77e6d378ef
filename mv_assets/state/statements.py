"""The statements of a commit, built once: building one costs more than running it."""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    bindparam,
    case,
    delete,
    exists,
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
GENERATION_COLUMNS = [column.label(f"generation_{column.name}") for column in schema.generation.c]

_partition, _generation = schema.partition, schema.generation
_among_buckets = _partition.c.bucket.in_(bindparam("buckets", expanding=True))

HEADER = select(schema.view).where(at_view(schema.view))
LOCKED_HEADER = HEADER.with_for_update()
ROWS = select(*ROW_COLUMNS).where(at_view(_partition), _among_buckets)
RUN = (
    select(*ROW_COLUMNS)
    .where(at_view(_partition), _partition.c.bucket >= bindparam("from_bucket"))
    .order_by(_partition.c.bucket)
    .limit(bindparam("length"))
)
GENERATION = select(_generation).where(_generation.c.id == bindparam("name"))
GENERATION_AND_ROWS = (
    select(*GENERATION_COLUMNS, *ROW_COLUMNS)
    .select_from(_generation.outerjoin(_partition, and_(at_view(_partition), _among_buckets)))
    .where(_generation.c.id == bindparam("name"))
)

INSERT = {table.name: insert(table) for table in _partition.metadata.sorted_tables}
PUT_HEADER = update(schema.view).where(at_view(schema.view), schema.view.c.version == bindparam("at_version"))
PUT_ROW = update(_partition).where(
    at_view(_partition),
    _partition.c.bucket == bindparam("at_bucket"),
    _partition.c.token == bindparam("at_token"),
)
PUT_ATTEMPT = update(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket == bindparam("at_bucket")
)
END_ATTEMPTS = delete(schema.attempt).where(
    at_view(schema.attempt), schema.attempt.c.bucket.in_(bindparam("buckets", expanding=True))
)
PUT_GENERATION = update(_generation).where(_generation.c.id == bindparam("name"))

# One statement for both sides of a commit: the generation that rows now name is live, and those of the
# ones they left that no row names any more are dead.
_alive = _generation.c.id == bindparam("alive")
_left = and_(
    _generation.c.id.in_(bindparam("left", expanding=True)),
    _generation.c.state == GenerationState.LIVE.value,
    ~exists().where(_partition.c.generation == _generation.c.id),
)
TURN_OVER = (
    update(_generation)
    .where(or_(_alive, _left))
    .values(
        state=case((_alive, GenerationState.LIVE.value), else_=GenerationState.DEAD.value),
        dead_since=case((_alive, None), else_=bindparam("version")),
        files=case((_alive, bindparam("new_files")), else_=_generation.c.files),
    )
)
