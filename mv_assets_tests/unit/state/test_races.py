"""Processes racing on one view: nothing is lost, nothing is done twice, nobody gives up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from mv_assets.state.model import Outcome, State
from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Clock, Deployment
from mv_assets_tests.support.memory_table import DAY
from mv_assets_tests.unit.state.race_result import Result, derived_watermark, set_up
from mv_assets_tests.unit.state.racer import Race, Report, SharedTable, processes, run_race

pytestmark = pytest.mark.processes


def check(race: Race, reports: list[Report]) -> None:
    result = Result.of(race, reports)
    assert result.missing_versions == set()
    assert result.shared_versions == set()
    assert {r.who: r.writes for r in reports} == {r.who: result.writes.get(r.who, 0) for r in reports}
    assert result.lost_updates == set()
    assert result.repeated == []
    for bucket, row in result.snapshot.rows.items():
        assert row.token == max(event.version for event in result.events if event.bucket == bucket)
    assert result.snapshot.header.watermark == derived_watermark(result.snapshot)


@pytest.mark.parametrize(("racers", "commits"), [(2, 12), pytest.param(8, 6, marks=pytest.mark.slow)])
def test_processes_race_on_one_view(state_url: str, tmp_path: Path, racers: int, commits: int) -> None:
    race = Race(state_url, str(tmp_path), racers, commits, shared=3, own=2)
    set_up(race)
    check(race, run_race(race))
    store = Store(race.url)
    table = SharedTable(tmp_path)
    table.relist()
    Deployment(store, table, Clock(), who="afterwards").converge()
    rest = store.snapshot("v")
    store.close()
    assert {row.state for row in rest.rows.values()} == {State.VALID}
    assert rest.header.watermark == derived_watermark(rest) == race.days * DAY


def test_losers_find_their_work_done(state_url: str, tmp_path: Path) -> None:
    """Without marks and changes, each bucket is committed by exactly one process."""
    race = Race(state_url, str(tmp_path), racers=3, commits=6, shared=3, own=6, changes="none")
    set_up(race)
    reports = run_race(race)
    check(race, reports)
    outcomes = [(day, outcome) for report in reports for day, _, outcome, _ in report.decisions]
    assert {outcome for _, outcome in outcomes} <= {Outcome.COMMITTED, Outcome.REPLAY, Outcome.SUPERSEDED}
    committed = Counter(day for day, outcome in outcomes if outcome == Outcome.COMMITTED)
    assert committed == Counter({day for day, _ in outcomes})


@pytest.fixture
def empty_databases(state_url: str, tmp_path: Path) -> Iterator[list[str]]:
    """Several empty databases, as one opening is over too soon to be much of a race."""
    names = [f"empty{n}" for n in range(8)]
    if state_url.startswith("sqlite"):
        yield [f"sqlite:///{tmp_path}/{name}/state.db" for name in names]
        return
    engine = create_engine(state_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for name in names:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield [engine.url.set(database=name).render_as_string(hide_password=False) for name in names]
        for name in names:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    engine.dispose()


def test_processes_open_an_empty_database_at_once(empty_databases: list[str]) -> None:
    with processes([["open"], ["open"]]) as openers:
        for url in empty_databases:
            for opener in openers:
                opener.say(url)
            assert [opener.hear() for opener in openers] == ["1", "1"]
