"""A declared key of a dimension is verified at each look, by the rows that are in the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mv_assets.observe import keys
from mv_assets.state import health
from mv_assets.tables import keys as tables_keys
from mv_assets.tables.errors import KeyNotUnique, KeyUnknown
from mv_assets.tables.listing import Table
from mv_assets_tests.support.lake import Lake, through, view

SQL = (
    "SELECT date_trunc('hour', e.at) AS hour, z.name, count(*) AS n "
    "FROM events e LEFT JOIN zones z ON e.x = z.id GROUP BY ALL"
)


@pytest.fixture
def keyed(lake: Callable[..., Lake]) -> Callable[..., Lake]:
    def make(*key: str) -> Lake:
        dimensions = [{"table": "zones", "key": list(key) or ["id"]}]
        made = lake(view(sql=SQL, dimensions=dimensions), dimensions=["zones"])
        for number in (0, 1):
            made.write(f"{number}.parquet", through(number))
        return made

    return make


def put(lake: Lake, file: str = "z.parquet", **columns: Sequence[Any]) -> Path:
    path = lake.folder / "zones" / file
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
    return path


def trouble(lake: Lake) -> list[str]:
    with pytest.raises(KeyNotUnique) as error:
        lake.look()
    said = health.troubles(lake.snapshot())
    assert said[0].startswith(str(error.value))
    return said


def test_a_duplicate_is_named_until_it_is_gone(keyed: Callable[..., Lake]) -> None:
    made = keyed()
    put(made, id=[1, 2], name=["a", "b"])
    made.converge()
    assert made.states(0, 1) == "VV"
    more = put(made, "more.parquet", id=[3, 2], name=["c", "d"])
    (said,) = trouble(made)
    assert "table 'zones' has 2 rows with id = 2, but id is declared as its unique key" in said
    assert made.states(0, 1) == "VV"
    more.unlink()
    made.look()
    assert (health.troubles(made.snapshot()), made.states(0, 1)) == ([], "VV")


def test_a_key_that_is_declared_later_is_verified_though_nothing_changed(keyed: Callable[..., Lake]) -> None:
    made = keyed()
    made.declare(view(sql=SQL, dimensions=["zones"]))
    put(made, id=[1, 1], name=["a", "b"])
    made.converge()
    before = made.catalog.view("v").definition
    made.declare(view(sql=SQL, dimensions=[{"table": "zones", "key": "id"}]))
    assert made.catalog.view("v").definition == before
    trouble(made)


@pytest.mark.parametrize(
    ("key", "columns", "twice"),
    [
        (("id",), {"id": [1, None, None], "name": ["a", "b", "c"]}, None),
        (("id", "name"), {"id": [1, 1, 2], "name": ["a", "b", "a"]}, None),
        (("id", "name"), {"id": [1, 1, 2], "name": ["a", "a", "a"]}, "id, name = 1, 'a'"),
        (("id", "name"), {"id": [1, 1, 1], "name": [None, None, "a"]}, None),
        (("name",), {"id": [1, 2], "name": ["a", "A"]}, None),
        (("ID",), {"Id": [1, 1], "name": ["a", "A"]}, "id = 1"),
    ],
)
def test_nulls_are_no_duplicates_and_columns_count_together(
    keyed: Callable[..., Lake], key: tuple[str, ...], columns: dict[str, Any], twice: str | None
) -> None:
    made = keyed(*key)
    put(made, **columns)
    if twice is None:
        made.look()
    else:
        assert f"2 rows with {twice}, but" in trouble(made)[0]


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"id": [1.0, 2.0]}, "column id is double, and a key is of integers"),
        ({"other": [1]}, "there is no column id"),
    ],
)
def test_a_key_that_can_not_be_verified_is_none(
    keyed: Callable[..., Lake], columns: dict[str, Any], why: str
) -> None:
    made = keyed()
    put(made, **columns)
    with pytest.raises(KeyUnknown, match=why):
        made.look()


def test_what_was_verified_is_not_read_again(
    keyed: Callable[..., Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, read = keyed(), list[str]()
    verify = tables_keys.verify

    def noted(table: Table, *given: Any) -> dict[str, str]:
        read.append(table.name)
        return verify(table, *given)

    monkeypatch.setattr(tables_keys, "verify", noted)
    put(made, id=[1, 2], name=["a", "b"])
    made.converge()
    made.write("late.parquet", [])
    made.look(whole=True)
    assert read == ["zones"]
    row = made.row(0)
    assert row is not None
    assert row.inputs is not None
    assert keys.unique(made.catalog.view("v"), made.tables, row.inputs) == {"zones": {"id": "bigint"}}
    put(made, id=[1, 3], name=["a", "b"])
    made.look()
    assert read == ["zones", "zones"]
    assert keys.unique(made.catalog.view("v"), made.tables, row.inputs) == {}


def test_a_table_that_changes_while_it_is_read_is_not_verified(
    keyed: Callable[..., Lake], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = keyed()
    put(made, id=[1, 2], name=["a", "b"])
    verify = tables_keys.verify

    def changing(*given: Any) -> Any:
        found = verify(*given)
        put(made, id=[1, 1, 1], name=["a", "b", "c"])
        return found

    monkeypatch.setattr(tables_keys, "verify", changing)
    with pytest.raises(KeyUnknown, match="changed while it was read"):
        made.look()
    monkeypatch.undo()
    trouble(made)
