"""Wrong versions of the rules, each the mistake its name says, put in place of the right one for a test."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mv_assets.observe import consistency, remembered, rewrites
from mv_assets.observe.difference import difference
from mv_assets.observe.inputs import BucketInputs, Ending, Recorded, Trace, ViewInputs
from mv_assets.observe.second_look import SecondLooks
from mv_assets.state import change, model, rules
from mv_assets.state.model import (
    _SEAL,
    EMPTY,
    CurrentInputs,
    Declaration,
    Fingerprint,
    Follow,
    Generation,
    GenerationState,
    Header,
    Lease,
    LookRecord,
    Mark,
    Outcome,
    PartitionRow,
    Publication,
    SecondLook,
    Segment,
    Snapshot,
    State,
)
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.rules import commit, marks, watermark, work
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.tables import reach
from mv_assets.tables.listing import Listing, replaced
from mv_assets.views.view import Window
from mv_assets_tests.proof.simulation import actors
from mv_assets_tests.proof.simulation.memory import MemoryMap
from mv_assets_tests.proof.simulation.world import NOW, Publisher, Reader, Shown, World, Writer
from mv_assets_tests.support.memory_table import BASE

Mutant = Callable[[pytest.MonkeyPatch], None]
MUTANTS: dict[str, Mutant] = {}


def mutant(name: str) -> Callable[[Mutant], Mutant]:
    def add(function: Mutant) -> Mutant:
        MUTANTS[name] = function
        return function

    return add


def _everywhere(patch: pytest.MonkeyPatch, name: str, wrong: Callable[..., Any], *modules: Any) -> None:
    for module in (rules, *modules):
        patch.setattr(module, name, wrong)


@mutant("two-way writer classification")
def _two_way(patch: pytest.MonkeyPatch) -> None:
    """What is not mine must be a peer's: drop, and call it a success."""
    right = commit.decide

    def wrong(*args: Any, **options: Any) -> rules.Decision:
        decision = right(*args, **options)
        ours = decision.outcome is Outcome.COMMITTED_STALE
        return rules.Decision(Outcome.SUPERSEDED) if ours else decision

    _everywhere(patch, "decide", wrong)


@mutant("position-only drop below W")
def _position_only(patch: pytest.MonkeyPatch) -> None:
    right = commit.decide

    def wrong(
        row: Any, header: Header, attempt: Any, planned: Any, *args: Any, **options: Any
    ) -> rules.Decision:
        if planned.bucket < header.watermark:
            return rules.Decision(Outcome.SUPERSEDED)
        return right(row, header, attempt, planned, *args, **options)

    _everywhere(patch, "decide", wrong)


@mutant("last write wins")
def _last_write_wins(patch: pytest.MonkeyPatch) -> None:
    def wrong(
        row: Any, header: Any, attempt: Any, planned: Any, staged: Any, *_: Any, now: int, **__: Any
    ) -> rules.Decision:
        written = commit._with_data(row, header, attempt, planned, staged, up_to_date=True, now=now)
        return rules.Decision(Outcome.COMMITTED, None, written)

    _everywhere(patch, "decide", wrong)


@mutant("no look at commit")
def _no_look(patch: pytest.MonkeyPatch) -> None:
    right = actors.look_again

    def wrong(world: World, writer: Writer) -> SecondLook:
        return right(world, replace(writer, again=writer.listed))

    patch.setattr(actors, "look_again", wrong)


@mutant("look before the retry loop only")
def _one_look(patch: pytest.MonkeyPatch) -> None:
    right = actors.commit

    def wrong(world: World, index: int, writer: Writer) -> actors.Steps:
        for label, after in right(world, index, writer):
            moved = after.actors[index]
            if label == "finds its rows moved" and isinstance(moved, Writer):
                yield label, after.with_actor(index, replace(moved, at="looked"))
            else:
                yield label, after

    patch.setattr(actors, "commit", wrong)


@mutant("DELETE removes the row")
def _delete_removes(patch: pytest.MonkeyPatch) -> None:
    right = MemoryMap.put_rows

    def wrong(self: MemoryMap, before: Any, after: Iterable[PartitionRow], segments: Any = None) -> None:
        right(self, before, after := list(after), segments)
        for row in after:
            if row.inputs is not None and row.inputs.base == EMPTY and row.state is State.VALID:
                del self.memory.rows[row.bucket]

    patch.setattr(MemoryMap, "put_rows", wrong)


@mutant("REVERT compares the base fingerprint only")
def _base_only(patch: pytest.MonkeyPatch) -> None:
    right = marks.revert

    def wrong(row: PartitionRow | None, header: Header, current: CurrentInputs) -> PartitionRow | None:
        if row is not None and row.inputs is not None and current.inputs is not None:
            current = replace(current, inputs=replace(row.inputs, base=current.inputs.base))
        return right(row, header, current)

    _everywhere(patch, "revert", wrong, work)


@mutant("commit without identity check")
def _no_identity(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SecondLooks, "_changed", lambda *_: ())


@mutant("loser deletes its files")
def _loser_deletes(patch: pytest.MonkeyPatch) -> None:
    def wrong(world: World, writer: Writer, decisions: Mapping[int, rules.Decision]) -> World:
        assert writer.attempt is not None
        if any(decision.outcome.wrote for decision in decisions.values()):
            return world
        disk = {name: data for name, data in world.disk.items() if name != writer.attempt.generation}
        return world.evolve(disk=disk)

    patch.setattr(actors, "settled", wrong)


@mutant("gc without DOOMED")
def _no_doom(patch: pytest.MonkeyPatch) -> None:
    right = MemoryMap.doom

    def wrong(self: Registry, view: str) -> list[Generation]:
        """What would be doomed is returned for deletion, but nothing says so in the registry."""
        with self._store.write(view) as tx:
            assert isinstance(tx, MemoryMap)
            before = dict(tx.memory.generations)
            right(tx, tx.now() - self._lifetime_ms, tx.known_header().version)
            doomed = tx.generations(GenerationState.DOOMED)
            tx.memory.generations = before
            return doomed

    def forget(self: Registry, view: str, generation: str) -> None:
        with self._store.write(view) as tx:
            tx.forget_generation(generation)

    patch.setattr(Registry, "doom", wrong)
    patch.setattr(Registry, "forget", forget)


@mutant("forced mark cleared by an older attempt")
def _older_clears(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(marks, "overtaken", lambda *_: False)


@mutant("idle shortcut on the table version alone")
def _table_alone(patch: pytest.MonkeyPatch) -> None:
    def wrong(record: LookRecord | None, table_version: str, map_version: int, now: int) -> bool:  # noqa: ARG001
        return record is not None and record.table_version == table_version

    _everywhere(patch, "idle", wrong)


@mutant("header hash without history")
def _no_history(patch: pytest.MonkeyPatch) -> None:
    right = rules.declare

    def wrong(header: Header, history: Mapping[str, str], declaration: Declaration) -> Header | None:  # noqa: ARG001
        return right(header, {}, declaration)

    _everywhere(patch, "declare", wrong)
    patch.setattr(MemoryMap, "put_definition", lambda self, d, w, _: self.memory.history.update({d: w}))


@mutant("watermark by arrival order")
def _arrival_order(patch: pytest.MonkeyPatch) -> None:
    def wrong(header: Header, rows: Iterable[PartitionRow]) -> Header:
        after = [header.buckets.next(row.bucket) for row in rows if row.inputs is not None]
        return replace(header, watermark=max([header.watermark, *after]), seal=_SEAL)

    _everywhere(patch, "climb", wrong)


@mutant("watermark over a failed bucket")
def _over_failed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(watermark, "has_current_data", lambda _row, _header: True)


@mutant("watermark by wall clock")
def _wall_clock(patch: pytest.MonkeyPatch) -> None:
    right = watermark.climb

    def wrong(header: Header, rows: Iterable[PartitionRow]) -> Header:
        ahead = replace(header, source_end=10**15, seal=_SEAL)
        return replace(right(ahead, rows), source_end=header.source_end, seal=_SEAL)

    _everywhere(patch, "climb", wrong)


@mutant("closes lets W run beyond the data")
def _closed_for_good(patch: pytest.MonkeyPatch) -> None:
    right = watermark.cap
    _everywhere(patch, "cap", lambda header: right(header) if header.closed is None else 10**15, watermark)


@mutant("closed before its time")
def _closed_early(patch: pytest.MonkeyPatch) -> None:
    right = watermark.closed
    _everywhere(patch, "closed", lambda buckets, end, closes, _now: right(buckets, end, closes, 10**15))


@mutant("idle shortcut that asks no clock")
def _no_clock(patch: pytest.MonkeyPatch) -> None:
    _everywhere(patch, "closes_now", lambda _header, _closes, _now: False)


@mutant("W and rows in two transactions")
def _two_transactions(patch: pytest.MonkeyPatch) -> None:
    """The rows' transaction leaves W for a second one, which a crash in between prevents."""
    right = change.write

    def wrong(tx: MapWriter, written: change.Change, *args: Any) -> change.Change:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(rules, "climb", lambda header, _rows: header)
            return right(tx, written, *args)

    patch.setattr("mv_assets.state.manager.write", wrong)


@mutant("list then lease")
def _list_then_lease(patch: pytest.MonkeyPatch) -> None:
    right = actors.reader_steps

    def wrong(world: World, index: int, reader: Reader) -> actors.Steps:
        if reader.at == "idle" and reader.reads:
            pinned = tuple(sorted({r.generation for r in world.memory.rows.values() if r.generation}))
            yield "reader reads the map", world.with_actor(index, replace(reader, at="listed", pinned=pinned))
        elif reader.at == "listed":
            [(_, leased)] = right(world, index, replace(reader, at="idle"))
            after = leased.actors[index]
            assert isinstance(after, Reader)
            yield (
                "reader takes a lease",
                leased.with_actor(index, replace(after, at="reading", pinned=reader.pinned)),
            )
        else:
            yield from right(world, index, reader)

    patch.setattr(actors, "reader_steps", wrong)


@mutant("exclusive end in overlap")
def _exclusive_end(patch: pytest.MonkeyPatch) -> None:
    right = reach.sweep

    def wrong(listing: Listing, *args: Any) -> Iterator[reach.Reach]:
        return right(replace(listing, ends=array("q", (end - 1 for end in listing.ends))), *args)

    patch.setattr(reach, "sweep", wrong)


@mutant("EMPTY = (0, 0)")
def _zero_empty(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(model, "EMPTY", Fingerprint(0, 0))


@mutant("forced mark reverted")
def _forced_reverted(patch: pytest.MonkeyPatch) -> None:
    right = marks.revert

    def wrong(row: PartitionRow | None, header: Header, current: CurrentInputs) -> PartitionRow | None:
        return right(row and replace(row, forced=False, seal=_SEAL), header, current)

    _everywhere(patch, "revert", wrong, work)


@mutant("VALID whatever the second look saw")
def _always_valid(patch: pytest.MonkeyPatch) -> None:
    right = commit._with_data
    patch.setattr(commit, "_with_data", lambda *args, now, **_: right(*args, up_to_date=True, now=now))


@mutant("dimensions ignored at commit")
def _no_dimensions(patch: pytest.MonkeyPatch) -> None:
    right = commit.decide

    def wrong(
        row: Any,
        header: Any,
        attempt: Any,
        planned: Any,
        staged: Any,
        current: CurrentInputs,
        *args: Any,
        **options: Any,
    ) -> rules.Decision:
        if current.inputs is not None:
            current = replace(current, inputs=replace(current.inputs, dimensions=planned.inputs.dimensions))
        return right(row, header, attempt, planned, staged, current, *args, **options)

    _everywhere(patch, "decide", wrong)


@mutant("FAIL makes VALID STALE")
def _fail_spoils(patch: pytest.MonkeyPatch) -> None:
    right = marks.fail

    def wrong(row: PartitionRow | None, *args: Any) -> PartitionRow | None:
        return right(row and replace(row, state=State.STALE, seal=_SEAL), *args)

    _everywhere(patch, "fail", wrong)


@mutant("frozen bucket replaced at commit")
def _thawed(patch: pytest.MonkeyPatch) -> None:
    right = commit.decide

    def wrong(
        row: Any,
        header: Any,
        attempt: Any,
        planned: Any,
        staged: Any,
        current: CurrentInputs,
        *args: Any,
        **options: Any,
    ) -> rules.Decision:
        return right(row, header, attempt, planned, staged, replace(current, missing=()), *args, **options)

    _everywhere(patch, "decide", wrong)


def _overlaps(segment: Segment, bucket: int, end: int) -> bool:
    return segment.start_ms < end and segment.end_ms >= bucket


@mutant("followed without comparing")
def _follows_anything(patch: pytest.MonkeyPatch) -> None:
    """Whatever a rewrite reaches into is taken to have only been rewritten."""
    right = consistency._follows

    def wrong(
        snapshot: Snapshot, inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Recorded
    ) -> Iterator[tuple[int, Follow]]:
        for each in found:
            row, now = snapshot.rows.get(each.bucket), each.current.inputs
            if inputs.rewritten and row is not None and row.inputs is not None and now is not None:
                yield each.bucket, Follow(row.inputs, now, tuple(inputs.segments(each)), "", matches=True)
        yield from right(snapshot, inputs, (), recorded)

    patch.setattr(consistency, "_follows", wrong)


@mutant("forced mark followed")
def _forced_followed(patch: pytest.MonkeyPatch) -> None:
    right = marks.follow

    def wrong(row: PartitionRow | None, header: Header, event: Follow) -> PartitionRow | None:
        return right(row and replace(row, forced=False, seal=_SEAL), header, event)

    _everywhere(patch, "follow", wrong)
    _everywhere(patch, "may_follow", lambda row, _header: row is not None and row.inputs is not None)


@mutant("remembered, whatever files changed")
def _no_file_changed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewInputs, "changed_since", lambda *_: set())


@mutant("remembered, whatever dimensions changed")
def _no_dimension_changed(patch: pytest.MonkeyPatch) -> None:
    right = ViewInputs.changed_since

    def wrong(self: ViewInputs, before: Trace, first: int, end: int) -> set[int] | None:
        return right(self, before, first, end) or set()

    patch.setattr(ViewInputs, "changed_since", wrong)


@mutant("remembered, whatever others wrote")
def _nobody_wrote(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remembered, "_moved", lambda _before, _now: [])


@mutant("remembered, what waits")
def _all_settled(patch: pytest.MonkeyPatch) -> None:
    """What a look has compared is settled, whatever it found."""
    patch.setattr(remembered, "still_open", lambda _snapshot, _seen: frozenset())


@mutant("remembered, without windows")
def _own_time_only(patch: pytest.MonkeyPatch) -> None:
    """A file that changed is looked for in the buckets of its own time."""
    right = ViewInputs._reached_by

    def wrong(self: ViewInputs, span: tuple[int, int], window: Window, *bounds: int) -> Iterator[int]:
        return right(self, span, Window(window.table), *bounds)

    patch.setattr(ViewInputs, "_reached_by", wrong)


@mutant("rewrite of files that changed since")
def _rewritten_by_name(patch: pytest.MonkeyPatch) -> None:
    """Files are told by their names alone."""
    patch.setattr(rewrites, "_among", lambda some, files: some.keys() <= files.keys())


@mutant("rewrite of which a part was read")
def _half_rewritten(patch: pytest.MonkeyPatch) -> None:
    """That one of its files was recorded is enough."""
    right = rewrites.followed

    def wrong(recorded: Iterable[Segment], now: Any, steps: Sequence[rewrites.Step]) -> rewrites.Files:
        known = {segment.name: segment for segment in recorded}
        cut = [
            rewrites.Step({name: file for name, file in removed.items() if name in known}, added)
            for removed, added in steps
        ]
        return right(known.values(), now, cut)

    patch.setattr(rewrites, "followed", wrong)


@mutant("rewritten files taken for gone")
def _rewritten_gone(patch: pytest.MonkeyPatch) -> None:
    right = rewrites.missing
    patch.setattr(rewrites, "missing", lambda names, listed, _steps: right(names, listed, ()))


@mutant("window ignored when marking")
def _marks_without_window(patch: pytest.MonkeyPatch) -> None:
    """A file that came, changed or went marks the buckets that it overlaps, and no others."""
    right = consistency._marks

    def wrong(
        snapshot: Snapshot, inputs: ViewInputs, found: Sequence[BucketInputs], recorded: Recorded
    ) -> Iterator[tuple[int, Mark]]:
        now = {each.bucket: inputs.segments(each) for each in found}
        for bucket, mark in right(snapshot, inputs, found, recorded):
            change = difference(recorded.get(bucket, ()), now[bucket])
            end = snapshot.header.buckets.next(bucket)
            if any(_overlaps(s, bucket, end) for s in (*change.added, *change.changed, *change.removed)):
                yield bucket, mark

    patch.setattr(consistency, "_marks", wrong)


@mutant("window ignored in the second look")
def _second_look_without_window(patch: pytest.MonkeyPatch) -> None:
    """Whether files are still those that were read is asked of the bucket's own time only."""
    segments, changed = ViewInputs.segments, SecondLooks._changed

    def own(self: ViewInputs, seen: BucketInputs) -> list[Segment]:
        end = self.view.buckets.next(seen.bucket)
        return [each for each in segments(self, seen) if _overlaps(each, seen.bucket, end)]

    def wrong(self: SecondLooks, *args: Any) -> list[tuple[int, str]]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(ViewInputs, "segments", own)
            return list(changed(self, *args))

    patch.setattr(SecondLooks, "_changed", wrong)


@mutant("second look at the base alone")
def _second_look_at_base(patch: pytest.MonkeyPatch) -> None:
    def wrong(before: Listing, now: Listing) -> set[str]:
        return replaced(before, now) if before.table == BASE else set()

    patch.setattr("mv_assets.observe.second_look.replaced", wrong)


@mutant("second source not in the inputs")
def _no_further(patch: pytest.MonkeyPatch) -> None:
    right = ViewInputs.over

    def wrong(self: ViewInputs, first: int, end: int) -> Iterator[BucketInputs]:
        for each in right(self, first, end):
            inputs = each.current.inputs and replace(each.current.inputs, further=())
            yield replace(each, current=replace(each.current, inputs=inputs))

    patch.setattr(ViewInputs, "over", wrong)


@mutant("W capped by the base alone")
def _base_caps(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: ViewInputs, now: int) -> Ending:
        end = reach.source_end(self.base, now)
        return Ending(end, None, self.base.table, end)

    patch.setattr(ViewInputs, "ending", wrong)


@mutant("W capped by the data, not by the window's end")
def _cap_without_window(patch: pytest.MonkeyPatch) -> None:
    right = ViewInputs._end

    def wrong(self: ViewInputs, window: Window, *args: Any) -> Any:
        return right(self, replace(window, after=0), *args)

    patch.setattr(ViewInputs, "_end", wrong)


@mutant("W waits for a table that is not waited for")
def _all_wait(patch: pytest.MonkeyPatch) -> None:
    right = ViewInputs.ending

    def wrong(self: ViewInputs, now: int) -> Ending:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self, "_windows", tuple(replace(each, waits=True) for each in self._windows))
            return right(self, now)

    patch.setattr(ViewInputs, "ending", wrong)


@mutant("publish before commit")
def _published_early(patch: pytest.MonkeyPatch) -> None:
    """What is staged is shown with the rest."""
    right = actors.derived

    def wrong(world: World, publisher: Publisher) -> Shown:
        version, rows = right(world, publisher)
        staged = [name for name, made in world.disk.items() if made and name not in {r[2] for r in rows}]
        early = {b: (b, version + 1, name) for name in staged for b in world.disk[name]}
        return version, tuple(sorted(({row[0]: row for row in rows} | early).values()))

    patch.setattr(actors, "derived", wrong)


@mutant("publish what is newer than the pinned version")
def _published_newer(patch: pytest.MonkeyPatch) -> None:
    """The version is the lease's, the rows are those of later."""
    right = actors.derived

    def wrong(world: World, publisher: Publisher) -> Shown:
        _, rows = right(world, publisher)
        lease = world.memory.leases.get(publisher.lease)
        return 0 if lease is None else lease.version, rows

    patch.setattr(actors, "derived", wrong)


@mutant("a bucket left out")
def _published_less(patch: pytest.MonkeyPatch) -> None:
    right = actors.derived

    def wrong(world: World, publisher: Publisher) -> Shown:
        version, rows = right(world, publisher)
        return version, rows[1:]

    patch.setattr(actors, "derived", wrong)


@mutant("published version going back")
def _published_back(patch: pytest.MonkeyPatch) -> None:
    """Who lost the race shows what it had, on top of what won."""
    right = actors.show

    def wrong(world: World, index: int, publisher: Publisher) -> actors.Steps:
        for label, after in right(world, index, publisher):
            if label == "loses the race":
                assert publisher.wanted is not None
                shown = replace(publisher, at="shown")
                yield "shows it", world.with_actor(index, shown, target=(*world.target, publisher.wanted))
            else:
                yield label, after

    patch.setattr(actors, "show", wrong)


@mutant("gc that does not ask the publication")
def _gc_does_not_ask(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryMap, "publications", lambda _self: [])


@mutant("retained after it is shown")
def _retained_late(patch: pytest.MonkeyPatch) -> None:
    """The files of a snapshot are kept from when it is recorded."""

    def wrong(_self: Publications, view: str, target: str, version: int, _lease: Lease) -> Publication:
        return Publication(view, target, version)

    patch.setattr(Publications, "retain", wrong)


@mutant("retained without a lease")
def _retained_without_a_lease(patch: pytest.MonkeyPatch) -> None:
    """A publisher that slept shows what gc has taken meanwhile."""
    right = Publications.retain

    def wrong(self: Publications, view: str, target: str, version: int, lease: Lease) -> Publication:
        with patch.context() as asleep:
            asleep.setattr(MemoryMap, "leases", lambda _self: [replace(lease, expires_at=NOW + 10**12)])
            return right(self, view, target, version, lease)

    patch.setattr(Publications, "retain", wrong)
