"""Results say what to do, and nothing that does not help."""

from __future__ import annotations

import pytest

from mv_assets.config import DeclaredProject, ParquetTable
from mv_assets.config.file import Draft
from mv_assets.maintain.recomputation import Finding, Verdict
from mv_assets.reports.audit import Audited
from mv_assets.state.health import Wrong
from mv_assets.views.catalog import prepare
from mv_assets.views.view import View
from mv_assets_tests.support.lake import view

REFRESH, REPORT = "mend it with: mv-assets refresh v", "please report it"


@pytest.fixture
def daily() -> View:
    events = ParquetTable(name="events", path="events", time_column="at")
    return prepare(Draft("test", DeclaredProject(tables=(events,), views=(view(),))), schemas=False).view("v")


@pytest.mark.parametrize(
    ("finding", "advice"),
    [
        (Finding(0, Verdict.EQUAL, 1, reread=True), ()),
        (Finding(0, Verdict.DIFFERENT, 1, "1 of 1 row differs"), (REFRESH,)),
        (Finding(0, Verdict.MISSING, 1, "its files are gone"), (REFRESH,)),
        (Finding(0, Verdict.DIFFERENT, 1, "they are read differently", reread=True), (REPORT,)),
    ],
)
def test_an_audit_advises_what_helps(daily: View, finding: Finding, advice: tuple[str, ...]) -> None:
    said = str(Audited(daily, (finding,), Wrong()))
    assert tuple(each for each in (REFRESH, REPORT) if each in said) == advice
