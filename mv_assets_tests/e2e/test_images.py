"""The pictures in the docs: of the demo, as it is after `make dev`. `make images` puts them there."""

from __future__ import annotations

import json
import re
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
        running.until(lambda: all(view["counts"].get("VALID", 0) > 10 for view in status(running)))
        yield running


@pytest.fixture
def pictures(browser: Browser, demo: Dev, port: int, tmp_path: Path) -> Iterator[Ui]:
    del demo
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        yield Ui(context.new_page(), f"http://127.0.0.1:{port}", artifacts(tmp_path))


def called(demo: Dev, *arguments: str) -> str:
    """What a command says."""
    command = [str(Path(sys.executable).with_name("mv-assets")), *arguments]
    ran = subprocess.run(command, cwd=demo.folder, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return ran.stdout


def status(demo: Dev) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(called(demo, "status", "--json"))["views"]
    return found


def test_the_lineage_of_the_demo(pictures: Ui) -> None:
    page = pictures.page
    page.goto(f"{pictures.address}/asset-groups")
    for name in ("trips", "zones", *VIEWS):
        expect(page.get_by_text(name, exact=True).first).to_be_visible()
    expect(page.get_by_text(re.compile("partitions$")).first).to_be_visible()
    pictures.screenshot("lineage")
