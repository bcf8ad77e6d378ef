"""What Spark raises, told apart: the work failed, or Spark itself is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mv_assets.errors import EngineUnavailable, JobFailed

_LONGEST = 600
_CALL = re.compile(r"An error occurred while calling [\w.$]+\.?\s*:?\s*")
_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:Exception|Error): ")
_CAUSE = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+")
# Found while the query is analysed, but it is about one file.
_VANISHED = "PATH_NOT_FOUND"
_GONE = (
    "Connection refused",
    "failed to connect to all addresses",
    "SESSION_CLOSED",
    "SESSION_NOT_FOUND",
    "SparkContext was shut down",
    "stopped SparkContext",
    "StatusCode.UNAVAILABLE",
    "Answer from Java side is empty",
)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Whatever Spark raises in the block becomes one of ours.

    Raises:
        JobFailed: the work can't be done; another part of it perhaps can.
        EngineUnavailable: nothing can be done with this Spark.

    """
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise EngineUnavailable(in_short(error)) from error
    except (PySparkException, Py4JError) as error:
        said = str(error)
        if any(sign in said for sign in _GONE):
            raise EngineUnavailable(in_short(error)) from error
        everywhere = isinstance(error, AnalysisException) and error.getCondition() != _VANISHED
        raise JobFailed(in_short(error), everywhere=everywhere) from error


def in_short(error: BaseException) -> str:
    """What happened and its innermost cause, without the traces."""
    said = str(error) or type(error).__name__
    first = _CLASS.sub("", _CALL.sub("", said).strip().split("\n", 1)[0])
    parts = [_STATE.sub("", first).strip()]
    causes = [_CLASS.sub("", cause) for cause in _CAUSE.findall(said)]
    if causes and causes[-1] not in parts[0]:
        parts.append(_STATE.sub("", causes[-1]).strip())
    return ": ".join(part.rstrip(" .:") for part in parts)[:_LONGEST]
