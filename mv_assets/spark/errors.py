"""Spark that is not there, or jobs that it could not do."""

from __future__ import annotations

from mv_assets.errors import MvError, Refused


class EngineRefused(Refused):
    """Spark is set up so that it could answer wrongly without saying so."""

    code = "engine-refused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Spark has {key} on, with which files that are missing or damaged count as empty; "
            "take it out of spark.conf, or out of the server's settings"
        )


class EngineUnavailable(MvError):
    """Spark could not be started or reached, or went away; nothing is wrong with the data."""

    code = "engine-unavailable"

    def __init__(self, why: str) -> None:
        super().__init__(f"Spark is not available: {why}; see that it runs, then try again")
        self.why = why


class NoJava(EngineUnavailable):
    """Spark can't be started for want of a Java that it runs on."""

    code = "no-java"

    def __init__(self, why: str) -> None:
        MvError.__init__(self, f"Spark is not available: {why}; install Java 17 or newer, or set JAVA_HOME")
        self.why = why


class OutOfSpace(MvError):
    """Spark had no room for what it wrote; nothing is wrong with the data."""

    code = "out-of-space"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Spark has no space left to write ({why}); make room in the warehouse and where Spark keeps its "
            "temporary files (spark.local.dir), then it is tried again"
        )


class StoreUnavailable(MvError):
    """Spark can't reach the object store of a table, or of the warehouse; nothing is wrong with the data."""

    code = "store-unavailable"

    def __init__(self, what: str, why: str, instead: str) -> None:
        super().__init__(f"{what} can't be reached: {why}; {instead}")
        self.about = what


class Unreadable(MvError):
    """Files that Spark could not read as the rows of one table."""

    code = "unreadable"


class JobFailed(MvError):
    """A Spark job ended with an error that has to do with what it computed.

    `everywhere` says that it lies in the query, so that a part of the work would fail as well.
    """

    code = "job-failed"

    def __init__(self, why: str, *, everywhere: bool = False) -> None:
        super().__init__(why)
        self.everywhere = everywhere


class ReadFailed(JobFailed):
    """A file can't be read, or not as what the others are."""

    code = "read-failed"
