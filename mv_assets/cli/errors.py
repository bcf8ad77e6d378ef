"""What keeps `dev` from starting, and answers from being written."""

from __future__ import annotations

from collections.abc import Sequence

from mv_assets.errors import MvError, Refused


class RunsUnreadable(MvError):
    """Dagster can't use the database that it keeps in our home; another version of it may have made that."""

    code = "runs-unreadable"

    def __init__(self, home: str, why: str) -> None:
        super().__init__(
            f"Dagster can't use its database in {home} ({why}); bring it up to date with "
            f"`DAGSTER_HOME={home} dagster instance migrate`, or delete the folder, which forgets past runs"
        )


class HomeInUse(Refused):
    """Another `mv-assets dev` works on the same home, or what a killed one has left running."""

    code = "home-in-use"

    def __init__(self, home: str, pids: Sequence[int]) -> None:
        stop = f" or with `kill -INT {' '.join(map(str, pids))}`" if pids else ""
        super().__init__(
            f"mv-assets dev already runs for {home}; stop it with Ctrl-C where it runs{stop}, "
            "or name another home with MV_ASSETS_HOME"
        )


class NoPort(Refused):
    """Every port that was tried is taken."""

    code = "no-port"

    def __init__(self, first: int, last: int) -> None:
        taken = f"no free port from {first} to {last}" if last > first else f"port {first} is taken"
        super().__init__(f"{taken}; name another with --port")


class PortForbidden(Refused):
    """A port that only some users may have."""

    code = "port-forbidden"

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is not for this user to listen at; name one above 1023 with --port")


class OutputUnwritable(MvError):
    """The file for an answer can't be written; what was there before still is."""

    code = "output-unwritable"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(f"{file} can't be written: {why}; name another file with --output")
