"""`mv-assets dev`: Dagster, a warm Spark and the demo, started, watched and stopped together."""
