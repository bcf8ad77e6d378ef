"""What commands that compute share: Spark, stopped at their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mv_assets.engine.session import Engine
from mv_assets.project import Spark


@contextmanager
def engine(declared: Spark) -> Iterator[Engine]:
    opened = Engine(declared)
    try:
        yield opened
    finally:
        opened.stop()
