"""The Spark that `mv-assets dev` keeps warm: where it is, told to the commands of the same home."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mv_assets.cli.dev.home import writing
from mv_assets.config import Spark
from mv_assets.spark.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

LOCK, _FILE = "dev.lock", "dev.spark.json"
# What of the environment Spark, its Java, its Python workers and its stores go by.
_MATTERS = ("SPARK_", "PYSPARK_", "HADOOP_", "JAVA_", "PYTHON", "AWS_", "AZURE_", "GOOGLE_", "TZ")
# What Python says and keeps, not what it does.
_DOES_NOT_MATTER = frozenset({"PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"})
_OTHERWISE = (
    "it was started with another `spark` of the project, or another environment (Python, PySpark, or "
    f"variables that begin with {', '.join(_MATTERS)})"
)
_ANSWERS_WITHIN_S = 5.0
_CLIENT = "SPARK_CONNECT_MODE_ENABLED"


def _digest(declared: Spark) -> str:
    """Names a Spark that would be started here: those of one name compute the same and may read the same.

    It gives no secret away.
    """
    known = {
        key: value
        for key, value in sorted(os.environ.items())
        if key.startswith(_MATTERS) and key not in _DOES_NOT_MATTER
    }
    what = [declared.model_dump(mode="json"), version("pyspark"), sys.executable, known]
    return hashlib.blake2b(json.dumps(what).encode(), digest_size=16).hexdigest()


@contextmanager
def told(home: Path, address: str, declared: Spark) -> Iterator[None]:
    """While the block runs, the commands of this home find a Spark.

    Raises:
        HomeUnwritable: they can't be told.

    """
    file = home / _FILE
    with writing(home):
        file.unlink(missing_ok=True)
        # Whoever could write it would get what commands send to Spark; who could read it, may ask it.
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(json.dumps({"address": address, "spark": _digest(declared)}))
    try:
        yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class _Warm:
    """The Spark that a home keeps warm: where it is, and what it goes by."""

    address: str = field(repr=False)
    spark: str

    def is_as(self, declared: Spark) -> bool:
        """Whether it is as declared, and as one's own would be here."""
        return self.spark == _digest(declared)


def _kept(home: Path) -> _Warm | None:
    """The one that a home keeps warm now."""
    with suppress(OSError, ValueError, KeyError, TypeError), (home / _FILE).open() as file:
        # Of what was opened: in its place there may be another by now.
        status = os.fstat(file.fileno())
        if status.st_uid != os.getuid() or status.st_mode & 0o077 or not _in_use(home / LOCK):
            return None
        known = json.load(file)
        return _Warm(str(known["address"]), str(known["spark"]))
    return None


def without_parameters(address: str) -> str:
    """An address for people to read: what follows may be a secret."""
    return address.partition("/;")[0]


def _in_use(lock: Path) -> bool:
    """Whether `dev` runs, or what it has left running if it was killed."""
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@dataclass(slots=True)
class SparkOfHome:
    """Gives the Spark of a command: the warm one, as long as it answers, or else one of the command's own."""

    home: Path
    say: Callable[[str], None]
    _used: str | None = field(default=None, repr=False)

    def start(self, declared: Spark) -> SparkSession:
        """A session.

        Raises:
            EngineUnavailable: neither is to be had.

        """
        from mv_assets.spark.startup import REMOTE, attached, is_local, start  # noqa: PLC0415 - a second

        named = REMOTE in os.environ or not is_local(declared)
        kept = None if named else _kept(self.home)
        if kept is not None and not kept.is_as(declared):
            self.say(f"not using the Spark that `mv-assets dev` keeps warm: {_OTHERWISE}")
            kept = None
        if kept is not None:
            address = kept.address
            try:
                found = attached(address, answers_within_s=_ANSWERS_WITHIN_S)
            except EngineUnavailable as error:
                self.say(f"the Spark of `mv-assets dev` can't be had ({error.why}): starting one of our own")
            else:
                self._used = address
                where = f"at {without_parameters(address)} (not with --own-spark)"
                self.say(f"using the Spark that `mv-assets dev` keeps warm, {where}")
                return found
        elif self._used is not None:
            where = without_parameters(self._used)
            self.say(f"the Spark of `mv-assets dev` at {where} is gone: starting one of our own")
            # A process that once was a client pyspark takes for one for ever.
            os.environ.pop(_CLIENT, None)
        self._used = None
        return start(declared)

    def again(self, work: Callable[[], T]) -> T:
        """Do work, and once more if the warm Spark has died under it: it was for others to start and stop."""
        try:
            return work()
        except EngineUnavailable:
            if self._used is None:
                raise
        return work()
