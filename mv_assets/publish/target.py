"""What a target must do: show a table's snapshots one after the other, and none that is older."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mv_assets.publish.contents import Contents


@dataclass(frozen=True, slots=True)
class Shown:
    """What a published table shows: the map's version and the table's own name for it; None for nothing.

    `foreign` says what somebody else has written into it since, `mark` whose publication it is. Tables of
    before say neither that nor their digest; nor do those whose log others have shortened.
    """

    version: int | None
    snapshot: str | None = None
    location: str | None = None
    digest: str | None = None
    foreign: str | None = None
    mark: str | None = None


def is_newer(shown: int | None, version: int) -> bool:
    """Whether a version of the map is to be shown in the place of another; versions only grow."""
    return shown is None or shown < version


class Target(Protocol):
    """A view at one target: the table of its rows, and that of its buckets."""

    # Which target and table it is, for the state.
    name: str

    @property
    def table(self) -> str:
        """The table's name for readers."""
        ...

    def shown(self) -> Shown | None:
        """What is there now; None if there is no table.

        Raises:
            NotPublished: that can't be told, or it is somebody else's table.

        """
        ...

    def commit(self, contents: Contents, at: int) -> Shown | None:
        """Show a map, in one step, in the place of what `shown` found; None if there is nothing to show.

        If our last commit shows that version already, it is shown again, whatever came after it.

        Raises:
            Lost: somebody else was there since.
            NotPublished: the target can't be written.

        """
        ...

    def commit_buckets(self, contents: Contents, at: int) -> None:
        """Show the map's buckets beside it; one that is older than what is there is passed over."""
        ...

    def expire(self, now: int) -> int | None:
        """Forget what nobody should read any more; the oldest version of the map that can still be read."""
        ...

    def withdraw(self) -> None:
        """Take both tables back, but no file of a view; what is not there is fine.

        Whoever is killed meanwhile has shown nothing that was not shown last.

        Raises:
            Lost: somebody else was there since.

        """
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...
