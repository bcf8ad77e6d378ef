"""The root of all errors, and those that belong to no layer."""

from __future__ import annotations

from typing import ClassVar

from mv_assets.text import printable, without_credentials


class MvError(Exception):
    """Anything mv_assets refuses or fails to do.

    Each says what happened, to which view and bucket, and what to do. Programs go by its `code`, which stays
    the same when the words change.
    """

    code: ClassVar[str] = "error"
    # Whether it lies in how something was asked for, and not in the data: a command then ends with 2.
    is_usage: ClassVar[bool] = False
    # The table, view or place that it is about: two errors of one code and place are the same to programs.
    about: str = ""

    def __init__(self, message: str = "", *lines: str) -> None:
        # A library, or a path that a user wrote, may hold a password; a name of others, escape codes.
        super().__init__("\n".join(printable(without_credentials(line)) for line in (message, *lines)))


class BucketError(MvError):
    """A bucket width, key or start that names no bucket."""

    code = "bucket-error"
    is_usage = True


class Refused(MvError):
    """A precondition does not hold: raised at the first attempt, and nothing was written."""

    code = "refused"
    is_usage = True


class ProjectClosed(Refused):
    """A project was used after it had been closed."""

    code = "project-closed"

    def __init__(self) -> None:
        super().__init__("the project is closed; open it again with Project.open")


class StateError(MvError):
    """The state database did not do what was asked."""

    code = "state-error"


class StillReading(MvError):
    """There is more to read than the time for it; what was read is remembered."""

    code = "still-reading"

    def __init__(self, table: str, files: int, of: int) -> None:
        super().__init__(f"reading table {table}: {files} of {of} new files so far; it goes on from there")


class SettingRefused(Refused):
    """A variable of the environment has a value that can't be used."""

    code = "setting-refused"

    def __init__(self, variable: str, value: str, what: str, instead: str) -> None:
        super().__init__(f"{variable} is {value!r}, {what}; {instead}")
