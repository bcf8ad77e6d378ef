"""What an Iceberg table says of itself names no code, and no other store than the project does."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.table.locations import SimpleLocationProvider
from pyiceberg.types import LongType, NestedField

from mv_assets.tables.iceberg.catalogs import opened
from mv_assets.tables.iceberg.metadata import static_table
from mv_assets_tests.support.iceberg_rest import rest_catalog
from mv_assets_tests.support.published_lake import PublishedLake
from mv_assets_tests.support.warehouse_lake import clocked_lakes

HOSTILE = {
    "py-io-impl": "hostile.Files",
    "write.py-location-provider.impl": "hostile.Places",
    "s3.endpoint": "http://elsewhere",
    "s3.proxy-uri": "http://elsewhere",
}
_CODE = """
from pathlib import Path

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.locations import SimpleLocationProvider

RUN = []


class Files(PyArrowFileIO):
    def __init__(self, properties):
        RUN.append("files")
        super().__init__(properties)


class Places(SimpleLocationProvider):
    def __init__(self, location, properties):
        RUN.append("places")
        super().__init__(location, properties)
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was run of code that could be imported."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "hostile.py").write_text(_CODE)
    monkeypatch.syspath_prepend(tmp_path / "code")
    import hostile  # type: ignore[import-not-found] # noqa: PLC0415 - it is written here

    yield hostile.RUN
    sys.modules.pop("hostile")


def made_by_others(catalog: Catalog) -> str:
    """A table; where its metadata is."""
    catalog.create_namespace("db")
    schema = Schema(NestedField(1, "x", LongType()))
    return catalog.create_table("db.t", schema, properties=HOSTILE).metadata_location


@pytest.mark.parametrize("declared", [{}, {"s3.endpoint": "http://ours"}], ids=["nothing", "a store"])
def test_a_table_of_a_catalog_is_reached_as_is_declared(
    tmp_path: Path, run: list[str], declared: Mapping[str, str]
) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    with closing(load_catalog("default", **properties)) as theirs:
        place = made_by_others(theirs)
    assert run
    run.clear()
    with opened({**properties, **declared}) as catalog:
        found = catalog.load_table("db.t")
    for table in (found, static_table(place, declared, unsafe=False)):
        assert type(table.io) is PyArrowFileIO
        assert table.io.properties.get("s3.endpoint") == declared.get("s3.endpoint")
        assert "s3.proxy-uri" not in table.io.properties
    assert type(found.location_provider()) is SimpleLocationProvider
    assert run == []


def test_a_server_lends_keys_and_names_no_code(tmp_path: Path, run: list[str]) -> None:
    with rest_catalog(tmp_path / "rest") as server:
        made_by_others(server.catalog)
        server.lent = {"s3.access-key-id": "lent", "py-io-impl": "hostile.Files"}
        with opened(server.properties) as catalog:
            # The server is in this process, and runs what it likes.
            found = catalog.load_table("db.t")
            assert type(found.io) is PyArrowFileIO
            assert found.io.properties["s3.access-key-id"] == "lent"
            assert "s3.endpoint" not in found.io.properties
            assert found.metadata.properties["s3.endpoint"] == HOSTILE["s3.endpoint"]
            assert type(found.location_provider()) is SimpleLocationProvider
    assert run


def test_who_writes_into_a_published_table_has_nothing_run_by_its_publisher(
    tmp_path: Path, run: list[str]
) -> None:
    with clocked_lakes(tmp_path, f"sqlite:///{tmp_path}/state.db", PublishedLake) as make:
        made = make()
        made.days(0, 1)
        made.run()
        made.published()
        with made.reader.table().transaction() as theirs:  # type: ignore[attr-defined]
            theirs.set_properties(HOSTILE)
        assert run
        run.clear()
        made.overwrite(0)
        made.published()
        assert run == []
