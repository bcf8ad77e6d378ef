"""`python lookback_job.py SQL FOLDER CONF`: write a query's rows in place of the partitions they are of."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

sql, folder, conf = sys.argv[1:]
builder = SparkSession.builder.master("local[*]").config(
    "spark.sql.sources.partitionOverwriteMode", "dynamic"
)
for name, value in json.loads(conf).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.sql(sql).repartition("shipped")
rows.write.partitionBy("shipped").mode("overwrite").parquet(folder)
spark.stop()
