"""Views as Delta tables: `target` commits and withdraws, `statistics` is what a log says of a file."""
