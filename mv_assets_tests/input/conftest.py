from __future__ import annotations

from mv_assets_tests.engine.conftest import works

__all__ = ["works"]
