"""What the demo refuses."""

from __future__ import annotations

from mv_assets.errors import Refused


class DemoRefused(Refused):
    """An event of the demo has nothing to happen to."""

    code = "demo-refused"


class ProjectNotNamed(Refused):
    """Nobody named the project, and Dagster's processes could find another one each."""

    code = "project-not-named"

    def __init__(self, file: str, home: str) -> None:
        super().__init__(
            f"no project was named, and there is {file}, but DAGSTER_HOME is {home}; name the one that is "
            "meant with MV_ASSETS_PROJECT, for all of Dagster's processes"
        )
