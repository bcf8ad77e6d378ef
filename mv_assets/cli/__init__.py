"""mv-assets: thin commands over the same calls that Dagster and Python users make."""

from mv_assets.cli.main import main

__all__ = ["main"]
