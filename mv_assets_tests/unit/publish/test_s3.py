"""Tables on a real S3 server, of a view whose rows are elsewhere."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from mv_assets.config import DeltaTarget, IcebergTarget, Target
from mv_assets.config.storage import Storage
from mv_assets.publish.contents import VERSION
from mv_assets.publish.delta import target
from mv_assets.publish.errors import NotPublished
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import BUCKET
from mv_assets.tables.files.stores import for_deltalake, for_pyiceberg
from mv_assets_tests.support.object_store import ObjectStore, object_store
from mv_assets_tests.support.published_lake import DeltaReader, IcebergReader, PublishedLake, Reader, rows_of
from mv_assets_tests.support.warehouse_lake import clocked_lakes

pytestmark = pytest.mark.processes
SECRET = "s3cr3t-of-all"  # noqa: S105 - nobody's


class StoredDeltaReader(DeltaReader):
    """Deltalake follows no paths out of a table's folder: each file that the log names is read by itself."""

    def __init__(self, root: str, options: dict[str, str]) -> None:
        self._root, self._options = root, options

    def table(self, name: str = "v", version: int | None = None) -> DeltaTable:
        return DeltaTable(f"{self._root}/{name}", version=version, storage_options=self._options)

    def exists(self, name: str = "v") -> bool:
        return DeltaTable.is_deltatable(f"{self._root}/{name}", self._options)


@dataclass
class StoredLake(PublishedLake):
    """Tables are in a bucket, files of the view in a local folder."""

    server: ObjectStore = field(kw_only=True)
    bucket: str = field(kw_only=True)

    @property
    def storage(self) -> Storage:
        return Storage.model_validate(self.server.storage("key-of-shown", SECRET))

    @property
    def target(self) -> Target:
        if self.format == "delta":
            options = for_deltalake(self.storage)
            return DeltaTarget(folder=f"s3://{self.bucket}/shown", storage_options=options)
        catalog = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"s3://{self.bucket}/tables",
            **for_pyiceberg(self.storage),
        }
        return IcebergTarget(catalog=catalog, namespace="marts")

    def check_stored(self) -> None:
        """The files that a stranger is told of hold the rows that the map has, at the version it is told."""
        reader = self.reader
        assert int(reader.summary()[VERSION]) == self.snapshot().header.version
        files = [path.removeprefix("file://") for path in reader.files()]
        read = pa.concat_tables([pq.read_table(path).drop_columns([BUCKET]) for path in files])
        assert rows_of(read) == rows_of(self.current())
        if isinstance(reader, IcebergReader):
            self.check_published()
        else:
            self.check_buckets()

    @property
    def reader(self) -> Reader:
        if isinstance(self.target, IcebergTarget):
            return IcebergReader(self.target.catalog)
        return StoredDeltaReader(f"s3://{self.bucket}/shown", for_deltalake(self.storage))


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture(params=["iceberg", "delta"])
def made(request: pytest.FixtureRequest, tmp_path: Path, server: ObjectStore) -> Iterator[StoredLake]:
    bucket = f"shown-{request.param}"
    server.create(bucket, key="key-of-shown")
    state, given = f"sqlite:///{tmp_path}/state.db", {"server": server, "bucket": bucket}
    with clocked_lakes(tmp_path, state, StoredLake, format=request.param, **given) as make:
        lake = make()
        lake.days(0, 1, 2)
        lake.run()
        yield lake


def test_tables_in_a_bucket_show_every_step(made: StoredLake, server: ObjectStore) -> None:
    made.published()
    made.check_stored()
    made.overwrite(1)
    made.published()
    made.check_stored()
    with server.refusing(403, "AccessDenied", f"^PUT /{made.bucket}"):
        made.overwrite(2)
        error = made.publish().error
    assert error is not None
    assert SECRET not in str(error)
    made.published()
    made.check_stored()
    made.manager.drop("v")
    assert made.publisher.withdraw("v") is None
    assert not made.reader.exists()
    assert not made.reader.exists("v__buckets")


def test_a_store_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(target._PATIENCE, "timeout", "1s")
    monkeypatch.setitem(target._PATIENCE, "retry_timeout", "1s")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        storage = Storage.model_validate(
            {
                "endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
                "access_key": "key",
                "secret_key": SECRET,
                "allow_http": True,
            }
        )
        declared = DeltaTarget(folder="s3://shown/marts", storage_options=for_deltalake(storage))
        view = target.DeltaView("delta v", "v", declared, Warehouse(str(tmp_path)))
        before = time.monotonic()
        with pytest.raises(NotPublished, match=r"error sending request|timed out") as found:
            view.shown()
    assert time.monotonic() - before < 20
    assert SECRET not in str(found.value)
