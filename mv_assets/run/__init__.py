"""Doing it: work is staged by Spark, looked at once more, and committed.

Three ways lead in. `refresher` goes round until there is nothing left to do, as on the command line;
`two_steps` has chosen buckets staged by one and committed by another, as in Dagster; a sensor undoes false
alarms. All of them go through `executor`, which carries a plan out work by work: there it says what stops the
rest, what was not reached, and what is the view's trouble.

From there on it is one way. `staging` does one work: it opens an `attempt` for as many buckets as can be
together, has them parted where they fail, and commits what was written. `sources` holds what is read
while it is read, `compute` has Spark write it into the `warehouse`. What became of a bucket is a `result`;
`opened` is the project that all of them work on.
"""
