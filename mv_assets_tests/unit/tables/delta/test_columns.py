"""How the columns of a Delta table are found in its files, and which would be read wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from mv_assets.state.store import Store
from mv_assets.tables.delta import DeltaFiles
from mv_assets.tables.inventory import Inventory
from mv_assets.tables.places import Place
from mv_assets.tables.times import TimeColumn
from mv_assets_tests.unit.tables.delta import log

DAY = 86_400_000
Make = Callable[..., DeltaFiles]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "t"


@pytest.fixture
def table(root: Path, tmp_path: Path) -> Iterator[Make]:
    store = Store(f"sqlite:///{tmp_path}/state.db")

    def make(time: TimeColumn | None = TimeColumn("ts"), **options: Any) -> DeltaFiles:  # noqa: B008
        return DeltaFiles("t", str(root), time, Inventory(store.database, "t"), lambda: 0, 0, **options)

    yield make
    store.close()


def create(root: Path, *fields: Any, features: tuple[str, ...] = (), **settings: Any) -> None:
    log.commit(root, log.protocol(*features), log.metadata(*fields, **settings))


def place_of(table: Make, column: str) -> Place:
    return table().current().listing().details.columns[column]


@pytest.mark.parametrize(("mode", "ids"), [("none", False), ("name", False), ("id", True)])
def test_fields_inside_are_found_as_columns_are(root: Path, table: Make, mode: str, *, ids: bool) -> None:
    inner = log.struct_of(log.column("x", "long", (3, "col-3")))
    nested = {"type": "array", "elementType": inner, "containsNull": True}
    create(
        root,
        log.column("ts", "timestamp", (1, "ts")),
        log.column("s", nested, (2, "col-2")),
        features=("columnMapping",),
        delta__columnMapping__mode=mode,
        delta__columnMapping__maxColumnId="3",
    )
    names = ("s", "x") if mode == "none" else ("col-2", "col-3")
    x = Place(names[1], 3 if ids else None)
    element = Place("element", parts=(("x", x),))
    assert place_of(table, "s") == Place(names[0], 2 if ids else None, (("element", element),))


def test_only_footers_tell_the_type_of_a_column_that_was_widened(root: Path, table: Make) -> None:
    changes = [{"fromType": "integer", "toType": "long", "tableVersion": 1}]
    inner = log.column("v", "long", None, **{"delta.typeChanges": changes})
    columns = (log.column("ts", "timestamp"), log.column("s", log.struct_of(inner)))
    create(root, *columns, features=("typeWidening",))
    assert place_of(table, "s").only_footers_tell
    assert not place_of(table, "ts").only_footers_tell


def test_a_time_column_that_was_a_date_keeps_its_range(root: Path, table: Make) -> None:
    root.mkdir()
    changes = [{"fromType": "date", "toType": "timestamp_ntz", "tableVersion": 1}]
    column = log.column("ts", "timestamp_ntz", None, **{"delta.typeChanges": changes})
    create(root, column, features=("typeWidening", "timestampNtz"))
    pq.write_table(pa.table({"ts": [date(1970, 1, 2), date(1970, 1, 4)]}), root / "a.parquet")
    log.commit(root, log.add("a.parquet", log.stats("ts", "1970-01-02", "1970-01-04")))
    pq.write_table(pa.table({"ts": [date(1970, 1, 6)]}), root / "b.parquet")
    log.commit(root, log.add("b.parquet"))
    listing = table().current().listing()
    found = dict(zip(listing.names, zip(listing.starts, listing.ends, strict=True), strict=True))
    assert not listing.broken
    assert found["a.parquet"][0] == DAY
    assert found["a.parquet"][1] >= 3 * DAY
    assert found["b.parquet"] == (5 * DAY, 6 * DAY - 1)


@pytest.mark.parametrize("feature", ["variantType", "variantType-preview"])
def test_a_feature_of_columns_refuses_those_columns_only(root: Path, table: Make, feature: str) -> None:
    create(root, log.column("ts", "timestamp"), features=(feature,))
    assert table().refused() == {}
    inner = log.struct_of(log.column("v", "variant"))
    nested = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}
    columns = (log.column("ts", "timestamp"), log.column("v", "variant"), log.column("m", nested))
    log.commit(root, log.metadata(*columns))
    assert table().refused().keys() == {"v", "m"}
    listing = table().current().listing()
    (why,) = listing.refusals(["TS", "V"])
    assert "column v of table 't' has variants" in why
    assert "reader: spark" in why
    assert len(listing.refusals(None)) == 2
    assert table(reader="spark").refused() == {}


def test_binary_partitions_refuse_their_column_only(root: Path, table: Make) -> None:
    times = pa.array([0, DAY], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    write_deltalake(root, pa.table({"ts": times, "p": [b"\x00\xff", b"b"]}), partition_by=["p"])
    listing = table().current().listing()
    assert len(listing.names) == 2
    assert table().refused().keys() == {"p"} == listing.details.refused.keys()
    # The values tell files apart all the same.
    assert len({values["p"] for values in listing.details.partitions.values()}) == 2
