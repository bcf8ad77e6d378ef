"""A view's SQL, analysed before anything runs: it is computed bucket by bucket, the same each time."""

from mv_assets.views.sql.analysis import ViewSql, analyse
from mv_assets.views.sql.source import Source

__all__ = ["Source", "ViewSql", "analyse"]
