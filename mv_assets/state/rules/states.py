"""What a row counts as, by the definition that is in force."""

from __future__ import annotations

from mv_assets.state.model import Header, PartitionRow, State


def effective_state(row: PartitionRow | None, header: Header) -> State:
    """The state that counts: data of another definition is STALE without being marked."""
    if row is None:
        return State.VACANT
    if row.inputs is not None and row.inputs.definition != header.definition:
        return State.STALE
    return row.state


def has_current_data(row: PartitionRow, header: Header) -> bool:
    """Whether the row has data of the current definition; STALE data counts, it was committed."""
    return row.inputs is not None and row.inputs.definition == header.definition
