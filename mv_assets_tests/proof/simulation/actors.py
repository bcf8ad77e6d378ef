"""What can happen next: every actor's next I/O point, and the things that happen to all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from mv_assets.errors import Refused
from mv_assets.publish.target import is_newer
from mv_assets.state import rules
from mv_assets.state.errors import Fenced, LeaseExpired, RowsMoved
from mv_assets.state.model import Attempt, Copied, Lease, Planned, Publication, SecondLook
from mv_assets_tests.proof.simulation import naive
from mv_assets_tests.proof.simulation.invariants import (
    check_outcomes,
    check_planned,
    check_remembered,
)
from mv_assets_tests.proof.simulation.world import (
    LIFETIME,
    VIEW,
    Actor,
    Base,
    Collector,
    Content,
    Data,
    Engine,
    Looker,
    Publisher,
    Reader,
    Shown,
    World,
    Writer,
    named,
)
from mv_assets_tests.support.memory_table import DAY, File

Steps = Iterator[tuple[str, World]]


def steps(world: World) -> Steps:
    """All states that can follow, each with a name for the trace."""
    for index, actor in enumerate(world.actors):
        if isinstance(actor, Writer):
            yield from writer_steps(world, index, actor)
        elif isinstance(actor, Looker):
            yield from looker_steps(world, index, actor)
        elif isinstance(actor, Collector):
            yield from collector_steps(world, index, actor)
        elif isinstance(actor, Publisher):
            yield from publisher_steps(world, index, actor)
        else:
            yield from reader_steps(world, index, actor)
    yield from base_changes(world)
    yield from people(world)
    yield from crashes(world)
    if world.budget.get("expire"):
        yield "time passes", world.evolve(clock=world.clock + LIFETIME, budget=world.spend("expire"))


def writer_steps(world: World, index: int, writer: Writer) -> Steps:
    """The writer's next I/O point."""
    follow = _WRITER.get(writer.at)
    if follow is not None:
        yield from ((f"writer {index} {label}", after) for label, after in follow(world, index, writer))


def _list(world: World, index: int, writer: Writer) -> Steps:
    if writer.runs:
        yield "lists", world.with_actor(index, replace(writer, at="listed", listed=world.base))


def _look_again(world: World, index: int, writer: Writer) -> Steps:
    yield "looks again", world.with_actor(index, replace(writer, at="looked", again=world.base))


def _declare(world: World, index: int, writer: Writer) -> Steps:
    engine = Engine(world)
    try:
        engine.manager.declare(world.view(writer.definition))
    except Fenced:
        yield "is fenced", world.with_actor(index, replace(writer, at="fenced"))
    else:
        yield "starts", world.with_actor(index, replace(writer, at="idle"), memory=engine.memory)


def _plan(world: World, index: int, writer: Writer) -> Steps:
    snapshot = world.memory.snapshot()
    header = snapshot.header
    if header.definition != writer.definition:
        yield "is fenced", world.with_actor(index, replace(writer, at="fenced"))
        return
    current_inputs = world.current_inputs(writer.listed, writer.definition)
    due = world.due(writer.listed, writer.definition)
    check_planned(world, writer.listed, due)
    if rules.Due.REVERT in due.values():
        yield "plans a revert", world.with_actor(index, replace(writer, at="reverting"))
    work = [b for b, d in due.items() if d in (rules.Due.APPEND, rules.Due.OVERWRITE, rules.Due.DELETE)]
    if not work:
        yield "plans nothing", world.with_actor(index, Writer(writer.definition, writer.runs))
        return
    planned = []
    for bucket in work:
        row, inputs = snapshot.rows.get(bucket), current_inputs[bucket].inputs
        assert inputs is not None
        planned.append(Planned(bucket, None if row is None else row.token, inputs))
    attempt = Attempt(f"{index}.{writer.runs}", header.version, tuple(planned))
    noted = tuple((p.bucket, p.token) for p in planned)
    after = replace(writer, at="planned", attempt=attempt, noted=noted)
    yield "plans", world.with_actor(index, after)


def _revert(world: World, index: int, writer: Writer) -> Steps:
    engine = Engine(world)
    try:
        current_inputs = world.current_inputs(writer.listed, writer.definition)
        engine.manager.revert(world.view(writer.definition), current_inputs)
    except Fenced:
        yield "is fenced", world.with_actor(index, replace(writer, at="fenced"))
    else:
        yield "reverts", world.with_actor(index, _idle(writer), memory=engine.memory)


def _register(world: World, index: int, writer: Writer) -> Steps:
    assert writer.attempt is not None
    engine, generation = Engine(world), writer.attempt.generation
    try:
        engine.manager.register(world.view(writer.definition), writer.attempt)
    except Fenced:
        yield "is fenced", world.with_actor(index, replace(writer, at="fenced"))
        return
    unread = tuple(sorted({name for b in writer.attempt.buckets for name in _listed(world, writer, b)}))
    after = replace(writer, at="reading", unread=unread, data=(), forced=world.forced)
    disk = world.disk | {generation: {}}
    yield "registers", world.with_actor(index, after, memory=engine.memory, disk=disk)


def _read(world: World, index: int, writer: Writer) -> Steps:
    name = writer.unread[0] if writer.unread else None
    file = dict(world.base.files).get(name) if name is not None else None
    if name is not None and file is None:
        yield f"misses {name}", world.with_actor(index, replace(writer, at="abandoning"))
    elif name is not None and file is not None:
        after = replace(writer, unread=writer.unread[1:], data=(*writer.data, (name, file.crc)))
        yield f"reads {name}", world.with_actor(index, after) if after.unread else _stage(world, index, after)
    else:
        yield "reads nothing", _stage(world, index, writer)
    if world.budget.get("fail"):
        yield "fails", _fail(world, index, writer)


def _stage(world: World, index: int, writer: Writer) -> World:
    assert writer.attempt is not None
    after, generation = replace(writer, at="staged"), writer.attempt.generation
    if generation not in world.disk:
        return world.with_actor(index, after, broken=world.broken | {generation})
    made = {bucket: _data(world, writer, bucket) for bucket in writer.attempt.buckets}
    return world.with_actor(index, after, disk=world.disk | {generation: made})


def commit(world: World, index: int, writer: Writer) -> Steps:
    assert writer.attempt is not None
    view, engine, seen = world.view(writer.definition), Engine(world), look_again(world, writer)
    staged = world.staged(writer.listed, writer.definition, writer.attempt.buckets)
    try:
        decisions = engine.manager.commit_once(view, writer.attempt, staged, seen, dict(writer.noted))
    except RowsMoved as moved:
        noted = tuple(moved.tokens.items())
        yield "finds its rows moved", world.with_actor(index, replace(writer, at="staged", noted=noted))
        return
    except Fenced:
        yield "is fenced", world.with_actor(index, replace(writer, at="abandoning", runs=1))
        return
    contents = dict(world.contents)
    for bucket, decision in decisions.items():
        if decision.row is not None and decision.row.content is not None:
            forced, looked = writer.forced[bucket // DAY], writer.again.writes
            content = Content(_data(world, writer, bucket), writer.definition, forced, looked)
            contents[bucket, decision.row.content] = content
    done = {"memory": engine.memory, "contents": contents}
    check_outcomes(world.evolve(**done), writer.again, seen, decisions, writer.attempt)
    yield "commits", settled(world.with_actor(index, _idle(writer), **done), writer, decisions)
    if world.budget.get("lost"):
        lost = world.with_actor(index, replace(writer, at="staged"), **done, budget=world.spend("lost"))
        yield "commits, unacknowledged", lost


def settled(world: World, writer: Writer, decisions: Mapping[int, rules.Decision]) -> World:  # noqa: ARG001
    """What a writer does with its files after a commit: nothing, they are gc's."""
    return world


def _fail(world: World, index: int, writer: Writer) -> World:
    """The first bucket can't be computed; the rest of the attempt goes on without it."""
    assert writer.attempt is not None
    engine, attempt = Engine(world), writer.attempt
    failed, *rest = attempt.work
    try:
        engine.manager.fail(world.view(writer.definition), attempt, {failed.bucket: "damaged"})
    except Fenced:
        rest = []
    noted = tuple((bucket, token) for bucket, token in writer.noted if bucket != failed.bucket)
    after = replace(writer, attempt=replace(attempt, work=tuple(rest)), noted=noted)
    if not rest:
        after = replace(writer, at="abandoning")
    return world.with_actor(index, after, memory=engine.memory, budget=world.spend("fail"))


def _abandon(world: World, index: int, writer: Writer) -> Steps:
    assert writer.attempt is not None
    engine = Engine(world)
    engine.manager.abandon(VIEW, writer.attempt)
    yield "abandons", world.with_actor(index, _idle(writer), memory=engine.memory)


def _try_commit(world: World, index: int, writer: Writer) -> Steps:
    return commit(world, index, writer)


_WRITER = {
    "down": _declare,
    "idle": _list,
    "listed": _plan,
    "reverting": _revert,
    "planned": _register,
    "reading": _read,
    "staged": _look_again,
    "looked": _try_commit,
    "abandoning": _abandon,
}


def looker_steps(world: World, index: int, looker: Looker) -> Steps:
    definition = world.memory.header.definition if world.memory.header else ""
    if looker.at == "idle" and looker.looks:
        yield "looker lists", world.with_actor(index, replace(looker, at="listed", listed=world.base))
    elif looker.at == "listed":
        if world.idle(looker.listed, definition, closes=looker.closes):
            after = Looker(looker.looks, looker.closes, last=looker.last)
            yield "looker finds all idle", world.with_actor(index, after)
            return
        look, found = world.look(looker.listed, definition, closes=looker.closes, last=looker.last)
        check_remembered(look, world.look(looker.listed, definition, closes=looker.closes)[0])
        after = replace(looker, at="marking", look=look, found=found)
        yield "looker compares", world.with_actor(index, after)
    elif looker.at == "marking":
        assert looker.look is not None
        engine = Engine(world)
        engine.manager.look(world.view(definition), looker.look)
        after = Looker(looker.looks - 1, looker.closes, last=looker.found)
        yield "looker marks", world.with_actor(index, after, memory=engine.memory)


def collector_steps(world: World, index: int, collector: Collector) -> Steps:
    if collector.at == "idle" and collector.rounds:
        engine = Engine(world)
        doomed = tuple(generation.id for generation in engine.registry.doom(VIEW))
        after = replace(collector, at="deleting", doomed=doomed, rounds=collector.rounds - 1)
        yield "gc dooms", world.with_actor(index, after, memory=engine.memory)
    elif collector.at == "deleting":
        if not collector.doomed:
            yield "gc ends", world.with_actor(index, replace(collector, at="idle"))
            return
        disk = {name: data for name, data in world.disk.items() if name != collector.doomed[0]}
        yield "gc deletes", world.with_actor(index, replace(collector, at="forgetting"), disk=disk)
    elif collector.at == "forgetting":
        engine = Engine(world)
        engine.registry.forget(VIEW, collector.doomed[0])
        after = replace(collector, at="deleting", doomed=collector.doomed[1:])
        yield "gc forgets", world.with_actor(index, after, memory=engine.memory)


def reader_steps(world: World, index: int, reader: Reader) -> Steps:
    if reader.at == "idle" and reader.reads:
        engine = Engine(world)
        lease = engine.leases.acquire(VIEW)
        memory = engine.memory
        memory.leases = {f"reader {index}": replace(lease, id=f"reader {index}")} | {
            name: held for name, held in memory.leases.items() if name != lease.id
        }
        after = replace(reader, at="leased", lease=f"reader {index}", reads=reader.reads - 1)
        yield "reader takes a lease", world.with_actor(index, after, memory=memory)
    elif reader.at == "leased":
        pinned = tuple(sorted({r.generation for r in world.memory.rows.values() if r.generation}))
        yield "reader reads the map", world.with_actor(index, replace(reader, at="reading", pinned=pinned))
    elif reader.at == "reading":
        engine = Engine(world)
        held = world.memory.leases.get(reader.lease)
        try:
            if held is not None:
                engine.leases.renew(held)
                engine.leases.release(held)
        except LeaseExpired:
            pass
        yield "reader ends", world.with_actor(index, Reader(reader.reads), memory=engine.memory)


TARGET = "table"


def publisher_steps(world: World, index: int, publisher: Publisher) -> Steps:
    """The publisher's next I/O point, on the map or on the target; each may be its last."""
    follow = _PUBLISHER.get(publisher.at)
    if follow is not None:
        yield from ((f"publisher {index} {label}", after) for label, after in follow(world, index, publisher))


def _pin(world: World, index: int, publisher: Publisher) -> Steps:
    if publisher.times:
        engine, name = Engine(world), f"publisher {index}"
        lease = engine.leases.acquire(VIEW)
        memory = engine.memory
        others = {key: held for key, held in memory.leases.items() if key not in (lease.id, name)}
        memory.leases = {name: replace(lease, id=name)} | others
        after = replace(publisher, at="leased", lease=name, times=publisher.times - 1)
        yield "takes a lease", world.with_actor(index, after, memory=memory)


def derived(world: World, publisher: Publisher) -> Shown:  # noqa: ARG001 - a mutant asks the lease
    """What is to be shown: the rows with current data, by the map at one version."""
    snapshot = world.memory.snapshot()
    rows = (
        (row.bucket, row.content or 0, row.generation)
        for row in snapshot.rows.values()
        if row.generation is not None and rules.has_current_data(row, snapshot.header)
    )
    return snapshot.header.version, tuple(sorted(rows))


def _derive(world: World, index: int, publisher: Publisher) -> Steps:
    after, header = replace(publisher, at="derived", wanted=derived(world, publisher)), world.memory.header
    version = 0 if header is None else header.version
    named = {**world.named, version: naive.shown(world)}
    yield "reads the map", world.with_actor(index, after, named=named)


def _ask(world: World, index: int, publisher: Publisher) -> Steps:
    seen = world.target[-1] if world.target else None
    yield "asks the table", world.with_actor(index, replace(publisher, at="asked", seen=seen))


def _retain(world: World, index: int, publisher: Publisher) -> Steps:
    assert publisher.wanted is not None
    engine, held = Engine(world), Lease(publisher.lease, VIEW, publisher.wanted[0], 0, "")
    try:
        engine.publications.retain(VIEW, TARGET, publisher.wanted[0], held)
    except LeaseExpired:
        # A lease is renewed by a thread of its own: who sleeps for that long is as good as dead.
        yield "has lost its lease", world.with_actor(index, Publisher(publisher.times))
        return
    yield "retains it", world.with_actor(index, replace(publisher, at="retained"), memory=engine.memory)


def show(world: World, index: int, publisher: Publisher) -> Steps:
    assert publisher.wanted is not None
    version, seen = publisher.wanted[0], publisher.seen
    if not is_newer(None if seen is None else seen[0], version):
        yield "finds it shown", world.with_actor(index, replace(publisher, at="shown"))
    elif (world.target[-1] if world.target else None) != seen:
        yield "loses the race", world.with_actor(index, replace(publisher, at="leased"))
    else:
        shown = (*world.target, publisher.wanted)
        yield "shows it", world.with_actor(index, replace(publisher, at="shown"), target=shown)


def _show(world: World, index: int, publisher: Publisher) -> Steps:
    yield from show(world, index, publisher)


def _record(world: World, index: int, publisher: Publisher) -> Steps:
    assert publisher.wanted is not None
    engine = Engine(world)
    found = Publication(VIEW, TARGET, 0, version=publisher.wanted[0])
    engine.publications.record(found)
    held = world.memory.leases.get(publisher.lease)
    if held is not None:
        engine.leases.release(held)
    yield "records it", world.with_actor(index, replace(publisher, at="recorded"), memory=engine.memory)


def _expire(world: World, index: int, publisher: Publisher) -> Steps:
    """The table forgets all but the newest."""
    after = replace(publisher, at="expired", seen=world.target[-1] if world.target else None)
    yield "lets old snapshots expire", world.with_actor(index, after, target=world.target[-1:])


def _give_up(world: World, index: int, publisher: Publisher) -> Steps:
    engine = Engine(world)
    if publisher.seen is not None:
        engine.publications.expire(VIEW, TARGET, publisher.seen[0])
    yield "gives up the rest", world.with_actor(index, Publisher(publisher.times), memory=engine.memory)


_PUBLISHER = {
    "idle": _pin,
    "leased": _derive,
    "derived": _ask,
    "asked": _retain,
    "retained": _show,
    "shown": _record,
    "recorded": _expire,
    "expired": _give_up,
}


def base_changes(world: World) -> Steps:
    """Files arrive, change in place, disappear and come back; so do a dimension and an upstream."""
    base = world.base
    if world.budget.get("change"):
        budget = world.spend("change")
        for name, file in base.files:
            changed = File(file.crc % 2 + 1, file.start, file.end, base.writes + 1)
            yield f"{name} is rewritten", world.evolve(base=base.put(name, changed), budget=budget)
            yield f"{name} is removed", world.evolve(base=base.without(name), budget=budget)
        for name, _ in base.removed:
            yield f"{name} is restored", world.evolve(base=base.restored(name), budget=budget)
        late, start, end = world.late
        if late not in dict(base.files) and late not in dict(base.removed):
            file = File(1, start, end, base.writes + 1)
            yield f"{late} arrives", world.evolve(base=base.put(late, file), budget=budget)
    if world.budget.get("compact"):
        for names in _together(base):
            after = world.evolve(base=base.compacted(*names), budget=world.spend("compact"))
            yield f"{' and '.join(names)} are compacted", after
    if world.budget.get("forget") and base.rewrites:
        told = replace(base, rewrites=())
        yield "the table tells of no rewrite any more", world.evolve(base=told, budget=world.spend("forget"))
    if world.budget.get("dimension"):
        changed_base = replace(base, dimension=base.dimension % 2 + 1, writes=base.writes + 1)
        yield "a dimension changes", world.evolve(base=changed_base, budget=world.spend("dimension"))
    if world.budget.get("upstream"):
        flipped = replace(base, waiting=base.waiting ^ {0}, writes=base.writes + 1)
        yield "an upstream bucket flips", world.evolve(base=flipped, budget=world.spend("upstream"))


def _together(base: Base) -> Iterator[tuple[str, ...]]:
    """Files that may be put into one: any two of a table."""
    names = [name for name, _ in base.files]
    for one, other in combinations(names, 2):
        if one.rpartition("/")[0] == other.rpartition("/")[0]:
            yield one, other


def people(world: World) -> Steps:
    header = world.memory.header
    if header is None:
        return
    view = world.view(header.definition)
    if world.budget.get("force"):
        for bucket in world.all_buckets():
            engine = Engine(world)
            engine.manager.force(view, [bucket], "a person")
            forced = tuple(n + (day == bucket // DAY) for day, n in enumerate(world.forced))
            after = world.evolve(memory=engine.memory, forced=forced, budget=world.spend("force"))
            yield f"a person forces {bucket // DAY}", after
    if world.budget.get("force view"):
        engine = Engine(world)
        engine.manager.force(view, None, "a person")
        forced = tuple(n + 1 for n in world.forced)
        after = world.evolve(memory=engine.memory, forced=forced, budget=world.spend("force view"))
        yield "a person forces the view", after
    if world.budget.get("drop"):
        engine = Engine(world)
        engine.manager.drop(VIEW)
        after = world.evolve(memory=engine.memory, budget=world.spend("drop"))
        yield "a person drops the view", after
    if world.budget.get("adopt"):
        for definition in sorted(world.memory.history):
            if definition != header.definition:
                engine = Engine(world)
                engine.manager.adopt(VIEW, definition)
                after = world.evolve(memory=engine.memory, budget=world.spend("adopt"))
                yield f"a person adopts {definition}", after
    if world.budget.get("repoint"):
        yield from _repoint(world)


def _repoint(world: World) -> Steps:
    """Compaction copied one generation into another some time ago; now it repoints the rows."""
    for copied, data in world.disk.items():
        if not data or copied in world.broken:
            continue
        engine, copy = Engine(world), f"copy of {copied}"
        header = world.memory.header
        assert header is not None
        if copy in world.memory.generations:
            try:
                engine.manager.repoint(VIEW, copy, dict.fromkeys(data, Copied(copied, 0)), ())
            except Refused:
                continue
            after = world.evolve(memory=engine.memory, budget=world.spend("repoint"))
            yield f"gc repoints {copied}", after
        elif any(row.generation == copied for row in world.memory.rows.values()):
            engine.manager.register(world.view(header.definition), Attempt(copy, header.version, ()))
            yield f"gc copies {copied}", world.evolve(memory=engine.memory, disk=world.disk | {copy: data})


def crashes(world: World) -> Steps:
    if not world.budget.get("crash"):
        return
    budget = world.spend("crash")
    for index, actor in enumerate(world.actors):
        if actor.at in ("idle", "fenced", "down"):
            continue
        if isinstance(actor, Writer):
            back = "down" if "declare" in world.budget else "idle"
            after: Actor = Writer(actor.definition, actor.runs - 1, back)
        elif isinstance(actor, Looker):
            after = Looker(actor.looks - 1, actor.closes)
        elif isinstance(actor, Collector):
            after = Collector(actor.rounds)
        elif isinstance(actor, Publisher):
            after = Publisher(actor.times)
        else:
            after = Reader(actor.reads)
        yield (
            f"crash of {type(actor).__name__.lower()} {index}",
            world.with_actor(index, after, budget=budget),
        )


def _idle(writer: Writer) -> Writer:
    return Writer(writer.definition, writer.runs - 1)


def _listed(world: World, writer: Writer, bucket: int) -> set[str]:
    found = world.segments(writer.listed, writer.definition, bucket)
    return {named(segment.source, segment.name) for segment in found}


def _data(world: World, writer: Writer, bucket: int) -> Data:
    """What was really read for a bucket, whatever had been listed."""
    wanted = _listed(world, writer, bucket)
    return tuple((name, crc) for name, crc in writer.data if name in wanted)


def look_again(world: World, writer: Writer) -> SecondLook:
    assert writer.attempt is not None
    return world.second_look(writer.listed, writer.again, writer.definition, writer.attempt)
