"""What the generated queries leave to nobody's guess."""

from __future__ import annotations

import random

from sqlglot import exp, parse_one

from mv_assets_tests.proof.fuzz.sql.queries import query
from mv_assets_tests.proof.fuzz.world import FIRST_DAYS


def test_no_alias_is_the_name_of_two_columns() -> None:
    """Sorted by it, Spark would take another column than the one that is held against DuckDB's."""
    pick = random.Random(52)
    for _ in range(600):
        text = query(pick, FIRST_DAYS[0], named=[]).spark
        for select in parse_one(text, dialect="spark").find_all(exp.Select):
            names = [item.alias_or_name.lower() for item in select.expressions]
            aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
            assert all(names.count(alias) == 1 for alias in aliases), text
