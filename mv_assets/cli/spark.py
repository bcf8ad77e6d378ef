"""Spark for a command: had when first needed, stopped when the command ends."""

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
