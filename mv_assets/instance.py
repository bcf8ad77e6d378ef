"""What `dagster.yaml` names: Dagster's own instance, with all that it keeps beside that file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dagster import DagsterInstance

# Dagster asks a class that dagster.yaml names for its defaults in these types, and exports neither.
from mv_assets.dagster_internals import ConfigurableClassData, InstanceRef

SETTINGS = "dagster.yaml"


class BesideSettings(DagsterInstance):
    """Runs, schedules and logs are in `.mv_assets/dagster` beside the settings, wherever Dagster is started.

    A relative path in the settings themselves would start at the working directory of each process.
    """

    @classmethod
    def config_schema(cls) -> dict[str, object]:
        return {}

    @classmethod
    def config_defaults(cls, base_dir: str) -> Mapping[str, ConfigurableClassData | None]:
        given = Path(base_dir)
        # Without DAGSTER_HOME it is a folder that Dagster deletes at its end, and the settings are from here.
        folder = given if (given / SETTINGS).is_file() else Path.cwd()
        return InstanceRef.config_defaults(str(folder / ".mv_assets" / "dagster"))
