from mv_assets_tests.refresh.conftest import plain_yard

__all__ = ["plain_yard"]
