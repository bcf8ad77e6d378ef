"""Views as Iceberg tables.

`table` commits and withdraws, `snapshots` says which can still be read, `schemas` gives columns their ids,
`settings` what else of a table is ours, `files` describes a file of the warehouse, `catalog` speaks to
pyiceberg.
"""
