"""What Spark raises, told apart: the work failed, or Spark itself is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mv_assets.spark.errors import EngineUnavailable, JobFailed, OutOfSpace, ReadFailed, Unreadable

_LONGEST = 600
_CALL = re.compile(r"An error occurred while calling [\w.$]+\.?\s*:?\s*")
_CLASS = re.compile(r"^(?:[a-z_]\w*\.)+[A-Z]\w*(?:Exception|Error): ")
_CAUSE = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_CONDITION = re.compile(r"^(?:: )?[\w.$]+: \[([A-Z][A-Z0-9_.]+)\]", re.MULTILINE)
_DETAILS = re.compile(r"^\s*details = \"(.+)\"$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+")
# Said by the file system, at the end of a line: a value in the data stands in the middle of a message.
_NO_SPACE = re.compile(
    r"(?:^|: )java\.io\.(?:IOException: |FileNotFoundException: .*\()"
    r"(No space left on device|Disk quota exceeded|File too large)\)?$",
    re.MULTILINE,
)
# What Spark says of a file without ids, and advises: a setting with which it would read nulls.
_NO_IDS = re.compile(r"Spark read schema expects field Ids, but Parquet file schema doesn't contain any.*")
_WITHOUT_IDS = (
    "it has no field ids to find columns by; give the table a name mapping (schema.name-mapping.default), or "
    "rewrite the file"
)
# What a Spark says that is gone, where it gives no condition. A value in the data may say the same.
_GONE = (
    "Connection refused",
    "failed to connect to all addresses",
    "SparkContext was shut down",
    "stopped SparkContext",
    "SparkContext has been shutdown",
    '"org.apache.spark.SparkContext.dagScheduler()" is null',
    # An older Spark forgets the session of a context that has stopped.
    '"org.apache.spark.sql.SparkSession.sessionState()" because "sparkSession" is null',
    "StatusCode.UNAVAILABLE",
    "Answer from Java side is empty",
)
# A trace of Python's: its frames, and below them the error.
_TRACE = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_RAISED = re.compile(r"^([\w.]+(?:: .*)?)$", re.MULTILINE)
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|/pyspark/|pyspark\.zip|^<frozen ")
_UNREADABLE_CONDITIONS = ("FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")
# An older client raises this in place of what it has tried again and again: its cause.
_TRIED = "RETRIES_EXCEEDED"
_GONE_CONDITIONS = ("INVALID_HANDLE.SESSION", "SESSION_", "NO_ACTIVE_SESSION", "JAVA_GATEWAY_EXITED", _TRIED)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Whatever Spark raises in the block becomes one of ours.

    Raises:
        JobFailed: the work can't be done; another part of it perhaps can.
        ReadFailed: it is a file that can't be read.
        EngineUnavailable: nothing can be done with this Spark.
        OutOfSpace: it has no room for what it writes.

    """
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - comes with Spark
    from pyspark.errors import AnalysisException, PySparkException  # noqa: PLC0415

    try:
        yield
    except Unreadable as error:
        raise ReadFailed(str(error)) from error
    except (Py4JNetworkError, ConnectionError) as error:
        raise EngineUnavailable(in_short(error)) from error
    except (PySparkException, Py4JError) as error:
        try:
            # What Python raised in a worker may read as if Spark were gone.
            gone, why = _by_worker(str(error)) is None and _gone(error), in_short(error)
        except (Py4JError, OSError):
            # Not even what happened can be asked any more.
            raise EngineUnavailable("its process ended") from error
        if gone:
            raise EngineUnavailable(why) from error
        if (full := _NO_SPACE.search(str(error))) is not None:
            raise OutOfSpace(full[1]) from error
        if (condition_of(error) or "").startswith(_UNREADABLE_CONDITIONS):
            raise ReadFailed(why) from error
        raise JobFailed(why, everywhere=isinstance(error, AnalysisException)) from error


def names_no_column(failed: BaseException) -> bool:
    """Whether Spark knows no column of a name in the query."""
    cause = failed.__cause__
    return cause is not None and (condition_of(cause) or "").startswith("UNRESOLVED_COLUMN")


def condition_of(error: BaseException) -> str | None:
    """The name that Spark has for what happened; some errors of the JVM only write it."""
    from pyspark.errors import PySparkException  # noqa: PLC0415

    known = error.getCondition() if isinstance(error, PySparkException) else None
    written = None if known is not None else _CONDITION.search(str(error))
    return known if written is None else written[1]


def _gone(error: BaseException) -> bool:
    condition = condition_of(error)
    if condition in (None, "INTERNAL_ERROR") and any(sign in str(error) for sign in _GONE):
        return True
    return (condition is not None and condition.startswith(_GONE_CONDITIONS)) or _stopped(error)


def _stopped(error: BaseException) -> bool:
    """Whether it comes from a Spark of this process that has stopped: its jobs then fail in any way."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark import SparkContext  # noqa: PLC0415
    from pyspark.errors.exceptions.captured import CapturedException  # noqa: PLC0415

    if not isinstance(error, (Py4JError, CapturedException)):
        return False
    context = SparkContext._active_spark_context  # noqa: SLF001 - there is no other way to ask
    try:
        return context is None or bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except (Py4JError, AttributeError):
        return True


def one_line(error: BaseException) -> str:
    """What an error says."""
    return " ".join(str(error).split())[:_LONGEST]


def in_short(error: BaseException) -> str:
    """What happened and its innermost cause, without the traces; of a UDF, what it raised and where."""
    if error.__cause__ is not None and condition_of(error) == _TRIED:
        return in_short(error.__cause__)
    said = str(error) or type(error).__name__
    if (raised := _by_worker(said)) is not None:
        return raised
    by_grpc = _DETAILS.search(said)
    if by_grpc is not None:
        return by_grpc[1][:_LONGEST]
    first = _CLASS.sub("", _CALL.sub("", said).strip().split("\n", 1)[0])
    parts = [_STATE.sub("", first).strip()]
    causes = [_NO_IDS.sub(_WITHOUT_IDS, _CLASS.sub("", cause)) for cause in _CAUSE.findall(said)]
    if causes and causes[-1] not in parts[0]:
        parts.append(_STATE.sub("", causes[-1]).strip())
    return ": ".join(part.rstrip(" .:") for part in parts)[:_LONGEST]


def _by_worker(said: str) -> str | None:
    """What Python raised in a worker, with the last line that is a user's: Spark has its trace as text."""
    traces = said.split(_TRACE)
    frames = _FRAME.findall(traces[-1])
    raised = _RAISED.search(traces[-1])
    if len(traces) < 2 or not frames or raised is None:  # noqa: PLR2004 - there is a trace
        return None
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line, function = (own or [frame for frame in frames if "pyspark" not in frame[0]] or frames)[-1]
    return f"a Python function ({file}:{line} in {function}): {raised[1].strip()}"[:_LONGEST]
