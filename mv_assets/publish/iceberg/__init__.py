"""Views as Iceberg tables.

`table` commits and withdraws, `snapshots` says which can still be read, `schemas` gives columns their ids,
`files` describes a file of the warehouse, `catalog` speaks to pyiceberg.
"""
