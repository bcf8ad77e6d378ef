"""Whatever happens to two tables, each bucket is what DuckDB computes from the files that its row records.

MV_ASSETS_FUZZ_WORLDS asks for more histories and MV_ASSETS_FUZZ_STEPS for longer ones, as `make prove` does;
MV_ASSETS_FUZZ_SEED for one only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mv_assets.spark.session import Engine
from mv_assets_tests.proof.histories.history import History

SEED = os.environ.get("MV_ASSETS_FUZZ_SEED")
WORLDS = int(os.environ.get("MV_ASSETS_FUZZ_WORLDS", "2"))
STEPS = int(os.environ.get("MV_ASSETS_FUZZ_STEPS", "6"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(WORLDS) if SEED is None else [int(SEED)])
def test_a_bucket_holds_what_its_windows_held(
    seed: int, tmp_path: Path, engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    history = History(seed, tmp_path, engine)
    try:
        history.play(STEPS)
    finally:
        history.close()
    meanwhile = sum(what.endswith(" is back") for what in history.story)
    record_property(
        "proved",
        f"two tables, windows and zones: {len(history.story)} events, {meanwhile} files swapped while they "
        f"were read, {history.judge.compared} VALID buckets compared, seed {seed}",
    )
