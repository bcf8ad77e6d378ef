"""From what changed to what is done about it: looks, marks, plans, refreshes, audits, garbage.

The way of a late file: `refresher` goes round until there is nothing left to do, or `two_steps` has chosen
buckets staged by one and committed by another. In each round `watch` lists the tables, `sights` says what the
inputs of every bucket are now, `consistency` marks those that no longer match, and `planner` makes work of
them. `executor` has it carried out: `staging` opens an `attempt`, `sources` and `computing` have Spark write
its generation, `second_look` looks once more, and the manager of the partition map commits. `opened` is the
project that all of them work on.

Four levels stage and commit: `TwoStepRefresh` the buckets of a Dagster run, `Staging` one work of a plan,
`OpenAttempt` one generation, `PartitionManager` one transaction. A run is told buckets only: it looks and
plans again.
"""
