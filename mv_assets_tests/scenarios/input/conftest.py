from __future__ import annotations

from mv_assets_tests.unit.spark.conftest import unchecked_lake

__all__ = ["unchecked_lake"]
