"""What workspace.yaml loads: the project that MV_ASSETS_PROJECT names, or the one that lies there."""

import os
import sys
from pathlib import Path

from dagster import Definitions, in_process_executor

from mv_assets.config.file import ACCEPTED
from mv_assets.defs import Deployment, definitions_of, interval_seconds_of
from mv_assets.demo import project_file
from mv_assets.views.catalog import load


def _tell(file: Path) -> None:
    sys.stderr.write(f"no project was named (MV_ASSETS_PROJECT): it is {file}\n")


_INTERVAL_S = interval_seconds_of(os.environ)
_ACCEPTED = os.environ.get(ACCEPTED)
_CATALOG = load(project_file(_tell), schemas=False, version=Path(_ACCEPTED) if _ACCEPTED else None)

defs = Definitions.merge(
    definitions_of(
        # `mv-assets dev` says which version it has accepted: it is to need no upkeep.
        Deployment(_CATALOG),
        interval_seconds=_INTERVAL_S,
        collects=bool(_ACCEPTED),
    ),
    # A process, and with local Spark a JVM, a run and not a step.
    Definitions(executor=in_process_executor),
)
