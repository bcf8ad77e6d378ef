from __future__ import annotations

from collections.abc import Iterator

import pytest

from mv_assets_tests.unit.cli.commands import Commands


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    typed = Commands()
    yield typed
    typed.end()
