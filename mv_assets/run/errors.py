"""What stops work on buckets."""

from __future__ import annotations

from collections.abc import Sequence

from mv_assets.errors import MvError
from mv_assets.spark.errors import EngineUnavailable, JobFailed


class EngineLost(EngineUnavailable):
    """Spark went away while it computed some buckets."""

    code = "engine-lost"

    def __init__(self, view: str, buckets: Sequence[int], why: str) -> None:
        MvError.__init__(
            self, f"Spark went away while this was computed ({why}); if it does so again, give it more memory"
        )
        self.why = why
        self.view = view
        self.buckets = tuple(buckets)


class WarehouseUnusable(MvError):
    """The folder of the views' data can't be written, read or cleaned."""

    code = "warehouse-unusable"

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"the warehouse can't be used at {where}: {why}")
        self.about = where


class Misplaced(JobFailed):
    """A computed row lies in none of the buckets that were computed."""

    code = "misplaced"

    def __init__(self, view: str, found: str | None) -> None:
        what = f"of {found}, outside of what it was computed for"
        right = "in the bucket of the base rows it comes from"
        if found is None:
            what, right = (
                "outside of every window of their bucket, or without a time",
                "in a window of its bucket",
            )
        super().__init__(f"view {view!r} gave rows {what}; its time column must place every row {right}")
