from __future__ import annotations

from mv_assets_tests.spark.conftest import works

__all__ = ["works"]
