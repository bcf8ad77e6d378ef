from __future__ import annotations

from collections.abc import Iterator

import pytest

from mv_assets_tests.scenarios.docs.reader import CommandProcess


@pytest.fixture(scope="session")
def command_process() -> Iterator[CommandProcess]:
    one = CommandProcess()
    yield one
    one.end()
