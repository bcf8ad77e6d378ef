"""What compaction refuses to copy."""

from __future__ import annotations

from mv_assets.errors import MvError


class Miscounted(MvError):
    """A generation does not hold the rows that the map says it does."""

    code = "miscounted"

    def __init__(self, view: str, generation: str, bucket: str, found: int, recorded: int) -> None:
        super().__init__(
            f"generation {generation} of view {view!r} holds {found} rows of bucket {bucket}, recorded are "
            f"{recorded}: it was not copied; find what else is damaged with `mv-assets audit {view} --all`"
        )
