from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mv_assets_tests.proof.soak.soak import Soak

# Those that make Dagster start again come last, and close together: that takes its time only once.
ORDER = ("run", "PostgreSQL", "Spark", "PostgreSQL", "run", "code server", "daemon", "webserver")


@pytest.fixture
def soak() -> Iterator[Soak]:
    # Not in pytest's folder: PostgreSQL runs as another user, to whom that is closed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        made = Soak(Path(folder), seed=1, pause_s=(0.0, 2.0), days=1)
        yield made
        made.stop()


@pytest.mark.e2e
@pytest.mark.soak
def test_whoever_is_killed_all_of_it_comes_back_by_itself_and_every_bucket_is_right(soak: Soak) -> None:
    soak.begin(filled=False)
    for victim in ORDER:
        soak.kill([victim], [1])
    assert set(soak.kills) == set(ORDER), soak.progress()
    assert soak.end(patience_s=240) == []
    # What has died was started again by `mv-assets dev`, which has not ended itself.
    assert soak.restarts == 0, soak.dev.said()
