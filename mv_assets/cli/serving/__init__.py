"""What `mv-assets dev` keeps running: a warm Spark, Dagster, and the demo's feeder."""
