"""Whether a view's SQL may be computed bucket by bucket, or every reason why not."""

from mv_assets.views.admission.analysis import Scope, ViewSql, analyse

__all__ = ["Scope", "ViewSql", "analyse"]
