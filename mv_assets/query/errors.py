"""Why a query has no answer."""

from __future__ import annotations

from collections.abc import Sequence

from mv_assets.errors import MvError, Refused
from mv_assets.spark.errors import ReadFailed


class NotValid(MvError):
    """A bucket that was to be read can't be trusted now."""

    code = "not-valid"

    def __init__(self, view: str, bucket: str, why: str, others: int) -> None:
        more = f" (and {others} more)" if others else ""
        super().__init__(
            f"bucket {bucket}{more} of view {view} can't be trusted now: {why}; read it once it is VALID"
        )


class NeverFilled(MvError):
    """A view that never had a row."""

    code = "never-filled"

    def __init__(self, view: str) -> None:
        super().__init__(f"view {view} has never had a row, so its types are not known yet; refresh it first")


class FileInTheWay(ReadFailed):
    """A query reads a file that can't be read; other queries need not."""

    code = "file-in-the-way"

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

    code = "nothing-stored"

    def __init__(self, view: str, *, of_another: bool) -> None:
        what = f"nothing of view {view} was ever computed"
        if of_another:
            what = f"what is stored of view {view} was computed with another definition than this project has"
        super().__init__(f"{what}; compute it first: `mv-assets refresh {view}`")


class TooManyToCompute(MvError):
    """A view that is meant bucket by bucket lacks so many of them that a query can't compute them."""

    code = "too-many-to-compute"

    def __init__(self, view: str, count: int, most: int) -> None:
        super().__init__(
            f"the query asks for {count:,} buckets of view {view} that are not VALID, and at most {most:,} "
            f"are computed for one answer; run `mv-assets refresh {view}`, ask for less time, or with "
            "freshness `stored`"
        )


class OtherColumns(MvError):
    """Buckets of a view that can't be put together."""

    code = "other-columns"

    def __init__(self, view: str) -> None:
        super().__init__(
            f"some buckets of view {view} have other columns, or of other types, than others, so that no "
            "table can be made of them; have it give the same for every bucket"
        )


class QueryRefused(Refused):
    """A query that is not one SELECT over the project's tables and views."""

    code = "query-refused"


class SourceMoving(MvError):
    """Files changed under a query each time it was tried."""

    code = "source-moving"

    def __init__(self, table: str, file: str, attempts: int) -> None:
        super().__init__(
            f"file {file} of table {table} changed while the query read it, {attempts} times in a "
            "row; ask again when its writer has come to rest"
        )
