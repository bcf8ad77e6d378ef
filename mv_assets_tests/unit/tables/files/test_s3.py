"""Parquet folders on a real S3 server: what a look sees there, and what it does when the store fails."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.config import ParquetTable
from mv_assets.state.store import Store
from mv_assets.tables.errors import TableUnreadable
from mv_assets.tables.listing import Listing, Table
from mv_assets.tables.open import open_table
from mv_assets_tests.support.harness import Clock
from mv_assets_tests.support.object_store import LATER_PAGE, ObjectStore, object_store

pytestmark = pytest.mark.processes
_names = itertools.count()
# Far from the store's own clock: all that it has is old.
LATER = 4_102_444_800_000
SECOND = datetime(2024, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(server: ObjectStore) -> str:
    name = f"lake-{next(_names)}"
    server.create(name)
    return name


@pytest.fixture
def state(tmp_path: object) -> Iterator[Store]:
    opened = Store(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


def content(*times: int, padding: int = 0) -> bytes:
    out = BytesIO()
    pq.write_table(pa.table({"ts": pa.array(times, pa.timestamp("ms")), "x": [padding] * len(times)}), out)
    return out.getvalue()


def opened(server: ObjectStore, path: str, state: Store, now: int = LATER, **more: object) -> Table:
    given = {"name": "t", "path": path, "time_column": "ts", "storage": server.storage(), **more}
    return open_table(ParquetTable.model_validate(given), state.database, Clock(now))


def look(server: ObjectStore, path: str, state: Store, now: int = LATER) -> Listing:
    return opened(server, path, state, now).current().listing()


def named(listing: Listing) -> dict[str, int]:
    return dict(zip(listing.names, listing.crcs, strict=True))


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_a_folder_is_listed_by_each_name_of_the_store(
    server: ObjectStore, bucket: str, state: Store, scheme: str
) -> None:
    server.put(f"{bucket}/t/day=1/a.parquet", content(1, 5))
    server.put(f"{bucket}/t/_SUCCESS", b"")
    server.put(f"{bucket}/other/b.parquet", content(7))
    found = look(server, f"{scheme}://{bucket}/t/", state)
    assert found.names == ["day=1/a.parquet"]
    assert (found.starts[0], found.ends[0]) == (1, 5)
    assert found.path("day=1/a.parquet") == f"s3://{bucket}/t/day=1/a.parquet"


def test_more_objects_than_one_page_are_all_listed(server: ObjectStore, bucket: str, state: Store) -> None:
    one = content(1)
    for number in range(1_003):
        server.put(f"{bucket}/t/{number:04}.parquet", one)
    server.forget()
    found = opened(server, f"s3://{bucket}/t", state).current()
    assert found.version.startswith("1003:")
    assert sum("continuation-token" in request for request in server.asked()) == 1

    broken = server.refusing(500, "InternalError", LATER_PAGE)
    with broken, pytest.raises(TableUnreadable, match=f"s3://{bucket}/t can't be listed"):
        opened(server, f"s3://{bucket}/t", state).current()


def test_only_new_objects_are_read(server: ObjectStore, bucket: str, state: Store) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))
    look(server, f"s3://{bucket}/t", state)
    server.put(f"{bucket}/t/b.parquet", content(2))
    server.forget()
    assert look(server, f"s3://{bucket}/t", state).names == ["a.parquet", "b.parquet"]
    assert not any("a.parquet" in request for request in server.asked())


def test_an_object_written_twice_in_one_second_with_the_same_size_is_told_by_its_etag(
    server: ObjectStore, bucket: str, state: Store
) -> None:
    first, second = content(1, padding=1), content(1, padding=2)
    assert len(first) == len(second)
    # It is looked at when that second is over, but not yet for as long as it has to rest.
    path, now = f"s3://{bucket}/t", round(SECOND.timestamp() * 1_000) + 1_500
    with server.standing_still(SECOND):
        server.put(f"{bucket}/t/a.parquet", first)
        before = look(server, path, state, now)
        assert before.recheck_at is not None
        server.put(f"{bucket}/t/a.parquet", second)
        assert opened(server, path, state).current().version == before.version
        after = look(server, path, state, now)
        assert named(before) != named(after)
        assert before.identities != after.identities
        server.put(f"{bucket}/t/a.parquet", first)
        assert named(look(server, path, state, now)) == named(before)


def test_a_store_that_lists_finer_times_than_it_tells_of_an_object_is_not_read_again(
    server: ObjectStore, bucket: str, state: Store
) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))
    with server.standing_still(SECOND, millisecond=123):
        before = look(server, f"s3://{bucket}/t", state)
        server.forget()
        after = look(server, f"s3://{bucket}/t", state)
        assert (named(after), after.identities) == (named(before), before.identities)
        assert not any("a.parquet" in request for request in server.asked())


def test_129_a_store_that_is_slowed_down_and_then_works_changes_nothing(
    server: ObjectStore, bucket: str, state: Store
) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))
    before = look(server, f"s3://{bucket}/t", state)
    with server.refusing(503, "SlowDown", times=1):
        assert named(look(server, f"s3://{bucket}/t", state)) == named(before)
    with (
        server.refusing(503, "SlowDown"),
        pytest.raises(TableUnreadable, match=f"table 't' at s3://{bucket}/t can't be listed"),
    ):
        look(server, f"s3://{bucket}/t", state)
    assert named(look(server, f"s3://{bucket}/t", state)) == named(before)


def test_an_object_that_may_be_listed_but_not_read_is_broken_and_not_gone(
    server: ObjectStore, bucket: str, state: Store
) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))

    with server.refusing(403, "AccessDenied", "^GET (?!.*list-type)"):
        found = look(server, f"s3://{bucket}/t", state)
    assert list(found.broken) == ["a.parquet"]
    assert "ACCESS_DENIED" in found.broken["a.parquet"].why
    assert look(server, f"s3://{bucket}/t", state).broken == {}


@pytest.mark.parametrize("wrong", ["another key", "no bucket"])
def test_a_store_that_does_not_let_us_in_is_no_look_and_no_secret_is_told(
    server: ObjectStore, bucket: str, state: Store, wrong: str
) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))
    storage = server.storage(*(("mallory", "m4ll0ry") if wrong == "another key" else ()))
    place = f"s3://{bucket if wrong == 'another key' else 'nobodys'}/t"
    with pytest.raises(TableUnreadable) as refusal:
        opened(server, place, state, storage=storage).current()
    assert place in str(refusal.value)
    assert not any(secret in repr(refusal.value) for secret in ("m4ll0ry", "the-s3cr3t-key"))


def test_the_chain_of_the_library_is_asked_where_the_project_says_nothing(
    server: ObjectStore, bucket: str, state: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put(f"{bucket}/t/a.parquet", content(1))
    said = {
        "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_ACCESS_KEY_ID": "the-access-key",
        "AWS_SECRET_ACCESS_KEY": "the-s3cr3t-key",
        "AWS_REGION": "us-east-1",
    }
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    assert opened(server, f"s3://{bucket}/t", state, storage=None).current().listing().names == ["a.parquet"]
