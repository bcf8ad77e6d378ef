"""End to end: real Dagster processes over a real lake, asked over GraphQL and looked at in a real browser."""
