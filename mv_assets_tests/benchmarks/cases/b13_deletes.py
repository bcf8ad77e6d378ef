"""B13: line items of which every hundredth is deleted by its place, against the same files with none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from mv_assets.spark.read.readers import LakehouseReader, Reader
from mv_assets.tables.listing import Details, Listing, RowDeletes
from mv_assets.tables.types import types_in
from mv_assets_tests.benchmarks.figure import Figure, interleaved, ratio
from mv_assets_tests.benchmarks.line_items import SF
from mv_assets_tests.benchmarks.tpch import PRICING, months, warm

_WARM_UP, _ROUNDS, _EVERY = 2, 5, 100
_USED = ["l_shipdate", "l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax"]


def run() -> Sequence[Figure]:
    with months() as lake, warm() as engine, engine.session() as spark:
        files = {path.name: pq.read_metadata(path).num_rows for path in sorted(lake.glob("*.parquet"))}
        ways = {"deleted": list(files), "a tenth": list(files)[::10], "whole": list[str]()}
        readers = {way: _reader(spark, lake, files, partly) for way, partly in ways.items()}
        left = {way: _count(reader, list(files)) for way, reader in readers.items()}
        gone = {way: sum(-(-files[name] // _EVERY) for name in partly) for way, partly in ways.items()}
        assert all(left[way] == left["whole"] - gone[way] for way in ways), (left, gone)
        steps: dict[str, Callable[[], Callable[[], object]]] = {
            way: lambda reader=reader: partial(_priced, spark, reader, list(files))  # type: ignore[misc]
            for way, reader in readers.items()
        }
        interleaved(_WARM_UP, steps)
        samples = interleaved(_ROUNDS, steps)
    what = f"Q1 a day over {len(files)} files, SF {SF}, 1% of the rows deleted"
    return [
        ratio("B13", f"{what} / none", samples, "deleted", "whole", 1.5),
        ratio("B13", f"{what}, in a tenth of the files / none", samples, "a tenth", "whole"),
    ]


def _reader(spark: SparkSession, lake: Path, files: dict[str, int], partly: Sequence[str]) -> Reader:
    """A table that says which rows are deleted, as a vector does once it is decoded."""
    schema = types_in(pq.ParquetFile(lake / next(iter(files))))
    deletes = {name: RowDeletes(("",)) for name in partly}
    listing = Listing("lineitem", "", 0, schema=schema, details=Details(str(lake), deletes=deletes))

    def deleted(name: str) -> pa.Int64Array:
        return pa.array(range(0, files[name], _EVERY), pa.int64())

    return LakehouseReader(spark, listing, _USED, lambda name: pa.OSFile(str(lake / name)), deleted)


def _count(reader: Reader, names: Sequence[str]) -> int:
    return reader.frame(names, reader.schema(names)).count()


def _priced(spark: SparkSession, reader: Reader, names: Sequence[str]) -> None:
    reader.frame(names, reader.schema(names)).createOrReplaceTempView("lineitem")
    spark.sql(PRICING).write.format("noop").mode("overwrite").save()
