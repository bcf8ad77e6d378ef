"""Self-healing materialized views for the data lake, as Dagster assets computed by Spark."""
