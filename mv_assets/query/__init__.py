"""A SELECT on a base table: the same answer, from buckets that can be trusted where there are any.

A query goes through three phases. `match` is pure: what a statement asks of one base table, and which columns
of a view answer that. `route` knows what is there now: the tables and maps as one try of the query pins them,
which buckets are eligible, and which view is assigned which time. `execute` makes one frame of it, and hands
it out only once nothing that was read had changed; what no view can answer it asks of the tables as written.
"""
