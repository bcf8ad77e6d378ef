"""What workspace.yaml loads: the project that MV_ASSETS_PROJECT names, or the built-in demo."""

import os

from dagster import Definitions, in_process_executor

from mv_assets.defs import Deployment, definitions_of, interval_seconds_of
from mv_assets.demo import project_file
from mv_assets.views.catalog import load

_INTERVAL_S = interval_seconds_of(os.environ)

defs = Definitions.merge(
    definitions_of(Deployment(load(project_file(), schemas=False)), interval_seconds=_INTERVAL_S),
    # A process, and with local Spark a JVM, a run and not a step.
    Definitions(executor=in_process_executor),
)
