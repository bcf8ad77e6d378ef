"""Doing it: work is staged by Spark, looked at once more, and committed.

`refresher` goes round until there is nothing left to do; `two_steps` has chosen buckets staged by one and
committed by another, as in Dagster. `executor` carries a plan out: `staging` opens an `attempt`, `sources`
and `compute` have Spark write its generation into the `warehouse`, and the manager of the partition map
commits. `opened` is the project that all of them work on.
"""
