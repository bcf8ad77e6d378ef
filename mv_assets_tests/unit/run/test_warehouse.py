"""The warehouse's files, in a store that takes its time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from mv_assets.run.warehouse import Warehouse

AT_ONCE = 4


class Slow(LocalFileSystem):  # type: ignore[misc]
    """Opens a file once so many are asked for at the same time."""

    protocol = "slow"
    together = threading.Barrier(AT_ONCE)

    def _open(self, path: str, mode: str = "rb", block_size: int | None = None, **given: Any) -> Any:
        self.together.wait(timeout=30)
        return super()._open(path, mode, block_size, **given)


def test_many_footers_are_read_at_once_and_given_in_order(tmp_path: Path) -> None:
    """One after the other, a first publication of a large view would take longer than a sensor may."""
    paths = [f"v/g/{number}.parquet" for number in range(2 * AT_ONCE)]
    (tmp_path / "v" / "g").mkdir(parents=True)
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"x": [0] * (number + 1)}), tmp_path / path)
    fsspec.register_implementation("slow", Slow, clobber=True)
    for place in (f"slow://{tmp_path}", str(tmp_path)):
        footers = Warehouse(place).footers(paths)
        assert [footer.num_rows for footer in footers] == [number + 1 for number in range(len(paths))]
