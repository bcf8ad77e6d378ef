"""The state machine: pure functions from (row, header, event) to a new row or a typed refusal.

Production, the exhaustive checker and the simulation run these same functions.
"""

from mv_assets.state.rules.commit import Decision, decide
from mv_assets.state.rules.definitions import (
    adopt,
    declare,
    drop,
    extend,
    in_force,
    reset,
    see_source,
    start_view,
    written,
)
from mv_assets.state.rules.looks import idle, unserved
from mv_assets.state.rules.marks import compare, fail, force, mark, repoint, revert
from mv_assets.state.rules.states import committed, effective_state
from mv_assets.state.rules.watermark import climb, latest_end
from mv_assets.state.rules.work import (
    ALIKE_MS,
    Due,
    Standing,
    abandoned,
    attempted,
    due,
    failed,
    retry_delay,
    standing,
)

__all__ = [
    "ALIKE_MS",
    "Decision",
    "Due",
    "Standing",
    "abandoned",
    "adopt",
    "attempted",
    "climb",
    "committed",
    "compare",
    "decide",
    "declare",
    "drop",
    "due",
    "effective_state",
    "extend",
    "fail",
    "failed",
    "force",
    "idle",
    "in_force",
    "latest_end",
    "mark",
    "repoint",
    "reset",
    "retry_delay",
    "revert",
    "see_source",
    "standing",
    "start_view",
    "unserved",
    "written",
]
