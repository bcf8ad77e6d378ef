"""Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise FileNotFoundError(
            "these tests need Chromium: on Debian `apt-get install --no-install-recommends chromium`"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield browser
        browser.close()


def artifacts(default: Path) -> Path:
    """Where screenshots go: the folder that MV_ASSETS_ARTIFACTS names, else the given one."""
    folder = Path(os.environ.get("MV_ASSETS_ARTIFACTS") or default)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
