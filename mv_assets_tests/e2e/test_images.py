"""The pictures in the docs: of the demo, as it is after `make dev`. `make images` puts them there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from mv_assets.cli.dev.ports import free_port
from mv_assets_tests.e2e.browser import artifacts
from mv_assets_tests.e2e.pages import Ui
from mv_assets_tests.scenarios.docs.pages import DOCS
from mv_assets_tests.support.dev import UP, Dev, dev

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VIEWS = ("trips_hourly", "trips_daily")


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Dev]:
    with dev(tmp_path_factory.mktemp("images"), "dev", "--port", str(port)) as running:
        running.until(lambda: UP in running.said())
        running.until(lambda: all(status(running, view)["counts"]["VALID"] > 10 for view in VIEWS))
        yield running


@pytest.fixture
def ui(browser: Browser, demo: Dev, port: int, tmp_path: Path) -> Iterator[Ui]:
    del demo
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        yield Ui(context.new_page(), f"http://127.0.0.1:{port}", artifacts(tmp_path))


def called(demo: Dev, *arguments: str) -> str:
    """What a command says; one that finds something wrong ends with 1."""
    command = [str(Path(sys.executable).with_name("mv-assets")), *arguments]
    ran = subprocess.run(command, cwd=demo.folder, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout


def status(demo: Dev, view: str) -> dict[str, Any]:
    [found] = json.loads(called(demo, "status", view, "--json"))["views"]
    return dict(found)


def test_the_lineage_of_the_demo(ui: Ui) -> None:
    ui.page.goto(f"{ui.address}/asset-groups")
    for name in ("trips", "zones", *VIEWS):
        expect(ui.page.get_by_text(name, exact=True).first).to_be_visible()
    expect(ui.page.get_by_text("100% filled")).to_have_count(len(VIEWS))
    nodes = [ui.page.get_by_text(name, exact=True).last.bounding_box() for name in ("trips", *VIEWS)]
    left, _, right = (box for box in nodes if box is not None)
    # Where the graph is, without what is around it.
    around = {"x": left["x"] - 30, "y": left["y"] - 60, "width": right["x"] - left["x"] + 290, "height": 350}
    ui.page.screenshot(path=ui.artifacts / "lineage.png", clip=around)  # type: ignore[arg-type]


def test_the_asset_of_a_view(ui: Ui) -> None:
    ui.open_asset("trips_hourly")
    expect(ui.page.get_by_text("Trips, passengers and fares of each hour and zone.")).to_be_visible()
    expect(ui.page.get_by_text("passengers", exact=True).first).to_be_visible()
    ui.screenshot("asset")


def test_the_map_of_a_view_while_one_file_is_damaged_and_another_came_late(ui: Ui, demo: Dev) -> None:
    called(demo, "demo", "poison")
    demo.until(lambda: "failed" in called(demo, "status", "trips_hourly"))
    before = status(demo, "trips_hourly")["refreshed_at"]
    called(demo, "demo", "late")
    demo.until(lambda: status(demo, "trips_hourly")["refreshed_at"] != before)
    ui.page.set_viewport_size({"width": 1440, "height": 2600})
    ui.open_asset("trips_hourly")
    ui.picture("partition_map")
    # The page asks again by itself.
    expect(ui.metadata("buckets")).to_contain_text("STALE")
    table = ui.page.get_by_role("table").filter(has=ui.page.get_by_text("partition_map", exact=True))
    table.last.screenshot(path=ui.artifacts / "partition_map.png")


def test_these_are_all_the_pictures_in_the_docs() -> None:
    assert sorted(path.stem for path in (DOCS / "images").iterdir()) == ["asset", "lineage", "partition_map"]
