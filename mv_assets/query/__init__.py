"""A SELECT on a base table: the same answer, from buckets that can be trusted where there are any.

The way of a query: `api` or the command line asks `execute/answer`, which tries it up to three times. Each
try goes through three phases. `match` is pure: what a statement asks of one base table, and which columns
of a view answer that. `route` knows what is there now: `pinned` has the tables as they are listed and the
maps under leases, `eligibility` says which buckets may be used, `assignment` which view answers for which
time. `execute` makes one frame of it (`relations`, `composition`), and hands it out only once nothing that
was read had changed; what no view can answer it asks of the tables as written.

Whatever is held is a block: a session around all tries, in it the leases of each try, in those its names in
Spark. The rows of an answer are kept by Spark, and outlive them all.
"""
