"""Dagster's UI as a person goes through it: an asset, its partitions, the dialog that launches runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

_PATIENCE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Ui:
    page: Page
    address: str
    artifacts: Path

    def __post_init__(self) -> None:
        self.page.set_default_timeout(_PATIENCE_MS)
        expect.set_options(timeout=_PATIENCE_MS)

    def screenshot(self, name: str) -> Path:
        path = self.artifacts / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def open_asset(self, asset: str) -> None:
        """The overview of an asset."""
        self.page.goto(f"{self.address}/assets/{asset}?view=overview")
        expect(self.page.get_by_text("Latest materialization")).to_be_visible()

    def open_partition(self, asset: str, partition: str) -> None:
        """The partitions of an asset, with the details of one."""
        self.page.goto(f"{self.address}/assets/{asset}?view=partitions&partition={partition}")
        expect(self.page.get_by_text("Latest materialization")).to_be_visible()

    def count_of(self, status: str) -> int:
        """How many partitions have a status, as written above their list."""
        label = self.page.get_by_text(re.compile(rf"^{status} \([\d,]+\)$"))
        expect(label).to_be_visible()
        return int(re.sub(r"\D", "", label.inner_text()))

    def tag(self, text: str) -> Locator:
        """A tag beside the partition's name: Materialized, Failed, Unsynced."""
        return self.page.get_by_text(re.compile(rf"^{text}( \(\d+\))?$")).first

    def metadata(self, label: str) -> Locator:
        """The row of a metadata entry."""
        return self.page.get_by_role("row").filter(has=self.page.get_by_text(label, exact=True))

    def picture(self, label: str) -> Locator:
        """The image of a metadata entry, once it is really drawn."""
        row = self.metadata(label)
        link = row.get_by_text("[Show Markdown]")
        expect(row.locator("img[src^='data:']").or_(link)).to_be_visible()
        # What is longer than a thousand characters is shown in a dialog.
        if link.is_visible():
            link.click()
            row = self.page.get_by_role("dialog")
        image = row.locator("img[src^='data:']")
        expect(image).to_be_visible()
        drawn = "image => image.complete && image.naturalWidth > 0"
        self.page.wait_for_function(drawn, arg=image.element_handle())
        return image

    def backfill(self, asset: str, first: str, last: str) -> None:
        """Materialize a range by clicking."""
        self.page.goto(f"{self.address}/assets/{asset}?view=partitions")
        # Before the partitions are there, the button does something else.
        expect(self.page.get_by_text("Partitions Selected")).to_be_visible()
        self.page.get_by_role("button", name="Materialize").first.click()
        dialog = self.page.get_by_role("dialog")
        wanted = dialog.get_by_placeholder(re.compile("^ex:"))
        older = dialog.get_by_text("Show all partitions")
        expect(wanted.or_(older).first).to_be_visible()
        # Of more than ninety days it offers the last ninety.
        if older.is_visible():
            older.click()
        wanted.fill(f"[{first}...{last}]")
        wanted.press("Enter")
        expect(dialog.get_by_text(re.compile(r"^\d+ partitions$"))).not_to_have_text("0 partitions")
        self.screenshot("backfill dialog")
        dialog.get_by_role("button", name="Launch").click()
        expect(dialog).to_be_hidden()
