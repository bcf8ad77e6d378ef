"""The one tree of errors. Each message says what happened, to which view and bucket, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mv_assets.wording import printable


class MvError(Exception):
    """Anything mv_assets refuses or fails to do."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a project: the field, what is wrong there, and what would be right."""

    where: str
    what: str
    line: int | None = None

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        place = ", ".join(part for part in (line, self.where) if part)
        return printable(f"{place}: {self.what}" if place else self.what)


class ProjectError(MvError):
    """The project file can't be used; it names every mistake that was found."""

    def __init__(self, file: str, mistakes: Sequence[Mistake]) -> None:
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(
            "\n".join([f"{printable(file)}: {count}", *(f"  {mistake}" for mistake in mistakes)])
        )
        self.file = file
        self.mistakes = tuple(mistakes)


class BucketError(MvError):
    """A bucket width, key or start that names no bucket."""


class Refused(MvError):
    """A precondition does not hold: raised at the first attempt, and nothing was written."""


class UnknownView(Refused):
    """The state database has no view of that name."""

    def __init__(self, view: str) -> None:
        super().__init__(
            f"view {view!r} is not in the state database; refresh it first: `mv-assets refresh {view}`"
        )


class UnknownDefinition(Refused):
    """A definition that this view never had."""

    def __init__(self, view: str, definition: str) -> None:
        super().__init__(f"view {view!r} never had definition {definition}; adopt one that it had")


class Fenced(Refused):
    """A newer definition of the view took over; this deployment may no longer write."""

    def __init__(self, view: str, mine: str, current: str) -> None:
        super().__init__(
            f"view {view!r} is now defined as {current}, this deployment declares {mine}: it is fenced; "
            "deploy the current definition, or go back on purpose with `mv-assets adopt`"
        )


class NotInForce(Refused):
    """The project declares another definition than the view has."""

    def __init__(self, view: str, mine: str, current: str) -> None:
        super().__init__(
            f"view {view!r} is defined as {current}, this project declares {mine}: nothing was marked; "
            "refresh the view, which puts the new definition in force"
        )


class OutOfCoverage(Refused):
    """A bucket before the view's start."""

    def __init__(self, view: str, bucket: str, start: str) -> None:
        super().__init__(
            f"bucket {bucket} of view {view!r} lies before its coverage, which starts at {start}; "
            "extend the coverage to include it, with `--extend`"
        )


class Sealed(Refused):
    """Somebody other than the rules tried to build a part of the partition map."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"a {what} is built by mv_assets.state.rules only; use PartitionManager to change the map"
        )


class Collected(Refused):
    """gc took an attempt for dead and collected its generation."""

    def __init__(self, view: str, generation: str) -> None:
        super().__init__(
            f"generation {generation} of view {view!r} was collected as garbage; plan its work again"
        )


class LeaseExpired(MvError):
    """A reader took longer than its lease; the files it was promised may be gone."""

    def __init__(self, view: str) -> None:
        super().__init__(
            f"the lease on view {view!r} expired before the read ended and its data may have been collected; "
            "run it again"
        )


class StateError(MvError):
    """The state database did not do what was asked."""


class StateUnavailable(StateError):
    """The database could not be reached, was locked or dropped the connection; worth another attempt."""


class StateNotWritable(StateError):
    """The database is read-only, full or closed to this user; another attempt would not help."""


class SchemaTooNew(StateError):
    """The database was written by a newer mv_assets."""

    def __init__(self, where: str, found: int, known: int) -> None:
        super().__init__(
            f"the state database {where} has schema version {found}, this mv_assets knows up to {known}; "
            "upgrade mv_assets, or point `state` at another database"
        )


class CommitConflict(StateError):
    """Somebody else changed the map first; decide again on what is there now."""


class RowsMoved(CommitConflict):
    """Rows changed since the attempt last noted their tokens: look again, then decide again."""

    def __init__(self, view: str, tokens: Mapping[int, int | None]) -> None:
        super().__init__(f"{len(tokens)} bucket(s) of view {view!r} changed since they were looked at")
        self.tokens = dict(tokens)


class GaveUp(StateError):
    """Every attempt the retry profile allows was used."""

    def __init__(self, view: str | None, operation: str, attempts: int, cause: BaseException) -> None:
        what = operation if view is None else f"{operation} on view {view!r}"
        often = f"{attempts} attempt{'' if attempts == 1 else 's'}"
        super().__init__(
            f"{what} gave up after {often}; see that the state database can be reached, then try "
            f"again; the last attempt said: {cause}"
        )


class TableUnreadable(MvError):
    """A base table could not be listed as a whole, so there was no look; nothing was concluded from it."""

    def __init__(self, table: str, where: str, why: str) -> None:
        super().__init__(f"table {table!r} at {where} can't be listed: {why}")


class TableRefused(MvError):
    """A base table has something that would be read wrong."""

    def __init__(self, table: str, what: str, instead: str) -> None:
        super().__init__(f"table {table!r} {what}, which would be read wrong; {instead}")


class TooManyBuckets(MvError):
    """A view that nobody could look at: every look goes through all of its buckets."""

    def __init__(self, view: str, width: str, start: str, count: int, most: int) -> None:
        super().__init__(
            f"view {view!r} has {count:,} buckets of {width} from its start at {start} until now, more than "
            f"the {most:,} that can be kept track of; give it wider buckets or a later start"
        )


class ExtendedTooFar(Refused):
    """An earlier start for a view than anybody would mean: its buckets would be STALE for ever."""

    def __init__(self, view: str, width: str, first: str, start: str, count: int, most: int) -> None:
        super().__init__(
            f"to start at {first} instead of {start}, view {view!r} would get {count:,} more buckets of "
            f"{width}, and at most {most:,} are added at once; is the year right? if so, declare "
            f"`start: {first}`"
        )


class NotDeclared(Refused):
    """The project has no view of that name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        there = f"it has {', '.join(names)}" if names else "it has none"
        super().__init__(f"the project has no view {name!r}; {there}")


class HasDependants(Refused):
    """A view was to be dropped that others are based on."""

    def __init__(self, view: str, dependants: Sequence[str]) -> None:
        are, them = ("is", "it") if len(dependants) == 1 else ("are", "them")
        super().__init__(
            f"view {view!r} was not dropped: {', '.join(dependants)} {are} based on it and would wait for "
            f"it; drop {them} too, with `--with-dependants` (in Dagster `with_dependants: true`)"
        )


class NoState(StateError):
    """There is no state database yet."""

    def __init__(self, where: str) -> None:
        super().__init__(f"{where} holds no state yet; refresh a view first")


class EngineRefused(Refused):
    """Spark is set up so that it could answer wrongly without saying so."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Spark has {key} on, with which files that are missing or damaged count as empty; "
            "take it out of spark.conf, or out of the server's settings"
        )


class EngineUnavailable(MvError):
    """Spark could not be started or reached, or went away; nothing is wrong with the data."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Spark is not available: {why}; see that it runs, then try again")
        self.why = why


class NoJava(EngineUnavailable):
    """Spark can't be started for want of a Java that it runs on."""

    def __init__(self, why: str) -> None:
        MvError.__init__(self, f"Spark is not available: {why}; install Java 17 or newer, or set JAVA_HOME")
        self.why = why


class EngineLost(EngineUnavailable):
    """Spark went away while it computed some buckets."""

    def __init__(self, view: str, buckets: Sequence[int], why: str) -> None:
        MvError.__init__(
            self, f"Spark went away while this was computed ({why}); if it does so again, give it more memory"
        )
        self.why = why
        self.view = view
        self.buckets = tuple(buckets)


class OutOfSpace(MvError):
    """Spark had no room for what it wrote; nothing is wrong with the data."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Spark has no space left to write ({why}); make room in the warehouse and where Spark keeps its "
            "temporary files (spark.local.dir), then it is tried again"
        )


class StillReading(MvError):
    """There is more to read than the time for it; what was read is remembered."""

    def __init__(self, table: str, files: int, of: int) -> None:
        super().__init__(f"reading table {table}: {files} of {of} new files so far; it goes on from there")


class NotValid(MvError):
    """A bucket that was to be read can't be trusted now."""

    def __init__(self, view: str, bucket: str, why: str, others: int) -> None:
        more = f" (and {others} more)" if others else ""
        super().__init__(
            f"bucket {bucket}{more} of view {view} can't be trusted now: {why}; read it once it is VALID"
        )


class NeverFilled(MvError):
    """A view that never had a row."""

    def __init__(self, view: str) -> None:
        super().__init__(f"view {view} has never had a row, so its types are not known yet; refresh it first")


class Unreadable(MvError):
    """Files that Spark could not read as the rows of one table."""


class JobFailed(MvError):
    """A Spark job ended with an error that has to do with what it computed.

    `everywhere` says that it lies in the query, so that a part of the work would fail as well.
    """

    def __init__(self, why: str, *, everywhere: bool = False) -> None:
        super().__init__(why)
        self.everywhere = everywhere


class ReadFailed(JobFailed):
    """A file can't be read, or not as what the others are."""


class FileInTheWay(ReadFailed):
    """A query reads a file that can't be read; other queries need not."""

    def __init__(
        self, why: str, table: str, span: tuple[str, str] | None, views: Sequence[str], *, timed: bool
    ) -> None:
        held = f"table {table} has no time, and is read as a whole"
        if timed:
            held = f"which time of table {table} it holds is not known, so that a query of any time reads it"
        ways = ["mend it or take it away"]
        if span is not None:
            held = f"it holds {span[0]} to {span[1]} of table {table}"
            ways.append("ask for a time without it")
        if views:
            ways.append(f"ask {' and '.join(views)} by name with freshness `stored`")
        super().__init__(f"{why}; {held}: {', or '.join(ways)}")


class NothingStored(MvError):
    """A view was asked for what is stored of it, which is nothing, or of another definition."""

    def __init__(self, view: str, *, of_another: bool) -> None:
        what = f"nothing of view {view} was ever computed"
        if of_another:
            what = f"what is stored of view {view} was computed with another definition than this project has"
        super().__init__(f"{what}; compute it first: `mv-assets refresh {view}`")


class WarehouseUnusable(MvError):
    """The folder of the views' data can't be written, read or cleaned."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the warehouse can't be used at {where}: {why}")


class Miscounted(MvError):
    """A generation does not hold the rows that the map says it does."""

    def __init__(self, view: str, generation: str, bucket: str, found: int, recorded: int) -> None:
        super().__init__(
            f"generation {generation} of view {view!r} holds {found} rows of bucket {bucket}, recorded are "
            f"{recorded}: it was not copied; find what else is damaged with `mv-assets audit {view} --all`"
        )


class Misplaced(JobFailed):
    """A computed row lies in none of the buckets that were computed."""

    def __init__(self, view: str, found: str) -> None:
        super().__init__(
            f"view {view!r} gave rows of {found}, outside of what it was computed for; "
            "its time column must place every row in the bucket of the base rows it comes from"
        )


class DemoRefused(Refused):
    """An event of the demo has nothing to happen to."""


class ProjectNotNamed(Refused):
    """Nobody named the project, and Dagster's processes could find another one each."""

    def __init__(self, file: str, home: str) -> None:
        super().__init__(
            f"no project was named, and there is {file}, but DAGSTER_HOME is {home}; name the one that is "
            "meant with MV_ASSETS_PROJECT, for all of Dagster's processes"
        )


class HomeUnwritable(MvError):
    """The folder of all that the embedded defaults write can't be written."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"nothing can be written to {where}: {why}; name another folder with MV_ASSETS_HOME")


class SettingRefused(Refused):
    """A variable of the environment has a value that can't be used."""

    def __init__(self, variable: str, value: str, what: str, instead: str) -> None:
        super().__init__(f"{variable} is {value!r}, {what}; {instead}")


class RunsUnreadable(MvError):
    """Dagster can't use the database that it keeps in our home; another version of it may have made that."""

    def __init__(self, home: str, why: str) -> None:
        super().__init__(
            f"Dagster can't use its database in {home} ({why}); bring it up to date with "
            f"`DAGSTER_HOME={home} dagster instance migrate`, or delete the folder, which forgets past runs"
        )


class HomeInUse(Refused):
    """Another `mv-assets dev` works on the same home, or what a killed one has left running."""

    def __init__(self, home: str, pids: Sequence[int]) -> None:
        stop = f" or with `kill -INT {' '.join(map(str, pids))}`" if pids else ""
        super().__init__(
            f"mv-assets dev already runs for {home}; stop it with Ctrl-C where it runs{stop}, "
            "or name another home with MV_ASSETS_HOME"
        )


class NoPort(Refused):
    """Every port that was tried is taken."""

    def __init__(self, first: int, last: int) -> None:
        taken = f"no free port from {first} to {last}" if last > first else f"port {first} is taken"
        super().__init__(f"{taken}; name another with --port")


class PortForbidden(Refused):
    """A port that only some users may have."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is not for this user to listen at; name one above 1023 with --port")


class QueryRefused(Refused):
    """A query that is not one SELECT over the project's tables and views."""


class SourceMoving(MvError):
    """Files changed under a query each time it was tried."""

    def __init__(self, table: str, file: str, attempts: int) -> None:
        super().__init__(
            f"file {printable(file)} of table {table} changed while the query read it, {attempts} times in a "
            "row; ask again when its writer has come to rest"
        )


class OutputUnwritable(MvError):
    """The file for an answer can't be written; what was there before still is."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file} can't be written: {why}; name another file with --output")
