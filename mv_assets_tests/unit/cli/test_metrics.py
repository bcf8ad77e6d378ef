"""`mv-assets metrics`: what is printed is OpenMetrics, and says of each view what its map says."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client import parser as classic
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from mv_assets.cli.commands.metrics import _address, _Scraped
from mv_assets.config import DeltaTarget
from mv_assets.maintain.garbage import _LOG_MS
from mv_assets.project import Project
from mv_assets.publish.names import name_of
from mv_assets.reports.metrics import Metrics
from mv_assets.reports.status import Status
from mv_assets.state.model import Publication
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets_tests.unit.cli.test_commands import Lake

VIEW = "mv_assets_view_"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def parsed(text: str) -> Samples:
    """What a scraper understands of it."""
    assert text.endswith("# EOF\n")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }


def scraped(lake: Lake, *arguments: str, code: int = 0) -> Samples:
    ran = lake.run("metrics", *arguments)
    assert ran.exit_code == code, ran.output
    return parsed(ran.stdout)


def of(found: Samples, name: str, view: str = "daily", **labels: str) -> float:
    return found[VIEW + name, tuple(sorted({"view": view, **labels}.items()))]


def test_each_view_says_what_its_map_says(lake: Lake) -> None:
    lake.view(max_staleness="2h")
    for number in (1, 2, 3):
        lake.day(number)
    lake.refresh()
    found = scraped(lake)
    assert found["mv_assets_up", ()] == 1
    states = {state: of(found, "buckets", state=state) for state in ("valid", "stale", "failed", "vacant")}
    assert states == {"valid": 3, "stale": 0, "failed": 0, "vacant": 0}
    assert of(found, "watermark_timestamp_seconds") == 1_704_326_400
    assert of(found, "start_timestamp_seconds") == 1_704_067_200
    assert of(found, "max_staleness_seconds") == 7_200
    assert of(found, "lag_seconds") > 0
    assert (of(found, "rows"), of(found, "wrong"), of(found, "stalled")) == (72, 0, 0)
    assert of(found, "last_refresh_timestamp_seconds") > 0
    assert of(found, "refreshed_buckets_total", operation="append") == 3
    assert of(found, "refreshed_rows_total") == 72
    assert of(found, "refreshed_bytes_total") > 0
    assert of(found, "looks_total") >= 1
    about = [dict(labels) for name, labels in found if name == f"{VIEW}info"]
    assert [each.keys() for each in about] == [{"view", "base", "bucket", "definition"}]


def test_what_reads_the_older_text_as_the_node_exporter_finds_the_same(lake: Lake) -> None:
    lake.day(1)
    lake.refresh()
    text = lake.run("metrics").stdout
    # Prometheus' own parser lets types pass that it does not know; Go's then takes nothing of the text.
    assert not re.search(r"^# TYPE \S+ (?!gauge$|counter$)", text, re.MULTILINE)
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in classic.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found == parsed(text)


def test_what_is_late_broken_and_failed_is_counted(lake: Lake) -> None:
    for number in (1, 2, 4):
        lake.day(number)
    lake.refresh()
    before = scraped(lake)
    lake.day(1, "again.parquet")
    broken = lake.day(2, "broken.parquet")
    os.truncate(broken, broken.stat().st_size - 9)
    with lake.driver() as driver:
        driver.observed("daily")
    found = scraped(lake)
    assert of(found, "marked_buckets_total") > of(before, "marked_buckets_total")
    assert of(found, "buckets", state="stale") >= 1
    assert (of(found, "broken_files"), of(found, "wrong")) == (1, 1)
    assert of(found, "oldest_waiting_seconds") >= 0


def test_a_view_that_nobody_has_refreshed_has_no_buckets_and_a_state_that_is_not_there_is_up(
    lake: Lake,
) -> None:
    found = scraped(lake)
    assert (found["mv_assets_up", ()], of(found, "buckets", state="valid")) == (1, 0)
    assert of(found, "refreshed_buckets_total", operation="append") == 0
    assert not lake.state.exists()


def test_counters_only_grow_whatever_gc_and_drop_forget(lake: Lake) -> None:
    lake.day(1)
    lake.refresh()
    with lake.driver() as driver:
        store = driver.store
        before = store.counters("daily")
        assert before["APPEND"] == 1
        registry = Registry(store)
        registry.shorten_log("daily", -_LOG_MS)
        driver.manager.drop("daily")
        after = store.counters("daily")
    assert {name: after[name] for name in before} == before
    lake.refresh()
    found = scraped(lake)
    assert of(found, "refreshed_buckets_total", operation="append") == 2
    assert of(found, "refreshed_rows_total") == 48


def test_views_may_be_named(lake: Lake) -> None:
    lake.view("other")
    lake.day(1)
    lake.refresh("daily", "other")
    found = scraped(lake, "other")
    assert {dict(labels).get("view") for _, labels in found} == {None, "other"}
    assert lake.run("metrics", "nope").exit_code == 2


def test_a_hostile_label_breaks_no_line(lake: Lake) -> None:
    lake.day(1)
    lake.refresh()
    with Project.open(lake.file) as project:
        (each,) = project.status().views
    hostile = 'a"b\\c\nd\x1b[31m'
    publication = Publication("daily", "t", 1, version=2, table=hostile, at=5)
    shown = type(each)(each.view, each.snapshot, each.wrong, {}, publishes=True, publications=(publication,))
    found = parsed(Metrics(Status((shown,), 9_000)).text())
    tables = {dict(labels)["table"] for name, labels in found if name == f"{VIEW}published_map_version"}
    (table,) = tables
    assert "\x1b" not in table


def test_what_is_published_says_how_far_behind_it_is(lake: Lake) -> None:
    lake.project["publish"] = {"format": "delta", "folder": "shown"}
    lake.save()
    target = name_of(DeltaTarget(folder=str(lake.root / "shown")), "daily")
    lake.day(1)
    lake.refresh()
    with lake.driver() as driver:
        version = driver.store.summary("daily").header.version
        with driver.store.write("daily") as tx:
            known = Publication("daily", target, 1, version=version - 1, table="marts.daily", at=5)
            tx.put_publication(known)
    found = scraped(lake)
    assert of(found, "published_map_version", table="marts.daily") == version - 1
    assert of(found, "published_behind", table="marts.daily") == 1
    assert of(found, "published_timestamp_seconds", table="marts.daily") == 0.005


def test_a_state_that_cant_be_read_is_not_up(lake: Lake) -> None:
    lake.state.parent.mkdir()
    lake.state.write_bytes(b"no database" * 100)
    ran = lake.run("metrics")
    assert ran.exit_code == 1
    assert parsed(ran.stdout) == {("mv_assets_up", ()): 0}
    assert "the state can't be read" in ran.stderr


def test_a_state_that_does_not_answer_is_given_up_and_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    asked, answer = list[int](), threading.Event()

    def read() -> Metrics:
        asked.append(1)
        answer.wait(60)
        return Metrics(Status((), 0))

    made = _Scraped(read, patience_s=0.05)
    assert made.now().status is None
    assert made.now().status is None
    assert len(asked) == 1
    assert capsys.readouterr().err.count("it does not answer") == 1
    answer.set()
    assert _Scraped(read, patience_s=60).now().status is not None


def test_what_was_given_up_is_never_shown_later() -> None:
    answers, go = iter([1, 2]), threading.Event()

    def read() -> Metrics:
        at = next(answers)
        go.wait(60)
        return Metrics(Status((), at))

    made = _Scraped(read, patience_s=0.05)
    assert made.now().status is None
    first = made._reading
    assert first is not None
    go.set()
    first.ended.wait(60)
    found = _patient(made).now()
    assert found.status is not None
    assert found.status.now == 2


def _patient(made: _Scraped) -> _Scraped:
    made._patience_s = 60
    return made


@pytest.mark.parametrize(
    ("given", "host", "port"),
    [
        ("127.0.0.1:9464", "127.0.0.1", 9464),
        (":9464", "127.0.0.1", 9464),
        ("0.0.0.0:1", "0.0.0.0", 1),  # noqa: S104 - that is what is asked for
        ("[::1]:0", "::1", 0),
    ],
)
def test_an_address_is_loopback_unless_another_is_asked_for(given: str, host: str, port: int) -> None:
    assert _address(given) == (host, port)


@pytest.mark.parametrize("given", ["9464", "localhost", "localhost:", "a:b", "a:70000", "a:-1"])
def test_any_other_address_is_a_usage_error(lake: Lake, given: str) -> None:
    ran = lake.run("metrics", "--listen", given)
    assert (ran.exit_code, "--listen is HOST:PORT or :PORT" in ran.stderr) == (2, True)


def test_a_port_that_is_taken_is_one_sentence(lake: Lake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = lake.run("metrics", "--listen", f":{taken.getsockname()[1]}")
    assert ran.exit_code == 2
    assert "can't listen on 127.0.0.1:" in ran.stderr


@contextmanager
def served(lake: Lake) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command in a process of its own, and where it serves."""
    arguments = ["--project", str(lake.file), "metrics", "--listen", "127.0.0.1:0"]
    command = f"from mv_assets.cli import main; main({arguments!r})"
    with subprocess.Popen([sys.executable, "-c", command], stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+/metrics", process.stderr.readline())
            assert found is not None
            yield process, found[0]
        finally:
            process.kill()


def fetched(url: str) -> Samples:
    asked = urllib.request.Request(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})  # noqa: S310
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - our own server
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        return parsed(answer.read().decode())


@pytest.mark.processes
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_scraper_gets_what_is_there_at_the_moment_until_the_server_is_ended(
    lake: Lake, end: signal.Signals
) -> None:
    lake.day(1)
    lake.refresh()
    with served(lake) as (process, url):
        assert of(fetched(url), "buckets", state="valid") == 1
        lake.day(2)
        lake.refresh()
        assert of(fetched(url), "buckets", state="valid") == 2
        # A state that goes away is said, and found again once it is back.
        kept = lake.state.read_bytes()
        lake.state.write_bytes(b"no database" * 100)
        assert fetched(url) == {("mv_assets_up", ()): 0}
        lake.state.write_bytes(kept)
        assert fetched(url)["mv_assets_up", ()] == 1
        process.send_signal(end)
        assert process.wait(60) == 0


def test_counters_are_of_all_processes(lake: Lake) -> None:
    lake.day(1)
    lake.refresh()
    stores = [Store(f"sqlite:///{lake.state}") for _ in range(2)]
    assert [store.counters("daily")["APPEND"] for store in stores] == [1, 1]
    for store in stores:
        store.close()
