"""The model's invariants, as checks of one state, of one step, and of what follows from a state."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from mv_assets.state import rules
from mv_assets.state.model import (
    Attempt,
    Inputs,
    Look,
    Outcome,
    PartitionRow,
    Planned,
    SecondLook,
    State,
)
from mv_assets_tests.proof.simulation import naive
from mv_assets_tests.proof.simulation.world import LIFETIME, Base, Engine, Looker, Reader, World
from mv_assets_tests.support.memory_table import DAY


class Violation(Exception):
    """A state that the model forbids."""


def check_state(world: World) -> None:
    """Invariants 1, 2, 3, 6 and 9."""
    header = world.memory.header
    if header is None:
        return
    for row in world.memory.rows.values():
        if row.inputs is not None:
            _check_data(world, row, row.inputs)
    for actor in world.actors:
        if isinstance(actor, Reader) and actor.at == "reading" and _lives(world, actor):
            for generation in actor.pinned:
                _check_generation(world, generation, "a reader with a live lease")
    for bucket in world.all_buckets():
        found = world.memory.rows.get(bucket)
        held = None if found is None or found.inputs is None else found.inputs.definition
        if header.start <= bucket < header.watermark and held != header.definition:
            raise Violation(f"3: bucket {bucket // DAY} is below W and was not committed")
    _check_published(world)
    _check_rest(world)
    if header.closed is not None and world.clock < naive.closes_at(world, header.closed):
        raise Violation(f"3: bucket {header.closed // DAY - 1} was closed before its time")


def _check_published(world: World) -> None:
    """Invariant 9."""
    for before, after in pairwise(world.target):
        if after[0] <= before[0]:
            raise Violation(f"9: version {after[0]} is shown after version {before[0]}")
    for version, rows in world.target:
        if world.named.get(version) != rows:
            raise Violation(f"9: version {version} shows {rows}, the map named {world.named.get(version)}")
        for _, _, generation in rows:
            _check_generation(world, generation, f"the published version {version}")


def _check_rest(world: World) -> None:
    at = world.memory.snapshot().header.watermark
    if _passable(world, at):
        raise Violation(f"3: W stays at {at // DAY}, though that bucket is committed")


def _check_data(world: World, row: PartitionRow, inputs: Inputs) -> None:
    bucket, day = row.bucket, row.bucket // DAY
    assert row.content is not None
    content = world.contents.get((bucket, row.content))
    if content is None:
        raise Violation(f"1: bucket {day} names a commit that nobody made")
    recorded = naive.recorded(world, bucket)
    if (naive.fingerprints(world.windows, recorded), content.definition) != (
        inputs.windows,
        inputs.definition,
    ):
        raise Violation(f"1: bucket {day} holds {content}, its row records {inputs}")
    contents = dict(world.base.contents)
    held, told = (naive.rows(world.windows, each, bucket, contents) for each in (content.data, recorded))
    if held != told:
        raise Violation(f"1: bucket {day} holds the rows of {content}, and records {recorded}")
    if row.generation is not None:
        _check_generation(world, row.generation, f"bucket {day}")
        if world.disk[row.generation][bucket] != content.data:
            raise Violation(f"1: generation {row.generation} holds other rows of bucket {day}")
    if row.state is State.VALID and content.forced < world.forced[day]:
        raise Violation(f"6: bucket {day} is VALID with data read before the forced mark")


def _lives(world: World, reader: Reader) -> bool:
    lease = world.memory.leases.get(reader.lease)
    return lease is not None and lease.expires_at > world.clock


def _passable(world: World, bucket: int) -> bool:
    """Whether W may be above a bucket, said again in other words than the rule's."""
    header, row = world.memory.snapshot().header, world.memory.rows.get(bucket)
    end = header.source_end
    whole = end is not None and end >= bucket + DAY - 1
    closed = end is not None and bucket <= end and header.closed == bucket + DAY
    known = whole or closed
    return known and row is not None and row.inputs is not None and row.inputs.definition == header.definition


def _check_generation(world: World, generation: str, who: str) -> None:
    if generation not in world.disk or generation in world.broken:
        raise Violation(f"2: {who} needs generation {generation}, which is not on disk")


def check_step(before: World, after: World) -> None:
    """Invariants 3 (how W moves) and 8, and which rows may change how."""
    old, new = before.memory, after.memory
    if old is new or old.header is None or new.header is None:
        return
    steps = new.header.version - old.header.version
    changed = old.rows != new.rows or old.header != new.header
    if steps != int(changed):
        raise Violation(f"8: the version moved by {steps} where the map {'' if changed else 'un'}changed")
    returned = new.header.definition in old.history and new.header.definition != old.header.definition
    if returned and before.budget.get("adopt") == after.budget.get("adopt"):
        raise Violation("5: an earlier definition took over again, which the other one can do as well")
    same = old.header.definition == new.header.definition and old.header.reset_at == new.header.reset_at
    if same and new.header.watermark < old.header.watermark:
        raise Violation("3: W went back within a definition")
    if not all(_passable(after, b) for b in range(old.header.watermark, new.header.watermark, DAY)):
        raise Violation("3: W moved over a bucket that is not committed, or that the data does not reach")
    for row in old.rows.values():
        _check_transition(before, after, row)
        _check_order(before, after, row)


def _check_order(before: World, after: World, row: PartitionRow) -> None:
    """A row is replaced only on a look later than its own."""
    replaced = after.memory.rows.get(row.bucket)
    if replaced is None or row.content is None or replaced.content in (None, row.content):
        return
    new, old = after.contents[row.bucket, replaced.content], before.contents[row.bucket, row.content]
    if new.looked < old.looked:
        raise Violation(f"1: bucket {row.bucket // DAY} was replaced on a look older than its own")


def _check_transition(before: World, after: World, row: PartitionRow) -> None:
    """A VALID row that matches is made STALE by a person, or by a look that listed something else."""
    new = after.memory.rows.get(row.bucket)
    if new is None or new == row:
        return
    if row.state is State.VALID and new.state is State.STALE and new.content == row.content and new.inputs:
        differs = new.inputs != naive.inputs(after, after.base, new.inputs.definition, row.bucket)
        if not (differs or new.forced or _looked_at_other(before, row) or _adopted(before, after)):
            raise Violation(f"4: bucket {row.bucket // DAY} matched and was made STALE")


def _looked_at_other(before: World, row: PartitionRow) -> bool:
    """A look under way listed something else, and may mark what matches again by now."""
    looks = [actor.look for actor in before.actors if isinstance(actor, Looker)]
    return any(look is not None and row.bucket in look.marks for look in looks)


def _adopted(before: World, after: World) -> bool:
    return before.budget.get("adopt") != after.budget.get("adopt")


def check_remembered(look: Look, whole: Look) -> None:
    """A look that leaves out what an earlier one settled says all that one of every bucket would say."""
    if look != whole:
        raise Violation(f"4: a look that remembers says {look}, and a whole one {whole}")


def check_planned(world: World, listed: Base, due: Mapping[int, rules.Due]) -> None:
    """Nothing is computed before all that it waits for is there, nor again if its rows are the same."""
    for bucket, operation in due.items():
        if operation is rules.Due.APPEND and not naive.reached(world, listed, bucket):
            raise Violation(f"4: bucket {bucket // DAY} is planned, though a table does not reach its end")
        row = world.memory.rows.get(bucket)
        again = operation is rules.Due.OVERWRITE and row is not None and row.inputs is not None
        if again and world.only_compacted:
            raise Violation(f"4: bucket {bucket // DAY} is computed again, though all its rows are the same")
        idle = operation in (rules.Due.NOTHING, rules.Due.WAIT)
        if not idle and naive.pending(world, listed, bucket):
            raise Violation(f"4: bucket {bucket // DAY} is planned, though an upstream one is pending")


def check_outcomes(
    after: World, again: Base, seen: SecondLook, decisions: Mapping[int, rules.Decision], attempt: Attempt
) -> None:
    """Rows agree with what was there at the second look, and what is reported as done is there."""
    for planned in attempt.work:
        fresh = decisions[planned.bucket].row
        now = naive.inputs(after, again, planned.inputs.definition, planned.bucket)
        if fresh is not None and (fresh.state is State.VALID) != (fresh.inputs == now):
            raise Violation(f"1: bucket {planned.bucket // DAY} is {fresh.state} against its second look")
        if fresh is not None and seen.current_inputs[planned.bucket].missing:
            raise Violation(f"4: bucket {planned.bucket // DAY} was replaced while its files are missing")
        row, outcome = after.memory.rows.get(planned.bucket), decisions[planned.bucket].outcome
        done = outcome in (Outcome.COMMITTED, Outcome.REPLAY, Outcome.SUPERSEDED)
        held = None if row is None else row.inputs
        if done and held not in (planned.inputs, now):
            raise Violation(
                f"4: bucket {planned.bucket // DAY} was reported {outcome}, but nobody's data is there"
            )


def check_convergence(world: World) -> None:
    """Invariants 4 and 5: one look plus finishing its plan mends everything, a second one writes nothing."""
    if world.memory.header is None:
        return
    world = world.evolve(clock=world.clock + LIFETIME, contents={}, actors=())
    mended = _round(world)
    _check_matching(mended)
    _check_rest(mended)
    _check_end(mended)
    again = _round(mended)
    assert mended.memory.header is not None
    assert again.memory.header is not None
    if again.memory.header.version != mended.memory.header.version:
        raise Violation("5: a second round wrote though nothing had changed")


def _round(world: World) -> World:
    """A look, which may end early, and all the work that is due after it."""
    header = world.memory.header
    assert header is not None
    view, base = world.view(header.definition), world.base
    engine = Engine(world)
    if not world.idle(base, view.definition):
        engine.manager.look(view, world.look(base, view.definition)[0])
    world = world.evolve(memory=engine.memory)
    header, rows = world.memory.snapshot().header, world.memory.rows
    current_inputs = world.current_inputs(base, view.definition)
    due = world.due(base, view.definition)
    check_planned(world, base, due)
    engine.manager.revert(view, {b: current_inputs[b] for b, d in due.items() if d is rules.Due.REVERT})
    work = []
    for bucket, operation in due.items():
        inputs, row = current_inputs[bucket].inputs, rows.get(bucket)
        if operation in (rules.Due.APPEND, rules.Due.OVERWRITE, rules.Due.DELETE) and inputs is not None:
            work.append(Planned(bucket, None if row is None else row.token, inputs))
    if work:
        version = engine.memory.snapshot().header.version
        attempt = Attempt(f"mend {world.clock} {version}", version, tuple(work))
        engine.manager.register(view, attempt)
        staged = world.staged(base, view.definition, attempt.buckets)
        noted = {planned.bucket: planned.token for planned in work}
        seen = world.evolve(memory=engine.memory).second_look(base, base, view.definition, attempt)
        engine.manager.commit_once(view, attempt, staged, seen, noted)
    return world.evolve(memory=engine.memory)


def _check_end(world: World) -> None:
    """After a look at the tables as they are, W waits for the one of them that ends first."""
    known, expected = world.memory.snapshot().header.source_end, naive.known_end(world, world.base)
    if known != expected:
        raise Violation(f"3: the tables are taken to end at {known}, and end at {expected}")


def _check_matching(world: World) -> None:
    header, rows = world.memory.snapshot().header, world.memory.rows
    for bucket in world.all_buckets():
        row, day = rows.get(bucket), bucket // DAY
        frozen = row is not None and row.frozen and naive.missing(world, world.base, bucket)
        if frozen or naive.pending(world, world.base, bucket):
            continue
        state = rules.effective_state(row, header)
        now = naive.inputs(world, world.base, header.definition, bucket)
        if state is State.VALID and row is not None and row.inputs == now:
            continue
        if state is State.VACANT and not naive.reached(world, world.base, bucket):
            continue
        raise Violation(f"4: bucket {day} is {state} after a look and its plan: {row}")
