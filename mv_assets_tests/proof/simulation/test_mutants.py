"""The checkers can fail: each named mistake in the rules is found."""

from __future__ import annotations

import pytest

from mv_assets.tables import reach
from mv_assets_tests.acceptance import test_fingerprint, test_state_engine
from mv_assets_tests.proof.simulation.explorer import Found, explore
from mv_assets_tests.proof.simulation.models import MODELS
from mv_assets_tests.proof.simulation.mutants import MUTANTS
from mv_assets_tests.support.harness import Deployment

CAUGHT_BY = {
    "two-way writer classification": "two writers, cold",
    "position-only drop below W": "a writer, looks and many changes",
    "last write wins": "two writers, cold",
    "no look at commit": "two writers, cold",
    "look before the retry loop only": "two writers, cold",
    "DELETE removes the row": "a writer, looks and many changes",
    "REVERT compares the base fingerprint only": "dimension and upstream",
    "commit without identity check": "two writers, cold",
    "loser deletes its files": "forced marks",
    "gc without DOOMED": "gc and slow attempts",
    "forced mark cleared by an older attempt": "forced marks",
    "idle shortcut on the table version alone": "a writer, looks and many changes",
    "header hash without history": "two definitions",
    "watermark by arrival order": "three buckets and failures",
    "watermark over a failed bucket": "three buckets and failures",
    "watermark by wall clock": "drops and whole-view marks",
    "closes lets W run beyond the data": "a bucket that the clock closes",
    "closed before its time": "a bucket that the clock closes",
    "idle shortcut that asks no clock": "a bucket that the clock closes",
    "W and rows in two transactions": "two writers, cold",
    "list then lease": "gc and readers",
    "forced mark reverted": "forced marks",
    "VALID whatever the second look saw": "two writers, cold",
    "dimensions ignored at commit": "dimension and upstream",
    "FAIL makes VALID STALE": "three buckets and failures",
    "frozen bucket replaced at commit": "freezing and two writers",
    "followed without comparing": "a table that is compacted",
    "forced mark followed": "a table that is compacted",
    "remembered, whatever files changed": "a writer, looks and many changes",
    "remembered, whatever dimensions changed": "dimension and upstream",
    "remembered, whatever others wrote": "forced marks",
    "remembered, what waits": "looks that remember",
    "remembered, without windows": "two tables, a window, warm",
    "rewrite of files that changed since": "a table that is compacted",
    "rewrite of which a part was read": "a table that is compacted",
    "rewritten files taken for gone": "a table that is compacted, freezing",
    "window ignored when marking": "two tables, a window, warm",
    "window ignored in the second look": "two tables, a window",
    "second look at the base alone": "two tables, a window",
    "second source not in the inputs": "two tables, a window, warm",
    "W capped by the base alone": "two tables, one stalls",
    "W capped by the data, not by the window's end": "two tables, one stalls",
    "W waits for a table that is not waited for": "two tables, one is not waited for",
    "publish before commit": "publishing and gc",
    "publish what is newer than the pinned version": "publishing and gc",
    "a bucket left out": "publishing and gc",
    "published version going back": "two publishers",
    "gc that does not ask the publication": "publishing and gc",
    "retained after it is shown": "publishing and gc",
    "retained without a lease": "publishing and gc",
}
CAUGHT_BY_A_CASE = {"exclusive end in overlap", "EMPTY = (0, 0)"}


# Found by half a minute's search.
_LATE = dict.fromkeys(
    ("frozen bucket replaced at commit", "look before the retry loop only"), pytest.mark.deep
)


@pytest.mark.parametrize(
    "mutant", [pytest.param(mutant, marks=_LATE.get(mutant, ())) for mutant in CAUGHT_BY]
)
def test_a_model_finds_the_mutant(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[mutant](monkeypatch)
    quick, _ = MODELS[CAUGHT_BY[mutant]]
    with pytest.raises(Found):
        explore(quick())


def test_case_23_finds_an_exclusive_end(monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["exclusive end in overlap"](monkeypatch)
    monkeypatch.setattr(test_fingerprint, "sweep", reach.sweep)
    with pytest.raises(AssertionError):
        test_fingerprint.test_23_a_segment_overlaps_up_to_its_inclusive_end()


def test_case_8_finds_another_empty(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS["EMPTY = (0, 0)"](monkeypatch)
    case = test_state_engine.test_08_delete_with_an_empty_source_leaves_a_valid_row_with_the_empty_fingerprint
    with pytest.raises(AssertionError):
        case(deployment)


def test_every_mutant_has_its_catcher() -> None:
    assert set(MUTANTS) == CAUGHT_BY.keys() | CAUGHT_BY_A_CASE
