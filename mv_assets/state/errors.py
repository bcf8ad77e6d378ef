"""What the state refuses, and what keeps it from answering."""

from __future__ import annotations

from collections.abc import Mapping

from mv_assets.errors import MvError, Refused, StateError


class UnknownView(Refused):
    """The state database has no view of that name."""

    code = "unknown-view"

    def __init__(self, view: str) -> None:
        super().__init__(
            f"view {view!r} is not in the state database; refresh it first: `mv-assets refresh {view}`"
        )


class UnknownDefinition(Refused):
    """A definition that this view never had."""

    code = "unknown-definition"

    def __init__(self, view: str, definition: str) -> None:
        super().__init__(f"view {view!r} never had definition {definition}; adopt one that it had")


class Fenced(Refused):
    """A newer definition of the view took over; this deployment may no longer write."""

    code = "fenced"
    # It has stopped; nobody used it in the wrong way.
    is_usage = False

    def __init__(self, view: str, mine: str, current: str) -> None:
        super().__init__(
            f"view {view!r} is now defined as {current}, this deployment declares {mine}: it is fenced; "
            "deploy the current definition, or go back on purpose with `mv-assets adopt`"
        )


class NotInForce(Refused):
    """The project declares another definition than the view has."""

    code = "not-in-force"

    def __init__(self, view: str, mine: str, current: str) -> None:
        super().__init__(
            f"view {view!r} is defined as {current}, this project declares {mine}: nothing was marked; "
            "refresh the view, which puts the new definition in force"
        )


class OutOfCoverage(Refused):
    """A bucket before the view's start."""

    code = "out-of-coverage"

    def __init__(self, view: str, bucket: str, start: str) -> None:
        super().__init__(
            f"bucket {bucket} of view {view!r} lies before its coverage, which starts at {start}; "
            "extend the coverage to include it, with `--extend`"
        )


class Sealed(Refused):
    """Somebody other than the rules tried to build a part of the partition map."""

    code = "sealed"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"a {what} is built by mv_assets.state.rules only; use PartitionManager to change the map"
        )


class Collected(Refused):
    """gc took an attempt for dead and collected its generation."""

    code = "collected"

    def __init__(self, view: str, generation: str) -> None:
        super().__init__(
            f"generation {generation} of view {view!r} was collected as garbage; plan its work again"
        )


class LeaseExpired(MvError):
    """A reader took longer than its lease; the files it was promised may be gone."""

    code = "lease-expired"

    def __init__(self, view: str) -> None:
        super().__init__(
            f"the lease on view {view!r} expired before the read ended and its data may have been collected; "
            "run it again"
        )


class StateUnavailable(StateError):
    """The database could not be reached, was locked or dropped the connection; worth another attempt."""

    code = "state-unavailable"


class StateNotWritable(StateError):
    """The database is read-only, full or closed to this user; another attempt would not help."""

    code = "state-not-writable"


class SchemaTooNew(StateError):
    """The database was written by a newer mv_assets."""

    code = "schema-too-new"

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"the state database {where} has schema version {found}, this mv_assets knows up to {known}; "
            "upgrade mv_assets, or point `state` at another database"
        )


class CommitConflict(StateError):
    """Somebody else changed the map first; decide again on what is there now."""

    code = "commit-conflict"


class RowsMoved(CommitConflict):
    """Rows changed since the attempt last noted their tokens: look again, then decide again."""

    code = "rows-moved"

    def __init__(self, view: str, tokens: Mapping[int, int | None]) -> None:
        super().__init__(f"{len(tokens)} bucket(s) of view {view!r} changed since they were looked at")
        self.tokens = dict(tokens)


class GaveUp(StateError):
    """Every attempt the retry profile allows was used."""

    code = "gave-up"

    def __init__(self, view: str | None, operation: str, attempts: int, cause: BaseException) -> None:
        what = operation if view is None else f"{operation} on view {view!r}"
        often = f"{attempts} attempt{'' if attempts == 1 else 's'}"
        super().__init__(
            f"{what} gave up after {often}; see that the state database can be reached, then try "
            f"again; the last attempt said: {cause}"
        )


class NoState(StateError):
    """There is no state database yet."""

    code = "no-state"

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} holds no state yet; refresh a view first")
