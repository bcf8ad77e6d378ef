"""What Dagster would refuse, and with it the whole project. A copy: this layer is to work without it."""

from __future__ import annotations

import keyword
import re

# dagster._core.definitions.utils.DISALLOWED_NAMES
_OF_DAGSTER = frozenset(
    {
        *("context", "conf", "config", "meta", "type", "dict", "int", "str", "float", "bool"),
        *("input", "output", "arg_dict", "input_arg_dict", "output_arg_dict"),
    }
)
# Jobs and ops of `mv_assets.defs.jobs`; an asset is an op too.
_OF_JOBS = frozenset(
    {
        *("refresh_view", "drop_view", "audit_view", "collect_garbage"),
        *("mark_view", "adopt_view", "publish_view", "plan_view", "explain_bucket"),
        *("mv_assets_refresh", "mv_assets_drop", "mv_assets_audit", "mv_assets_collect", "mv_assets_mark"),
        *("mv_assets_adopt", "mv_assets_publish", "mv_assets_plan", "mv_assets_explain"),
    }
)
# The checks of `mv_assets.defs.checks`: that of a view is the op VIEW_CHECK.
CHECKS = ("no_stale_buckets", "no_failed_buckets", "fresh", "published", "matches_base")
NAMES = _OF_DAGSTER | _OF_JOBS | frozenset(keyword.kwlist)
# dagster._core.utils.is_valid_email
_EMAIL = re.compile(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z|a-z]{2,7}\b")
_TEAM = "team:"


def whose(name: str) -> str | None:
    """Who has the name already; None if it is free."""
    if name in _OF_JOBS:
        return "the name of a job or op of mv_assets in Dagster"
    return "a word that Dagster or Python keeps for itself" if name in NAMES else None


def is_owner(text: str) -> bool:
    return _EMAIL.fullmatch(text) is not None or (text.startswith(_TEAM) and len(text) > len(_TEAM))
