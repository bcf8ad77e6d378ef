"""Whatever happens to a Delta or Iceberg table, each bucket is what DuckDB computes from its rows.

MV_ASSETS_FUZZ_WORLDS asks for more histories and MV_ASSETS_FUZZ_STEPS for longer ones, as `make prove` does;
MV_ASSETS_FUZZ_SEED for one only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mv_assets.spark.session import Engine
from mv_assets_tests.proof.lakehouse.history import TABLES, History

SEED = os.environ.get("MV_ASSETS_FUZZ_SEED")
WORLDS = int(os.environ.get("MV_ASSETS_FUZZ_WORLDS", "1"))
STEPS = int(os.environ.get("MV_ASSETS_FUZZ_STEPS", "6"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("seed", range(WORLDS) if SEED is None else [int(SEED)])
@pytest.mark.parametrize("kind", TABLES)
def test_views_have_the_rows_that_the_table_has(
    kind: str, seed: int, tmp_path: Path, engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    history = History(kind, seed, tmp_path, engine)
    try:
        history.play(STEPS)
    finally:
        history.close()
    record_property(
        "proved",
        f"a table of {kind}: {len(history.story)} events, {history.compactions} compactions that computed "
        f"nothing, {history.compared} VALID buckets compared, seed {seed}",
    )
