"""What others do to a published Delta table while it is committed to, withdrawn, or left alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType

from mv_assets.buckets import DAY
from mv_assets.config import DeltaTarget, Target
from mv_assets.publish.contents import VERSION
from mv_assets.publish.delta.folder import Folder
from mv_assets.publish.delta.table import PublishedTable
from mv_assets_tests.support.published_lake import DeltaReader, PublishedLake, PublishedLakes, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE, clocked_lakes


class ElsewhereReader(DeltaReader):
    """Who follows absolute paths, as the library itself does not."""

    def rows(self, name: str = "v", snapshot: str | None = None) -> pa.Table:
        table = self.table(name, None if snapshot is None else int(snapshot))
        empty = pa.schema(table.schema().to_arrow()).empty_table()
        paths = pa.table(table.get_add_actions())["path"].to_pylist()
        if not paths:
            return empty
        places = [path if "://" in path else f"{table.table_uri}/{path}" for path in paths]
        read = [pq.read_table(place.removeprefix("file://")) for place in places]
        names = empty.column_names
        return pa.concat_tables([empty, *read], promote_options="permissive").select(names)


@dataclass
class ElsewhereLake(PublishedLake):
    """A lake whose tables are not in the warehouse."""

    @property
    def target(self) -> Target:
        folder = str(self.folder / "elsewhere")
        return DeltaTarget.model_validate({"format": "delta", "folder": folder, "keep": f"{self.keep}ms"})

    @property
    def reader(self) -> ElsewhereReader:
        return ElsewhereReader(self.folder / "elsewhere")


@pytest.fixture(params=[PublishedLake, ElsewhereLake], ids=["in the warehouse", "elsewhere"])
def lakes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PublishedLakes]:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", request.param, format="delta") as make:
        yield make


@pytest.fixture
def made(lakes: PublishedLakes) -> PublishedLake:
    return filled(lakes())


def filled(made: PublishedLake) -> PublishedLake:
    made.days(0, 1, 2)
    made.run()
    made.published()
    return made


def meanwhile(
    patch: pytest.MonkeyPatch, owner: type, method: str, peer: Callable[[], object], *, after: bool
) -> None:
    """What a peer does, once, right before a method or after it."""
    right, left = getattr(owner, method), [peer]

    def called(*given: Any, **named: Any) -> Any:
        if not after and left:
            left.pop()()
        found = right(*given, **named)
        if after and left:
            left.pop()()
        return found

    patch.setattr(owner, method, called)


def table_of(made: PublishedLake, name: str = "v") -> DeltaTable:
    assert isinstance(made.reader, DeltaReader)
    return made.reader.table(name)


def folder_of(made: PublishedLake, name: str) -> Path:
    return Path(table_of(made, name).table_uri.removeprefix("file://"))


def check(made: PublishedLake) -> None:
    header = made.snapshot().header
    assert int(made.reader.summary()[VERSION]) == header.version
    assert int(made.reader.summary("v__buckets")[VERSION]) == header.version
    assert rows_of(made.reader.rows()) == rows_of(made.current())
    made.check_buckets()


@pytest.mark.parametrize("table", ["v", "v__buckets"])
@pytest.mark.parametrize(
    ("method", "after"),
    [("restore", True), ("create_write_transaction", False), ("create_write_transaction", True)],
)
def test_who_is_overtaken_while_setting_a_table_right_does_not_go_back(
    lakes: PublishedLakes, monkeypatch: pytest.MonkeyPatch, table: str, method: str, *, after: bool
) -> None:
    made = lakes()
    if isinstance(made, ElsewhereLake) and table == "v":
        pytest.skip("the library restores no file that lies elsewhere")
    filled(made)
    made.overwrite(0)
    made.reader.scribble(table)
    table_of(made, table).alter.add_columns([Field("theirs", PrimitiveType("string"))])

    def peer() -> None:
        made.overwrite(1)
        made.published()

    meanwhile(monkeypatch, DeltaTable, method, peer, after=after)
    assert made.publish().error is None
    check(made)
    versions = [version for version in made.reader.snapshots(table).values() if version is not None]
    assert versions == sorted(versions, reverse=True)


def add_column(made: PublishedLake) -> None:
    table_of(made).alter.add_columns([Field("theirs", PrimitiveType("string"))])


def overwrite(made: PublishedLake) -> None:
    write_deltalake(table_of(made), made.reader.rows().slice(0, 1), mode="overwrite")


def overwrite_with_other_columns(made: PublishedLake) -> None:
    other = pa.table({"hour": ["noon"], "x": [1.5]})
    table = table_of(made)
    write_deltalake(table, other, mode="overwrite", schema_mode="overwrite")


def append_with_another_column(made: PublishedLake) -> None:
    more = made.reader.rows().slice(0, 1).append_column("theirs", pa.array(["x"]))
    write_deltalake(table_of(made), more, mode="append", schema_mode="merge")


def append_only(made: PublishedLake) -> None:
    table_of(made).alter.set_table_properties({"delta.appendOnly": "true"})


def restore_to_the_first(made: PublishedLake) -> None:
    table_of(made).restore(0)


SCRIBBLES = [
    add_column,
    overwrite,
    overwrite_with_other_columns,
    append_with_another_column,
    append_only,
]


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("scribble", SCRIBBLES)
def test_whatever_somebody_else_made_of_a_table_is_undone(
    made: PublishedLake, scribble: Callable[[PublishedLake], None], *, changed: bool
) -> None:
    columns = table_of(made).schema()
    properties = table_of(made).metadata().configuration
    scribble(made)
    if changed:
        made.overwrite(1)
    found = made.publish(look=True)
    assert found.error is None
    assert found.publication is not None
    assert "somebody else's" in str(found.publication.replaced)
    # As it is known, it is what readers see now.
    assert found.publication.snapshot == str(table_of(made).version())
    check(made)
    assert table_of(made).schema() == columns
    assert table_of(made).metadata().configuration == properties
    assert made.publish(look=True).is_new is False


def test_a_table_that_somebody_set_back_is_shown_as_it_was_left(lakes: PublishedLakes) -> None:
    made = filled(lakes())
    made.overwrite(0)
    made.published()
    if isinstance(made, ElsewhereLake):
        pytest.skip("the library restores no file that lies elsewhere")
    restore_to_the_first(made)
    assert made.publish(look=True).error is None
    check(made)
    assert made.publisher.behind() == []


class Killed(BaseException):
    """The process ends here."""


def kill_at(patch: pytest.MonkeyPatch, step: int) -> Callable[[], int]:
    """End at the nth of all calls that change what there is; what says how many there were."""
    calls = 0
    kinds: list[tuple[Any, str]] = [
        (DeltaTable, "create_write_transaction"),
        (DeltaTable, "create_checkpoint"),
        (Folder, "delete"),
    ]
    # One file after the other, as a process may end between them.
    right_delete = Folder.delete

    def one_by_one(self: Folder, names: Any) -> None:
        for name in names:
            counted(right_delete, self, [name])

    def counted(right: Any, *given: Any, **named: Any) -> Any:
        nonlocal calls
        if calls == step:
            raise Killed
        calls += 1
        return right(*given, **named)

    for owner, name in kinds[:2]:
        right = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, _right=right, **named: counted(_right, *given, **named))
    patch.setattr(Folder, "delete", one_by_one)
    return lambda: calls


def killed_while_withdrawing(made: PublishedLake, step: int) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, step)
        try:
            assert made.publisher.withdraw("v") is None
        except Killed:
            return True
    return False


def test_killed_at_any_step_of_a_withdrawal_no_older_version_is_readable_again(lakes: PublishedLakes) -> None:
    step, was_killed = 0, True
    made = filled(lakes())
    while was_killed:
        for number in range(2):
            made.overwrite(number)
            made.published()
        newest = int(made.reader.summary()[VERSION])
        made.manager.drop("v")
        was_killed = killed_while_withdrawing(made, step)
        for name in ("v", "v__buckets"):
            with suppress(DeltaError):
                table = table_of(made, name)
                assert made.reader.files(name) == [] or int(made.reader.summary(name)[VERSION]) == newest
                assert table.transaction_version("mv-assets v") == newest
        if step % 2:
            # Who does not drop it again computes it again.
            made.run()
            made.published()
            check(made)
            made.manager.drop("v")
        assert made.publisher.withdraw("v") is None
        assert not made.reader.exists()
        assert not made.reader.exists("v__buckets")
        assert made.known() is None
        made.later(GRACE)
        made.garbage().collect("v")
        made.run()
        made.published()
        check(made)
        step += 1
    assert step > 10


def test_what_a_peer_commits_on_top_of_a_table_that_is_withdrawn_jams_nothing(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.overwrite(0)

    def peer() -> None:
        assert made.publish(look=True).error is None

    # It is there again, though empty, when all of its log goes.
    meanwhile(monkeypatch, Folder, "delete_log", peer, after=False)
    made.manager.drop("v")
    assert made.publisher.withdraw("v") is None
    assert made.publisher.withdraw("v") is None
    made.run()
    assert made.publish(look=True).error is None
    check(made)


def test_of_two_who_withdraw_a_table_both_are_fine(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peer() -> None:
        assert made.publisher.withdraw("v") is None

    for method in ("load", "_empty"):
        with monkeypatch.context() as patch:
            meanwhile(patch, PublishedTable, method, peer, after=True)
            made.manager.drop("v")
            assert made.publisher.withdraw("v") is None
        assert not made.reader.exists()
        assert not made.reader.exists("v__buckets")
        made.run()
        made.published()
        check(made)


def test_who_publishes_while_a_view_is_dropped_has_no_trouble(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def peer() -> None:
        made.manager.drop("v")
        assert made.publisher.withdraw("v") is None

    made.overwrite(0)
    meanwhile(monkeypatch, DeltaTable, "create_write_transaction", peer, after=False)
    assert made.publish().error is None
    assert not made.reader.exists()
    assert made.snapshot().troubles == ()
    made.run()
    made.published()
    check(made)


@pytest.mark.parametrize(("ago", "remembered"), [(29 * DAY, True), (31 * DAY, False)])
def test_checkpoints_forget_what_was_taken_out_a_month_ago(
    made: PublishedLake, ago: int, *, remembered: bool
) -> None:
    made.clock.now = time.time_ns() // 1_000_000 - ago
    made.overwrite(0)
    made.published()
    for name, expected in (("v", remembered), ("v__buckets", False)):
        table = table_of(made, name)
        table.create_checkpoint()
        [checkpoint] = folder_of(made, name).glob("_delta_log/*.checkpoint.parquet")
        removed = pq.read_table(checkpoint, columns=["remove"])["remove"].drop_null()
        assert bool(len(removed)) == expected


def test_what_a_lost_commit_left_goes_and_what_is_written_now_stays(
    made: PublishedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mv_assets.publish.delta.table._FEW_COMMITS", 1)
    place = folder_of(made, "v__buckets")
    for name in ("lost.parquet", "coming.parquet"):
        (place / name).write_bytes(b"")
    os.utime(place / "lost.parquet", (0, 0))
    made.overwrite(0)
    made.published()
    left = {path.name for path in place.glob("*.parquet")}
    assert "lost.parquet" not in left
    assert "coming.parquet" in left
    made.check_buckets()
