"""Rows that a deletion vector takes out of a Delta table are no duplicates."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mv_assets.tables import keys
from mv_assets.tables.errors import KeyNotUnique
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.rows import Make


def test_a_deleted_row_is_no_duplicate(root: Path, table: Make) -> None:
    write_deltalake(root, pa.table({"id": [1, 2, 2], "name": ["a", "b", "c"]}))
    made = table(None)
    with pytest.raises(KeyNotUnique, match="2 rows with id = 2"):
        keys.verify(made, made.current().listing(), ["id"])
    log.with_vector(root, log.deletion_vector(2))
    assert keys.verify(made, made.current().listing(), ["id"]) == {"id": "bigint"}
