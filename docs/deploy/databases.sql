-- The state of mv_assets is in the database of its name; what Dagster keeps of runs and events is in one of its own.
CREATE DATABASE dagster OWNER mv_assets;
