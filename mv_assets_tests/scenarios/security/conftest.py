from mv_assets_tests.unit.conftest import duckdb_lake_on_sqlite

__all__ = ["duckdb_lake_on_sqlite"]
