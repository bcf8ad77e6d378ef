"""The picture of a partition map."""

from __future__ import annotations

import base64
import io
import random
import struct
import zlib

from mv_assets.buckets import DAY
from mv_assets.defs.picture import picture
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Declaration
from mv_assets.state.store import Store
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.memory_table import BaseTable

GREEN, PALE, AMBER = (47, 158, 110), (168, 216, 194), (232, 163, 61)
GREY, DARK, WHITE = (217, 220, 225), (31, 41, 55), (255, 255, 255)


def _pixels(markdown: str) -> list[list[tuple[int, int, int]]]:
    """An independent reading of the image."""
    encoded = markdown.partition("base64,")[2].partition(")")[0]
    data = io.BytesIO(base64.b64decode(encoded))
    assert data.read(8) == b"\x89PNG\r\n\x1a\n"
    parts: dict[bytes, bytes] = {}
    while head := data.read(8):
        size, kind = struct.unpack(">I4s", head)
        parts[kind] = data.read(size)
        assert struct.unpack(">I", data.read(4))[0] == zlib.crc32(kind + parts[kind])
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    raw, above, rows = zlib.decompress(parts[b"IDAT"]), bytes(width), []
    for y in range(height):
        kind, line = raw[y * (width + 1)], raw[y * (width + 1) + 1 : (y + 1) * (width + 1)]
        above = bytes((a + b) % 256 for a, b in zip(line, above, strict=True)) if kind == 2 else line
        rows.append([tuple(parts[b"PLTE"][3 * i : 3 * i + 3]) for i in above])
    return rows  # type: ignore[return-value]


def test_each_bucket_has_its_colour(deployment: Deployment, table: BaseTable, store: Store) -> None:
    for day in (0, 1, 3, 6):
        table.day(f"day {day}", day, day)
    deployment.look()
    deployment.refresh(0, 1, 2, 3)
    deployment.manager.force(deployment.declaration, [1 * DAY, 5 * DAY], "by hand")
    line = _pixels(picture(store.snapshot("v")))[2]
    assert [line[2 + 11 * at] for at in range(7)] == [GREEN, AMBER, PALE, GREEN, GREY, AMBER, WHITE]
    assert line[2 + 11 * 3 + 9] == DARK


def test_a_line_is_followed_by_the_next(store: Store) -> None:
    manager = PartitionManager(store, clock=lambda: 400 * DAY)
    view = Declaration("v", "d", "1d", 0)
    manager.declare(view)
    manager.force(view, [day * DAY for day in range(30)], "by hand")
    rows = _pixels(picture(store.snapshot("v")))
    assert [rows[13][2 + 11 * at] for at in range(3)] == [AMBER, AMBER, WHITE]


def test_a_view_that_has_nothing_yet_says_so(store: Store) -> None:
    PartitionManager(store, clock=lambda: 400 * DAY).declare(Declaration("v", "d", "1d", 0))
    assert picture(store.snapshot("v")) == "no bucket yet"


def test_it_is_short_enough_to_be_shown_at_once(store: Store) -> None:
    manager = PartitionManager(store, clock=lambda: 400 * DAY)
    view = Declaration("v", "d", "1h", 0)
    manager.declare(view)
    chance = random.Random(7)
    manager.force(view, [hour * DAY // 24 for hour in range(2_000) if chance.random() < 0.5], "by hand")
    markdown = picture(store.snapshot("v"))
    assert len(markdown) < 1_000
    assert len(_pixels(markdown)) == 2 + 14 * 11
