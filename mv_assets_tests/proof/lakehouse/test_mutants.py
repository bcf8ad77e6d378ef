"""The histories can fail: some seed finds each of these mistakes, at each kind of table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mv_assets.spark.session import Engine
from mv_assets_tests.proof.lakehouse.history import History
from mv_assets_tests.proof.lakehouse.mutants import MUTANTS

_SEEDS, _STEPS = 6, 16


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize(
    ("mutant", "kind"), [(mutant, kind) for mutant, (_, kinds) in MUTANTS.items() for kind in kinds]
)
def test_a_history_finds_the_mutant(
    mutant: str, kind: str, tmp_path: Path, engine: Engine, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(_SEEDS):
        with pytest.MonkeyPatch.context() as patch:
            history = _history(kind, seed, tmp_path / f"{seed} with it", engine)
            MUTANTS[mutant][0](patch)
            found = _found(history)
        if found is not None:
            # It is the mutant that was found, and nothing else.
            assert _found(_history(kind, seed, tmp_path / f"{seed} without", engine)) is None
            record_property("proved", f"a table of {kind} with: {mutant}: seed {seed} finds it: {found}")
            return
    raise AssertionError(f"{mutant}: not found by {_SEEDS} histories of {kind}")


def _history(kind: str, seed: int, folder: Path, engine: Engine) -> History:
    folder.mkdir()
    return History(kind, seed, folder, engine)


def _found(history: History) -> str | None:
    """What is wrong, if anything is."""
    try:
        history.play(_STEPS)
    except Exception as error:  # noqa: BLE001 - a mutant may fail in any way
        return f"{type(error).__name__} after {len(history.story)} events: {str(error).splitlines()[0][:80]}"
    finally:
        history.close()
        history.table.forget()
    return None
