"""The Spark jobs that somebody would write who has no mv_assets, in a session that is set to nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from mv_assets_tests.benchmarks.tpch import PRICING


@dataclass(frozen=True)
class ByHand:
    """Writes the view's rows to a folder, in a partition a month."""

    spark: SparkSession
    lake: str
    place: str

    def everything(self) -> None:
        """Each month anew."""
        self._write(self._priced(self.lake))

    def month(self, month: str) -> None:
        """One month, as YYYY-MM, of which it is known that it changed, and in which files it is."""
        self._write(self._priced(f"{self.lake}/{month}-*.parquet"))

    def nowhere(self) -> None:
        """What computing alone costs."""
        self._priced(self.lake).write.format("noop").mode("overwrite").save()

    def _priced(self, files: str) -> DataFrame:
        self.spark.read.parquet(files).createOrReplaceTempView("lineitem")
        return self.spark.sql(PRICING)

    def _write(self, rows: DataFrame) -> None:
        months = rows.selectExpr("*", "date_format(l_shipdate, 'yyyy-MM') AS month")
        only_these = {"partitionOverwriteMode": "dynamic"}
        months.write.partitionBy("month").mode("overwrite").options(**only_these).parquet(self.place)
