"""Answers as people and programs read them: tables, CSV, JSON, Parquet, and what they were made from."""
