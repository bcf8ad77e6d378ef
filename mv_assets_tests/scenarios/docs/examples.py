"""The examples of "Can it do my view?": views that are accepted or refused, and queries that read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from mv_assets_tests.scenarios.docs.pages import DOCS, Block, blocks

PAGE = DOCS / "can-it.md"
BLOCKS = tuple(blocks(PAGE))


@dataclass(frozen=True, slots=True)
class Example:
    """A view, and what is said of it where it is refused."""

    view: dict[str, Any]
    said: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.view["name"])


def _examples() -> Iterator[Example]:
    for block, following in pairwise((*BLOCKS, Block(0, "", "", "", ""))):
        if block.title in {"accepted", "refused"}:
            [view] = yaml.safe_load(block.text)
            refused = block.title == "refused"
            assert refused == (following.language == "text"), f"line {block.line}: what is said of it?"
            yield Example(view, tuple(following.text.splitlines()) if refused else ())


EXAMPLES = tuple(_examples())
ACCEPTED = {example.name: example.view for example in EXAMPLES if not example.said}
QUERIES = tuple(block.text for block in BLOCKS if block.language == "sql")


def project_file(folder: Path, views: list[dict[str, Any]]) -> Path:
    """A project of these views over the page's tables, which hold four days."""
    [tables] = [yaml.safe_load(block.text) for block in BLOCKS if block.title == "tables"]
    _write_tables(folder)
    file = folder / "project.yaml"
    file.write_text(yaml.safe_dump({**tables, "views": views}))
    return file


def with_its_base(view: dict[str, Any]) -> list[dict[str, Any]]:
    """The view, after those that it is based on."""
    base = ACCEPTED.get(view["base"]["table"] if isinstance(view["base"], dict) else view["base"])
    return [*(with_its_base(base) if base else ()), view]


def _write_tables(folder: Path) -> None:
    times = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=40 * n) for n in range(144)]
    numbers = list(range(len(times)))
    _write(
        folder / "data/orders",
        ordered_at=times,
        updated_at=times,
        order_id=numbers,
        shop_id=[n % 3 for n in numbers],
        user_id=[n % 7 for n in numbers],
        amount=[12.5 + n % 5 for n in numbers],
        status=["paid" if n % 2 else "open" for n in numbers],
        tags=[["new", "gift"]] * len(times),
        payload=['{"channel": "web"}'] * len(times),
    )
    _write(folder / "data/payments", paid_at=times, order_id=numbers, amount=[12.5] * len(times))
    _write(folder / "data/shops", shop_id=[0, 1], country=["FR", "JP"], blocked=[False, True])
    first, last = datetime(2023, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    _write(folder / "data/rates", valid_from=[first], valid_to=[last], rate=[1.1])


def _write(folder: Path, **columns: list[Any]) -> None:
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "all.parquet")
