"""Base tables: which segments they are made of, and what a bucket's segments amount to."""
