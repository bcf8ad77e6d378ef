from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from sqlalchemy import create_engine, make_url, text

from mv_assets.state.store import Store
from mv_assets_tests.e2e.browser import artifacts, chromium
from mv_assets_tests.e2e.dagster import Dagster
from mv_assets_tests.e2e.deployment import Deployment
from mv_assets_tests.e2e.pages import Ui
from mv_assets_tests.e2e.site import Site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def state(postgres: str) -> str:
    """A state database that no other test empties."""
    engine = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("CREATE DATABASE e2e"))
    engine.dispose()
    return make_url(postgres).set(database="e2e").render_as_string(hide_password=False)


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory, connect_server: str, state: str) -> Iterator[Deployment]:
    """One Dagster for all: it takes half a minute to start and to fill its views. Its daemon never rests."""
    folder = tmp_path_factory.mktemp("e2e")
    Site.files_of(folder, state)
    store = Store(state)
    site = Site(folder, store, views=())
    site.fill()
    made = Deployment.of(site, folder, connect_server)
    try:
        made.processes.start()
        yield made
    finally:
        made.shut_down()
        store.close()


@pytest.fixture
def deployment(shared: Deployment) -> Iterator[Deployment]:
    """All views complete and nothing under way; what a test spoils is mended after it."""
    shared.restore()
    yield shared
    shared.gate.open()
    shared.site.heal()


@pytest.fixture
def site(deployment: Deployment) -> Site:
    return deployment.site


@pytest.fixture
def dagster(deployment: Deployment) -> Dagster:
    return deployment.dagster


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not kept longer: while Playwright runs, nothing else in its thread can have an event loop."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def ui(
    browser: Browser, deployment: Deployment, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Ui]:
    with browser.new_context(viewport={"width": 1500, "height": 1000}) as context:
        opened = Ui(context.new_page(), deployment.processes.address, artifacts(tmp_path))
        yield opened
        opened.screenshot(f"end of {request.node.name}")
