from __future__ import annotations

from collections.abc import Iterator

import pytest

from mv_assets_tests.docs.reader import Typist


@pytest.fixture(scope="session")
def typist() -> Iterator[Typist]:
    one = Typist()
    yield one
    one.end()
