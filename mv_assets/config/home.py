"""Where things are that nobody gave a place: one folder, wherever a process is started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import yaml

_INSTANCE = "mv_assets.instance"


def home() -> str:
    """The folder of all that the embedded defaults write."""
    return os.environ.get("MV_ASSETS_HOME") or str(folder() / ".mv_assets")


def folder() -> Path:
    """The folder of a project that nobody named.

    That is DAGSTER_HOME if the settings there keep Dagster's runs beside them, as those of the checkout do:
    its processes may be started anywhere, and are to find one project. Else the working directory.
    """
    given = os.environ.get("DAGSTER_HOME")
    if given:
        with suppress(RuntimeError):
            # Dagster knows ~ as well.
            named = Path(given).expanduser()
            if _keeps_beside(named / "dagster.yaml"):
                return named
    return Path.cwd()


def _keeps_beside(settings: Path) -> bool:
    try:
        found = yaml.safe_load(settings.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False
    instance = found.get("instance_class") if isinstance(found, dict) else None
    return isinstance(instance, dict) and instance.get("module") == _INSTANCE
