"""What workspace.yaml loads."""

from dagster import Definitions

defs = Definitions()
