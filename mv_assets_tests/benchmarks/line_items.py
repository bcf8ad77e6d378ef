"""TPC-H's line items; the scale by `make bench SF=...`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SF = os.environ.get("SF", "1")
# Made once; `make clean` takes it away.
MADE = Path("build")


def line_items() -> Path:
    """All line items in one file."""
    made = (MADE / f"tpch-{SF}").absolute()
    if not made.exists():
        tool = Path(sys.executable).parent / "tpchgen-cli"
        command = [str(tool), "parquet", "-s", SF, "--tables=lineitem", f"--output-dir={made}.new"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own environment's tool
        Path(f"{made}.new").rename(made)
    return made / "lineitem.parquet"
