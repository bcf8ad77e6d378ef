"""Data frames over exactly the files that were listed."""
