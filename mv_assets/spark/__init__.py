"""Spark: its sessions, and data frames over exactly the files that were listed."""
