from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mv_assets.state.store import Store
from mv_assets.tables.files.local import LocalFolder
from mv_assets_tests.unit.tables.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """An empty folder whose inventory is kept in a SQLite database."""
    root = tmp_path / "lake"
    root.mkdir()
    store = Store(f"sqlite:///{tmp_path}/state.db")
    yield Lake(root, store.database)
    store.close()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of local files, each time that one is opened."""
    names: list[str] = []
    really = LocalFolder.open

    def open_and_note(folder: LocalFolder, name: str) -> Any:
        names.append(name)
        return really(folder, name)

    monkeypatch.setattr(LocalFolder, "open", open_and_note)
    return names
