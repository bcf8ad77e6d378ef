"""One Delta table that shows a view's map: a commit for each version that is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from mv_assets.buckets import iso
from mv_assets.publish.contents import DIGEST, MARK, VERSION, VIEW
from mv_assets.publish.delta.folder import Folder
from mv_assets.publish.errors import Lost, NotPublished
from mv_assets.publish.target import Shown
from mv_assets.text import printable

_OURS = "mv-assets."
_DAY = 86_400_000
# The files of a view are gc's to delete: who vacuums the table deletes nothing.
_FOR_EVER = 3_650 * _DAY
# Each checkpoint lists what was taken out for that long, so it is said to have been so earlier than it was:
# it counts for a month only, or for as long as logs go back.
_REMEMBERED = 30 * _DAY
# A commit that lost must be derived anew: the library would put it on top of what won.
_NO_RETRIES = 0
_FEW_COMMITS = 20
_HOUR = 3_600_000
# The digest of no contents: of a table that is being withdrawn.
_NOTHING = "withdrawn"
_TIDYING = ("VACUUM START", "VACUUM END")

Commit = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a commit shows: those that come, and the paths of those that stay."""

    added: Sequence[AddAction]
    kept: frozenset[str] = frozenset()


@dataclass(slots=True)
class PublishedTable:
    """A table that is nobody's but ours to write; what is written there all the same is replaced."""

    view: str
    uri: str
    keep: int
    storage: Mapping[str, str]
    # Whether its data files are its own.
    owns_files: bool = False
    _table: DeltaTable | None = field(default=None, init=False)
    _own: Commit | None = field(default=None, init=False)
    _foreign: str | None = field(default=None, init=False)

    def load(self) -> Shown | None:
        """What it shows now; None if it is not there.

        Raises:
            NotPublished: a table of that name is not ours.

        """
        self._table = self._own = self._foreign = None
        table = self._table = self._opened()
        if table is None:
            return None
        version = table.transaction_version(_app(self.view))
        if table.metadata().description != _about(self.view) and version is None:
            why = "there is such a table already, which was not made for this view; drop or rename it there"
            raise NotPublished(self.view, self.uri, why)
        newest, self._own = _newest(table)
        if self._own is None or newest is None or self._own["version"] != newest["version"]:
            self._foreign = _foreign(newest)
        own = self._own or {}
        snapshot = str(own["version"]) if own else None
        return Shown(version, snapshot, self.uri, own.get(DIGEST), self._foreign, own.get(MARK))

    def _opened(self) -> DeltaTable | None:
        if not DeltaTable.is_deltatable(self.uri, dict(self.storage)):
            return None
        try:
            return DeltaTable(self.uri, storage_options=dict(self.storage))
        except DeltaError:
            # It was withdrawn meanwhile, or a peer has written after it was.
            if self.folder.begins():
                raise
            return None

    @property
    def folder(self) -> Folder:
        return Folder(self.uri, self.storage)

    @property
    def schema(self) -> pa.Schema | None:
        return None if self._table is None else pa.schema(self._table.schema().to_arrow())

    def paths(self) -> dict[str, int]:
        """The files that are shown, with their sizes."""
        return {} if self._table is None else _paths(self._table)

    def set_right(self) -> None:
        """Have the columns and properties that we left, where somebody else has changed them.

        What it shows is as we left it then, too; the commit that follows replaces all of that.

        Raises:
            Lost: a peer was there since it was loaded.

        """
        table, left = self._table, self._as_left()
        if table is None or left is None or _kind(left) == _kind(table):
            return
        # The library brings back no file that lies elsewhere: there, columns that came stay, and are null.
        if any("://" in path for path in _paths(left).keys() - _paths(table).keys()):
            return
        loaded, own = table.version(), self._own or {}
        table.restore(left.version(), commit_properties=CommitProperties(_said(own), _NO_RETRIES))
        if table.version() != loaded + 1:
            raise Lost

    def _as_left(self) -> DeltaTable | None:
        """The table of our last commit, if somebody has written since and logs still say."""
        if self._own is not None and self._foreign is not None:
            with suppress(DeltaError):
                return DeltaTable(self.uri, self._own["version"], dict(self.storage))
        return None

    def commit(self, files: Files, schema: pa.Schema, summary: Mapping[str, str], at: int) -> Shown:
        """One commit more, on top of what was loaded.

        Raises:
            Lost: a peer has committed since; what it shows now is not what was committed.

        """
        written = Transaction(_app(self.view), int(summary[VERSION]), at)
        properties = CommitProperties(dict(summary), _NO_RETRIES, [written])
        with self._unless_gone():
            if self._table is None:
                self._create(files, schema, properties)
            elif schema != self.schema and not files.kept:
                self._write(self._table, list(files.added), "overwrite", schema, properties)
            else:
                self._replace(self._table, files, schema, properties, at)
        shown = self.load()
        if shown is None or shown.version != int(summary[VERSION]):
            raise Lost
        return shown

    def tidy(self) -> None:
        """Delete files of its own that nobody should read any more, now and then."""
        if self._table is not None and self.owns_files and self._table.version() % _FEW_COMMITS == 0:
            hours = 2 * self.keep // _HOUR + 1
            # In full: checkpoints forget what was taken out, and a commit that lost has left files.
            self._table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)

    def withdraw(self) -> None:
        """Show nothing, and then take the log away: whoever is killed, no older version is shown again.

        Raises:
            Lost: a peer was there since it was loaded.

        """
        self.load()
        if self._table is not None:
            # What a peer writes from now on is not ours to delete.
            written = self.folder.data() if self.owns_files else []
            with self._unless_gone():
                last = self._empty(self._table)
            self.folder.delete(written)
            self.folder.delete_log(last)
        self.folder.delete_remains(self.view)
        self.folder.delete_empty(whole=self.owns_files)

    @contextmanager
    def _unless_gone(self) -> Iterator[None]:
        """Whatever the library says of a log that a peer has deleted meanwhile.

        Raises:
            Lost: that was it.

        """
        try:
            yield
        except DeltaError as error:
            if self.folder.begins():
                raise
            raise Lost from error

    def _empty(self, table: DeltaTable) -> int:
        """Show no rows, in a version that can be read without those before it."""
        last, said = table.version() + 1, _said({**(self._own or {}), DIGEST: _NOTHING, VIEW: self.view})
        schema = pa.schema(table.schema().to_arrow())
        self._write(table, [], "overwrite", schema, CommitProperties(said, _NO_RETRIES))
        empty = DeltaTable(self.uri, last, dict(self.storage))
        empty.create_checkpoint()
        return last

    @property
    def _kept_for(self) -> int:
        """How long files that are not shown are safe from who vacuums the table."""
        return 2 * self.keep if self.owns_files else max(_FOR_EVER, 2 * self.keep)

    def _create(self, files: Files, schema: pa.Schema, properties: CommitProperties) -> None:
        self.folder.delete_remains(self.view)
        create_table_with_add_actions(
            self.uri,
            Schema.from_arrow(schema),
            list(files.added),
            name=self.uri.rstrip("/").rpartition("/")[2],
            description=_about(self.view),
            configuration={
                "delta.logRetentionDuration": _interval(2 * self.keep),
                "delta.deletedFileRetentionDuration": _interval(self._kept_for),
            },
            storage_options=dict(self.storage),
            commit_properties=properties,
        )

    def _replace(
        self, table: DeltaTable, files: Files, schema: pa.Schema, properties: CommitProperties, at: int
    ) -> None:
        there, known = _paths(table), {part.name for part in self.schema or ()}
        new = [part for part in schema if part.name not in known]
        if new:
            # Null in the files that stay: a commit of its own, which shows the same rows as before.
            fields = Schema.from_arrow(pa.schema(new)).fields
            said = _said(self._own or {})
            table.alter.add_columns(fields, commit_properties=CommitProperties(said, _NO_RETRIES))
        remembered = min(self._kept_for, max(_REMEMBERED, 2 * self.keep))
        taken_out = max(0, at - self._kept_for + remembered)
        gone = [
            RemoveAction(path, data_change=True, deletion_timestamp=taken_out, size=size)
            for path, size in there.items()
            if path not in files.kept
        ]
        self._write(table, [*files.added, *gone], "append", schema, properties)

    def _write(
        self,
        table: DeltaTable,
        actions: list[AddAction | RemoveAction],
        mode: str,
        schema: pa.Schema,
        properties: CommitProperties,
    ) -> None:
        table.create_write_transaction(actions, mode, Schema.from_arrow(schema), commit_properties=properties)


def _paths(table: DeltaTable) -> dict[str, int]:
    actions = pa.table(table.get_add_actions())
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def _kind(table: DeltaTable) -> tuple[str, object, Sequence[str], str | None, str | None]:
    """What a table is besides its rows."""
    about = table.metadata()
    return (
        table.schema().to_json(),
        about.configuration,
        about.partition_columns,
        about.name,
        about.description,
    )


def _newest(table: DeltaTable) -> tuple[Commit | None, Commit | None]:
    """The newest commit that may have changed what is shown, and the newest of ours, if logs still say."""
    for most in (_FEW_COMMITS, None):
        # To tidy up, as we do too, changes nothing.
        commits = [each for each in table.history(most) if each.get("operation") not in _TIDYING]
        own = next((commit for commit in commits if VERSION in commit), None)
        if own is not None:
            break
    return next(iter(commits), None), own


def _foreign(commit: Commit | None) -> str:
    if commit is None:
        return "its log was shortened, and no longer says who wrote what it shows"
    when = iso(int(commit.get("timestamp", 0)))
    operation = printable(str(commit.get("operation", "?")))
    return f"commit {commit['version']} of {when} ({operation}) is somebody else's"


def _said(commit: Commit) -> dict[str, Any]:
    return {key: value for key, value in commit.items() if key.startswith(_OURS)}


def _interval(milliseconds: int) -> str:
    return f"interval {milliseconds} milliseconds"


def _about(view: str) -> str:
    """What a table of ours says of itself: other properties than Delta's own are not for everybody."""
    return f"view {view}, published by mv-assets"


def _app(view: str) -> str:
    return f"mv-assets {view}"
