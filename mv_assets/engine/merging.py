"""Rows of the same buckets, made of different files, put together as one query would have made them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from mv_assets.engine.files import quoted
from mv_assets.errors import JobFailed
from mv_assets.views.sql.canonical import NotPlain
from mv_assets.views.sql.merging import Merging
from mv_assets.views.sql.partials import Kind


def merged(stored: DataFrame, further: DataFrame, merging: Merging, *, floats: bool) -> DataFrame:
    """All rows of both; groups that are in both become one. With `floats`, sums of those are merged too.

    Raises:
        JobFailed: that would not give what a query over all files gives.

    """
    kinds = {part.name: part.dataType.simpleString() for part in further.schema}
    before = {part.name: part.dataType.simpleString() for part in stored.schema}
    if before != kinds:
        raise JobFailed("what is stored has other types than what came", everywhere=True)
    both = stored.select(*map(quoted, kinds)).unionAll(further)
    if not merging.groups:
        return both
    keys = [quoted(name) for name in kinds if name not in merging.aggregates]
    wholes = []
    for name, partial in merging.aggregates.items():
        kind = kinds[name]
        if partial.kind is Kind.SUM and kind == "double" and not floats:
            raise JobFailed(f"{name} is a sum of floating point", everywhere=True)
        try:
            wholes.append(sql.expr(partial.merged(quoted(name), kind)).alias(name))
        except NotPlain as why:
            raise JobFailed(str(why), everywhere=True) from why
    return both.groupBy(*keys).agg(*wholes).select(*map(quoted, kinds))
