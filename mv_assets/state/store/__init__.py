"""The partition map in SQL.

`store` opens snapshots and transactions, in which a `MapReader` asks and a `MapWriter` writes, each with the
statements it runs; `schema` has the tables, `codec` the model's values as their rows. `database` and `retry`
are SQLite or PostgreSQL, whose errors are ours, and how often something is tried.
"""

from mv_assets.state.store.store import Store, open_state

__all__ = ["Store", "open_state"]
