"""Two deployments of one project on one state, each with a Dagster of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner

from mv_assets.cli import main
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.site import BUCKETS, HOURLY, WEATHER, WEEKLY, Site, day, week

SENSOR = "watch_trips"
FENCED = "it is fenced; deploy the current definition, or go back on purpose with `mv-assets adopt`"

Both = tuple[Deployment, Deployment]


@pytest.fixture(scope="module")
def second(
    shared: Deployment, tmp_path_factory: pytest.TempPathFactory, connect_server: str
) -> Iterator[Deployment]:
    """Another deployment of the first one's site; its Dagster knows nothing yet."""
    site = shared.site.beside("second.yaml")
    made = Deployment.of(site, tmp_path_factory.mktemp("second"), connect_server)
    yield made
    made.shut_down()


@pytest.fixture
def both(deployment: Deployment, second: Deployment) -> Both:
    """Two that run and have nothing to do."""
    second.restore()
    return deployment, second


@pytest.mark.slow
def test_one_that_starts_cold_shows_what_the_other_computed_and_neither_writes_nor_launches_anything(
    deployment: Deployment, second: Deployment
) -> None:
    before = deployment.site.versions()
    second.processes.start()

    def shown() -> bool:
        return all(list(second.dagster.partitions(v).materialized) == keys for v, keys in BUCKETS.items())

    second.wait_until(shown, "all that was computed to be shown")
    second.ticked(SENSOR, 1)
    assert second.dagster.runs() == []
    assert deployment.site.versions() == before


@pytest.mark.deep
def test_two_that_see_the_same_files_come_and_go_compute_each_change_once_and_rest(both: Both) -> None:
    site, before, since = both[0].site, both[0].site.versions(), time.time()
    said = [len(each.processes.log_lines()) for each in both]
    for number in (2, 9):
        site.put_trips(number, f"late-{number}.parquet")
    _calm(both)
    (site.folder / "trips" / "late-9.parquet").unlink()
    site.put_trips(6, f"{day(6)}.parquet")
    _calm(both)

    hourly = site.computed(HOURLY, before[HOURLY])
    assert hourly == {day(2): 1, day(9): 2, day(6): 1}
    for number, changes in {2: 2, 9: 2}.items():
        # Of changes that come together the week may see one, or all.
        assert 1 <= site.computed(WEEKLY, before[WEEKLY])[week(number)] <= changes
    assert site.computed(WEATHER, before[WEATHER]) == {}
    for view in BUCKETS:
        written = {event.version for event in site.store.events(view, most=10_000)}
        assert written.issuperset(range(before[view] + 1, site.version_now(view) + 1))

    at_rest, runs = site.versions(), [each.dagster.runs() for each in both]
    for each in both:
        each.ticked(SENSOR, 1)
    assert (site.versions(), [each.dagster.runs() for each in both]) == (at_rest, runs)
    for each, lines in zip(both, said, strict=True):
        # Who comes second, and there is one for most of the buckets, succeeds as well.
        assert {run.status for run in each.dagster.runs(since=since)} <= {"SUCCESS"}
        assert {tick.error for tick in each.dagster.ticks(SENSOR, 100)} == {None}
        assert [line for line in each.processes.log_lines()[lines:] if _is_trouble(line)] == []
        told = {bucket: each.dagster.materialization(HOURLY, bucket) for bucket in hourly}
        assert {bucket: one and one.metadata["generation"] for bucket, one in told.items()} == {
            bucket: site.rows(HOURLY)[bucket].generation for bucket in hourly
        }


@pytest.mark.deep
def test_another_definition_takes_over_and_the_earlier_deployment_is_fenced_until_it_is_adopted(
    both: Both,
) -> None:
    blue, green = both
    green.processes.stop()
    green.site.redefine("max(t.tip)", "min(t.tip)")
    with blue.holding(HOURLY, day(5)):
        blue.site.put_trips(5, "in-flight.parquet")
        blue.wait_until_held()
        [held] = [run for run in blue.dagster.unfinished() if run.covers(HOURLY, day(5))]
        green.processes.start()
        green.calm_down()
        taken = blue.site.versions()
    assert blue.finished(held.id).status == "FAILURE"
    assert FENCED in blue.dagster.errors(held.id)
    _says_that_it_is_fenced(blue)

    # Whoever starts last, the definition stays and nothing is written.
    with ThreadPoolExecutor() as at_once:
        list(at_once.map(_restart, both))
    for each in both:
        each.ticked(SENSOR, 1)
    assert green.is_calm()
    assert blue.site.versions() == taken
    _says_that_it_is_fenced(blue)

    adopted = _command(blue.site, "adopt", HOURLY)
    assert adopted == f"{HOURLY} is defined as {blue.site.catalog.view(HOURLY).definition}"
    blue.calm_down()
    _says_that_it_is_fenced(green)


def _calm(both: Both) -> None:
    for each in both:
        each.calm_down()


def _restart(deployment: Deployment) -> None:
    deployment.processes.kill()
    deployment.processes.start()


def _is_trouble(line: str) -> bool:
    return "ERROR" in line or "Traceback" in line


def _says_that_it_is_fenced(deployment: Deployment) -> None:
    """In the sensor's ticks, in a check of the view, in the log, and to whoever asks for the status."""

    def said() -> bool:
        check = deployment.dagster.check(HOURLY, "no_failed_buckets")
        ticks = [tick for tick in deployment.dagster.ticks(SENSOR, 2) if tick.status != "STARTED"]
        told = [check.description if check and not check.passed else "", ticks and ticks[0].skipped]
        return all(FENCED in (text or "") for text in told)

    deployment.wait_until(said, "it to say that it is fenced")
    assert any(FENCED in line for line in deployment.processes.log_lines() if _is_trouble(line))
    assert FENCED in _command(deployment.site, "status")


def _command(site: Site, *command: str) -> str:
    """What a command says, however its lines are broken."""
    return " ".join(CliRunner().invoke(main, ["--project", str(site.project_file), *command]).stdout.split())
