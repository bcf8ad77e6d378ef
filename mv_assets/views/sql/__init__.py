"""A view's SQL, analysed before anything runs: it is computed bucket by bucket, the same each time."""

from mv_assets.views.sql.analysis import ViewSql, analyse
from mv_assets.views.sql.merging import Merging
from mv_assets.views.sql.source import Source

__all__ = ["Merging", "Source", "ViewSql", "analyse"]
