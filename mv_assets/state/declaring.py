"""What changes a view as a whole: declaring it, going back to an earlier definition, dropping it."""

from __future__ import annotations

from mv_assets.state import rules
from mv_assets.state.map_writer import MapWriter
from mv_assets.state.model import Declaration, Header, Mark, Operation, PartitionRow
from mv_assets.state.write import Log, changes, write_rows


def declare(tx: MapWriter, log: Log, view: Declaration) -> Header:
    """Create the view, let a new definition take over, or extend the coverage; else write nothing."""
    before = tx.header()
    if before is None:
        after = rules.start_view(view)
        tx.put_header(None, after)
        tx.put_definition(view.definition, view.width, after.version)
        tx.put_events([log.of_view(Operation.DECLARE, after.version, None)])
        return after
    taken = rules.declare(before, tx.history(), view)
    if taken is not None:
        tx.put_definition(view.definition, view.width, before.version + 1)
        return _put_in_force(tx, log, before, taken, Operation.TAKE_OVER)
    extended = rules.extend(before, view.start)
    if extended is None:
        return before
    below = brought_in(before, extended)
    after = write_rows(tx, log, before, extended, {}, below, Operation.EXTEND)
    if not below:
        tx.put_events([log.of_view(Operation.EXTEND, after.version, "coverage was extended")])
    return after


def adopt(tx: MapWriter, log: Log, definition: str) -> Header:
    before = tx.known_header()
    after = rules.adopt(before, tx.history(), definition)
    return before if after is None else _put_in_force(tx, log, before, after, Operation.ADOPT)


def drop(tx: MapWriter, log: Log, why: str | None) -> None:
    before = tx.known_header()
    tx.delete_rows()
    tx.mark_all_dead(before.version + 1)
    tx.put_look(None)
    tx.put_events([log.of_view(Operation.DROP, before.version + 1, why)])
    tx.put_header(before, rules.next_version(rules.drop(before)))


def brought_in(before: Header, after: Header) -> list[PartitionRow]:
    """Buckets that an earlier start brings in below W: STALE without data, not silently missing."""
    event = Mark("coverage was extended")
    uncovered = after.buckets.between(after.start, before.start)
    return list(changes({b: rules.mark(None, after, b, event) for b in uncovered}).values())


def _put_in_force(tx: MapWriter, log: Log, before: Header, after: Header, operation: Operation) -> Header:
    """Rows of the other definition count as STALE from now on; of another width they mean nothing.

    Rows that an adopted definition finds again were not looked at meanwhile: they are marked, and the
    next plan reverts those that still match.
    """
    rows: dict[int, PartitionRow] = {}
    if after.width != before.width:
        tx.delete_rows()
        tx.mark_all_dead(before.version + 1)
    elif operation is Operation.ADOPT:
        rows = {row.bucket: row for row in tx.rows_between()}
    event = Mark("its definition was adopted again")
    marked = changes({b: rules.mark(row, after, b, event) for b, row in rows.items()})
    tx.end_attempts(tx.attempts())
    tx.put_look(None)
    tx.put_events([log.of_view(operation, before.version + 1, f"definition {after.definition}")])
    return write_rows(tx, log, before, after, rows, marked.values())
