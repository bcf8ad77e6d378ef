"""The SQL tables, created on first use, and the version that says which mv_assets wrote them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    text,
    update,
)

from mv_assets.state.errors import SchemaTooNew

VERSION = 11

_metadata = MetaData()

schema = Table("mv_schema", _metadata, Column("version", Integer, primary_key=True, autoincrement=False))

view = Table(
    "mv_view",
    _metadata,
    Column("view", String, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("watermark", BigInteger, nullable=False),
    Column("width", String, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("definition", String, nullable=False),
    Column("source_end", BigInteger),
    Column("reset_at", BigInteger, nullable=False),
    Column("closed", BigInteger),
)

definition = Table(
    "mv_definition",
    _metadata,
    Column("view", String, primary_key=True),
    Column("definition", String, primary_key=True),
    Column("width", String, nullable=False),
    Column("since", BigInteger, nullable=False),
)

partition = Table(
    "mv_partition",
    _metadata,
    Column("view", String, primary_key=True),
    Column("bucket", BigInteger, primary_key=True),
    Column("state", String, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("inputs", Text),
    Column("generation", String),
    Column("content", BigInteger),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("duration_ms", BigInteger, nullable=False),
    Column("operation", String),
    Column("refreshed_at", BigInteger),
    Column("reason", Text),
    Column("forced", Boolean, nullable=False),
    Column("forced_at", BigInteger, nullable=False),
    Column("frozen", Boolean, nullable=False),
    # The contributing segments: as long as a bucket has files, so only `explain` and its like read it.
    Column("segments", Text),
    Index("mv_partition_generation", "generation"),
)

event = Table(
    "mv_event",
    _metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("view", String, nullable=False),
    Column("bucket", BigInteger),
    Column("operation", String, nullable=False),
    Column("before", String),
    Column("after", String),
    Column("version", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("who", String, nullable=False),
    Column("why", Text),
    Index("mv_event_bucket", "view", "bucket", "id"),
)

generation = Table(
    "mv_generation",
    _metadata,
    Column("id", String, primary_key=True),
    Column("view", String, nullable=False),
    Column("state", String, nullable=False),
    Column("heartbeat_at", BigInteger, nullable=False),
    Column("dead_since", BigInteger),
    Column("files", Text, nullable=False),
    Index("mv_generation_state", "view", "state"),
)

attempt = Table(
    "mv_attempt",
    _metadata,
    Column("view", String, primary_key=True),
    Column("bucket", BigInteger, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("generation", String),
    Column("last_error", Text),
    Column("retry_after", BigInteger),
    Column("inputs", Text),
)

lease = Table(
    "mv_lease",
    _metadata,
    Column("id", String, primary_key=True),
    Column("view", String, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("who", String, nullable=False),
    Index("mv_lease_view", "view", "version"),
)

look = Table(
    "mv_look",
    _metadata,
    Column("view", String, primary_key=True),
    Column("table_version", String, nullable=False),
    Column("map_version", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("recheck_at", BigInteger),
    Column("broken", Text, nullable=False),
    Column("vacant", BigInteger),
    Column("unserved", BigInteger),
    Column("unserved_since", BigInteger),
    Column("ends_first", String),
    Column("whole_at", BigInteger),
)

# What has happened to a view since it was first counted: it only grows, whatever gc forgets.
counter = Table(
    "mv_counter",
    _metadata,
    Column("view", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

trouble = Table(
    "mv_trouble",
    _metadata,
    Column("view", String, primary_key=True),
    Column("doing", String, primary_key=True),
    Column("since", BigInteger, nullable=False),
    Column("what", Text, nullable=False),
)

publication = Table(
    "mv_publication",
    _metadata,
    Column("view", String, primary_key=True),
    Column("target", String, primary_key=True),
    # Snapshots from this version of the map on may still be read: gc keeps what they name.
    Column("oldest", BigInteger, nullable=False),
    Column("version", BigInteger),
    Column("seen", BigInteger),
    Column("table", Text),
    Column("snapshot", String),
    Column("location", Text),
    Column("digest", String),
    Column("at", BigInteger),
    Column("replaced", Text),
    Column("passed", BigInteger),
    Column("passed_at", BigInteger),
    Column("mark", String),
)

inventory = Table(
    "mv_inventory",
    _metadata,
    Column("table_name", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("identity", BigInteger, nullable=False),
    Column("crc", BigInteger, nullable=False),
    Column("start_ms", BigInteger),
    Column("end_ms", BigInteger),
    Column("nulls", BigInteger, nullable=False),
    Column("trusted", Boolean, nullable=False),
    Column("error", Text),
)

# What was found out about a table as a whole, in parts; like the inventory it can be found again.
remembered = Table(
    "mv_remembered",
    _metadata,
    Column("table_name", String, primary_key=True),
    Column("kind", String, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)

# What metadata files of base tables say, which never change; a cache, as the inventory is.
manifest = Table(
    "mv_manifest",
    _metadata,
    Column("table_name", String, primary_key=True),
    Column("path", String, primary_key=True),
    # What was taken from it, and how that is written down.
    Column("layout", String, nullable=False),
    Column("content", LargeBinary, nullable=False),
)

Migration = Callable[[Connection], None]


def _broken_files(connection: Connection) -> None:
    """Inventory and looks tell of broken files. They are made anew: all they hold can be found again."""
    for table in (inventory, look):
        table.drop(connection)
        table.create(connection)


def _unserved_and_troubles(connection: Connection) -> None:
    """Looks tell of what waits to be computed; the next one does. And views have troubles."""
    look.drop(connection)
    look.create(connection)
    trouble.create(connection)


def _ranges_of_footers(connection: Connection) -> None:
    """Footers tell where rows lie that can't be read: files that nobody asked are read once more."""
    connection.execute(
        delete(inventory).where(inventory.c.error.is_not(None), inventory.c.start_ms.is_(None))
    )


def _closed_buckets(connection: Connection) -> None:
    """Headers tell of a bucket that counts as complete though the data stops before its end; none yet."""
    connection.execute(text("ALTER TABLE mv_view ADD COLUMN closed BIGINT"))


def _which_ends_first(connection: Connection) -> None:
    """Looks at views of several tables tell which of them W waits for."""
    if _lacks(connection, look, "ends_first"):
        connection.execute(text("ALTER TABLE mv_look ADD COLUMN ends_first VARCHAR"))


def _remembered_metadata(connection: Connection) -> None:
    """Looks remember the files of a table's version, and what its manifests say; nothing is yet."""
    for table in (remembered, manifest):
        table.create(connection, checkfirst=True)


def _publications(connection: Connection) -> None:
    """Views may be published; none is yet."""
    publication.create(connection, checkfirst=True)


def _counters(connection: Connection) -> None:
    """What happens is counted from now on."""
    counter.create(connection, checkfirst=True)


def _marks(connection: Connection) -> None:
    """Publications get a mark of their own; those of before have none."""
    if _lacks(connection, publication, "mark"):
        connection.execute(text("ALTER TABLE mv_publication ADD COLUMN mark VARCHAR"))


def _whole_looks(connection: Connection) -> None:
    """Looks tell when all buckets were compared last; of those of before nobody knows, so that it is due."""
    if _lacks(connection, look, "whole_at"):
        connection.execute(text("ALTER TABLE mv_look ADD COLUMN whole_at BIGINT"))


def _lacks(connection: Connection, table: Table, column: str) -> bool:
    """Whether a table has no such column; one that an earlier step made anew has all."""
    return column not in {found["name"] for found in inspect(connection).get_columns(table.name)}


# From the version before the key to the key; each runs inside the transaction that raises the version.
MIGRATIONS: Mapping[int, Migration] = {
    2: _broken_files,
    3: _unserved_and_troubles,
    4: _ranges_of_footers,
    5: _closed_buckets,
    6: _which_ends_first,
    7: _remembered_metadata,
    8: _publications,
    9: _counters,
    10: _marks,
    11: _whole_looks,
}

# Any constant will do: it keeps two first users of a PostgreSQL database from creating the tables at once.
_ADVISORY_LOCK = 0x6D765F617373


def bring_up_to_date(
    connection: Connection,
    where: str,
    version: int = VERSION,
    migrations: Mapping[int, Migration] = MIGRATIONS,
) -> None:
    """Create the tables, or migrate those of an older mv_assets; runs in the caller's write transaction.

    Raises:
        SchemaTooNew: the tables are those of a newer mv_assets.

    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
    schema.create(connection, checkfirst=True)
    found = connection.execute(select(schema.c.version)).scalar()
    if found is None:
        _metadata.create_all(connection)
        connection.execute(insert(schema).values(version=version))
        return
    if found > version:
        raise SchemaTooNew(where, found, version)
    for step in range(found + 1, version + 1):
        migrations[step](connection)
    if found < version:
        connection.execute(update(schema).values(version=version))
