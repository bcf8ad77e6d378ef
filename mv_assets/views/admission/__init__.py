"""Whether a view's SQL may be computed bucket by bucket, or every reason why not."""

from mv_assets.views.admission.analysis import ViewSql, analyse

__all__ = ["ViewSql", "analyse"]
