from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from mv_assets.project import Project
from mv_assets_tests.proof.pairs.tables import PRODUCTS, SHOPS, TYPES, some

Opened = Callable[[Sequence[dict[str, Any]]], Project]
_TABLES = [
    {"name": "events", "path": "events", "time_column": "at"},
    {"name": "shops", "path": "shops"},
    {"name": "products", "path": "products"},
]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Projects over a day of the tables, with the views that are given; nothing is ever computed of them."""
    for table, columns in {"events": some(0), "shops": SHOPS, "products": PRODUCTS}.items():
        arrays = {name: pa.array(each, TYPES.get(name)) for name, each in columns.items()}
        (tmp_path / table).mkdir()
        pq.write_table(pa.table(arrays), tmp_path / table / "1.parquet")
    made = list[Project]()

    def open_with(views: Sequence[dict[str, Any]]) -> Project:
        file = tmp_path / f"project-{len(made)}.yaml"
        file.write_text(yaml.safe_dump({"tables": _TABLES, "views": list(views)}, sort_keys=False))
        made.append(Project.open(file))
        return made[-1]

    yield open_with
    for project in made:
        project.close()
