"""What commands that compute share: Spark, stopped at their end, and quiet about being interrupted."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from mv_assets.config import Spark
from mv_assets.spark.interrupts import listening
from mv_assets.spark.session import Engine


@contextmanager
def engine(declared: Spark) -> Iterator[Engine]:
    logging.getLogger().addFilter(_not_of_py4j)
    opened = Engine(declared)
    try:
        yield opened
    finally:
        # It takes a second, in which an impatient Ctrl-C would leave half of it.
        with listening(signal.SIG_IGN):
            opened.stop()


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Whether a record is not py4j's, which leaves a trace of each interrupted call in everybody's log."""
    return "py4j" not in PurePath(record.pathname).parts
