"""The one writer of partition maps: one method an operation, each a single version step of the header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from mv_assets.errors import RowsMoved
from mv_assets.state import declaring, rules
from mv_assets.state.map_writer import MapWriter
from mv_assets.state.model import (
    Attempt,
    Copied,
    CurrentInputs,
    DataFile,
    Declaration,
    Generation,
    GenerationState,
    Header,
    Look,
    Mark,
    Operation,
    PartitionRow,
    SecondLook,
    Staged,
)
from mv_assets.state.retry import Profile, Retry
from mv_assets.state.store import Store
from mv_assets.state.write import Log, NamedGeneration, beat, changes, claim, own, uncollected, write_rows

T = TypeVar("T")
Clock = Callable[[], int]


class PartitionManager:
    """Changes partition maps, and nobody else does.

    Every method locks the view's header, decides on what it finds there, and writes rows, log, watermark
    and version in that one short transaction, or writes nothing: one version step at most. Attempts,
    generations and the record of a look stand beside the rows and take no version. Conflicts and transport
    errors are tried again; refusals (`mv_assets.errors.Refused`) are raised at once.

    All times in the map are of its `clock`: for maps that deployments share a `SharedClock`.
    """

    def __init__(
        self, store: Store, *, clock: Clock, who: str = "mv-assets", retry: Retry | None = None
    ) -> None:
        self._store = store
        self.clock = clock
        self._log = Log(clock, who)
        self._retry = retry or store.retry

    def declare(self, view: Declaration) -> Header:
        """Put a declared view in force: create it, let a new definition take over, extend its coverage.

        Raises:
            Fenced: the definition is an earlier one.

        """
        return self._transact(view.view, "declare", lambda tx: declaring.declare(tx, self._log, view))

    def adopt(self, view: str, definition: str) -> Header:
        """Go back to an earlier definition on purpose.

        Raises:
            UnknownDefinition: the view never had it.

        """
        return self._transact(view, "adopt", lambda tx: declaring.adopt(tx, self._log, definition))

    def drop(self, view: str, why: str | None = None, *, dependants: Iterable[str] = ()) -> None:
        """Make a view VACANT, and with it those based on it: all of them, or in the end none.

        Their generations are garbage from this version on.
        """
        views = [view, *dependants]

        def once() -> None:
            self.clock()
            with self._store.write_all(views) as writers:
                for tx in writers:
                    declaring.drop(tx, self._log, why)

        self._retry.run(self._retry.critical, view, "drop", once)

    def mark_stale(self, view: Declaration, marks: Mapping[int, Mark]) -> list[int]:
        """Mark buckets that no longer match; those already STALE, above W and VACANT, or uncovered stay."""
        if not marks:
            return []
        return self._write_if_known(
            view, "mark_stale", lambda tx, header: self._mark(tx, header, header, marks)[1]
        )

    def look(self, view: Declaration, look: Look) -> list[int]:
        """Record a complete look: its marks and the source's end in one write, and that it was made."""

        def step(tx: MapWriter, before: Header) -> list[int]:
            header = rules.see_source(before, look.source_end, look.closed)
            # Rows that others wrote since this look read the map are not covered by it: they may know more.
            after, marked = self._mark(tx, before, header, look.marks, as_of=look.map_version)
            covers = after.version if before.version == look.map_version else look.map_version
            tx.put_look(rules.recorded(tx.look(), look, covers))
            return marked

        return self._write(view, "look", step)

    def force(
        self, view: Declaration, buckets: Iterable[int] | None, reason: str, *, extend: bool = False
    ) -> list[int]:
        """A person's mark, of some buckets or (None) of the whole view: they are computed from a later read.

        Raises:
            OutOfCoverage: a bucket lies before the view's start and `extend` is not given.

        """
        asked = None if buckets is None else sorted(set(buckets))
        if asked == []:
            return []

        def step(tx: MapWriter, before: Header) -> list[int]:
            after, fresh = before, {}
            if asked is None:
                after = rules.reset(before)
                rows = {row.bucket: row for row in tx.rows_between()}
                wanted = sorted(rows.keys() | set(before.buckets.between(before.start, before.watermark)))
            else:
                wanted, rows = asked, tx.rows(asked)
                after = (rules.extend(before, asked[0]) if extend else None) or before
                fresh = {row.bucket: row for row in declaring.brought_in(before, after)}
            forced = {bucket: rules.force(rows.get(bucket), after, bucket, reason) for bucket in wanted}
            tx.end_attempts(wanted)
            write_rows(tx, self._log, before, after, rows, (fresh | forced).values())
            return wanted

        return self._write(view, "force", step)

    def revert(self, view: Declaration, current_inputs: Mapping[int, CurrentInputs]) -> list[int]:
        """Undo false alarms: STALE buckets whose inputs all turned out equal."""
        if not current_inputs:
            return []

        def step(tx: MapWriter, before: Header) -> list[int]:
            rows = tx.rows(current_inputs)
            reverted = changes(
                {b: rules.revert(rows.get(b), before, current) for b, current in current_inputs.items()}
            )
            if reverted:
                tx.end_attempts(reverted)
                write_rows(tx, self._log, before, before, rows, reverted.values(), Operation.REVERT)
            return list(reverted)

        return self._write_if_known(view, "revert", step, self._retry.revert)

    def register(self, view: Declaration, attempt: Attempt) -> None:
        """Announce a generation before its first file, and count the attempt on its buckets."""

        def step(tx: MapWriter, _before: Header) -> None:
            name = attempt.generation
            if tx.generation(name) is not None:
                # An earlier try landed unheard, perhaps long ago: it must not be born dead.
                beat(tx, name)
                return
            tx.add_generation(Generation(name, view.view, GenerationState.STAGED, tx.now()))
            records, now = tx.attempts(attempt.buckets), self.clock()
            begun = {
                p.bucket: rules.attempt_begun(records.get(p.bucket), name, p.inputs, now)
                for p in attempt.work
            }
            tx.put_attempts(records, begun)

        self._write(view, "register", step)

    def commit(
        self,
        view: Declaration,
        attempt: Attempt,
        staged: Mapping[int, Staged],
        look_again: Callable[[], SecondLook],
        files: Iterable[DataFile] = (),
    ) -> dict[int, rules.Decision]:
        """Make staged buckets visible, or find out for each why not.

        `look_again` runs before every try, outside any transaction: what it saw is then later than the
        last change of every row that the try decides on.

        Raises:
            Fenced: another definition took over; nothing was written.

        """
        if not attempt.work:
            return {}
        noted = {planned.bucket: planned.token for planned in attempt.work}
        files = tuple(files)

        def once() -> dict[int, rules.Decision]:
            second_look = look_again()
            try:
                return self.commit_once(view, attempt, staged, second_look, noted, files)
            except RowsMoved as moved:
                noted.update(moved.tokens)
                raise

        return self._retry.run(self._retry.critical, view.view, "commit", once)

    def commit_once(
        self,
        view: Declaration,
        attempt: Attempt,
        staged: Mapping[int, Staged],
        second_look: SecondLook,
        noted: Mapping[int, int | None],
        files: tuple[DataFile, ...] = (),
    ) -> dict[int, rules.Decision]:
        """The commit's one transaction.

        Raises:
            RowsMoved: rows changed since `noted`, so `second_look` may be older than they are.

        """
        # With the bucket after the last, which decides whether W can go on beyond this batch.
        read = [*sorted(attempt.buckets), view.buckets.next(max(attempt.buckets))]
        now = self.clock()
        with self._store.write(view.view) as tx:
            before, rows, generation = claim(tx, view, read, attempt.generation)
            tokens = {b: rows[b].token if b in rows else None for b in attempt.buckets}
            if tokens != noted:
                raise RowsMoved(view.view, tokens)
            collected = generation in (None, GenerationState.DOOMED)
            decisions = {
                planned.bucket: rules.decide(
                    rows.get(planned.bucket),
                    before,
                    attempt,
                    planned,
                    staged[planned.bucket],
                    second_look.current_inputs[planned.bucket],
                    second_look.changed.get(planned.bucket),
                    collected=collected,
                    now=now,
                )
                for planned in attempt.work
            }
            written = {b: d.row for b, d in decisions.items() if d.row is not None}
            self._end_attempt(tx, attempt, written)
            used = any(row.generation == attempt.generation for row in written.values())
            named = NamedGeneration(attempt.generation, files) if used else None
            if named is None:
                tx.leave_behind(attempt.generation)
            if written:
                segments = {bucket: staged[bucket].segments for bucket in written}
                write_rows(
                    tx,
                    self._log,
                    before,
                    before,
                    rows,
                    written.values(),
                    segments=segments,
                    named=named,
                    read=read,
                )
            return decisions

    def fail(self, view: Declaration, attempt: Attempt, errors: Mapping[int, str]) -> list[int]:
        """Record why buckets of an attempt could not be computed, and when to try again."""
        if not errors:
            return []

        def step(tx: MapWriter, before: Header) -> list[int]:
            # An attempt that no longer stands in the records was reported, forced or dropped meanwhile.
            records = {b: r for b, r in tx.attempts(errors).items() if r.generation == attempt.generation}
            rows = tx.rows(records)
            failed = changes({b: rules.fail(rows.get(b), before, b, attempt, errors[b]) for b in records})
            tx.end_attempts(records.keys() - failed.keys(), only_of=attempt.generation)
            if failed:
                tx.put_attempts(
                    records, {b: rules.attempt_failed(records[b], errors[b], self.clock()) for b in failed}
                )
                write_rows(tx, self._log, before, before, rows, failed.values(), Operation.FAIL, errors)
            return list(failed)

        return self._write_if_known(view, "fail", step)

    def abandon(self, view: str, attempt: Attempt) -> None:
        """End an attempt that will not commit (cancelled, fenced): its buckets are as if never attempted."""

        def step(tx: MapWriter) -> None:
            tx.known_header()
            found = tx.attempts(attempt.buckets)
            own_records = {b: r for b, r in found.items() if r.generation == attempt.generation}
            before = {b: rules.attempt_abandoned(record) for b, record in own_records.items()}
            tx.put_attempts(found, {b: record for b, record in before.items() if record is not None})
            tx.end_attempts([b for b, record in before.items() if record is None])
            tx.leave_behind(attempt.generation)

        self._transact(view, "abandon", step)

    def repoint(
        self, view: str, copy: str, copied: Mapping[int, Copied], files: Iterable[DataFile]
    ) -> list[int]:
        """Let rows name a copy of their generations; rows that moved on keep what they have."""
        files = tuple(files)

        def step(tx: MapWriter) -> list[int]:
            before = tx.known_header()
            uncollected(tx, copy)
            rows = tx.rows(copied)
            moved = changes({b: rules.repoint(row, before, copied[b], copy) for b, row in rows.items()})
            if not moved:
                tx.leave_behind(copy)
                return []
            named, changed = NamedGeneration(copy, files), moved.values()
            write_rows(tx, self._log, before, before, rows, changed, Operation.REPOINT, named=named)
            return list(moved)

        return self._transact(view, "repoint", step)

    def _transact(
        self, view: str, operation: str, step: Callable[[MapWriter], T], profile: Profile | None = None
    ) -> T:
        def once() -> T:
            self.clock()
            with self._store.write(view) as tx:
                return step(tx)

        return self._retry.run(profile or self._retry.critical, view, operation, once)

    def _write(
        self,
        view: Declaration,
        operation: str,
        step: Callable[[MapWriter, Header], T],
        profile: Profile | None = None,
    ) -> T:
        return self._transact(
            view.view, operation, lambda tx: step(tx, own(tx.known_header(), view)), profile
        )

    def _write_if_known(
        self,
        view: Declaration,
        operation: str,
        step: Callable[[MapWriter, Header], list[int]],
        profile: Profile | None = None,
    ) -> list[int]:
        """`_write` for what does nothing where nothing is to be done: nor for a view that nobody declared."""

        def lenient(tx: MapWriter) -> list[int]:
            header = tx.header()
            return [] if header is None else step(tx, own(header, view))

        return self._transact(view.view, operation, lenient, profile)

    def _mark(
        self,
        tx: MapWriter,
        before: Header,
        header: Header,
        marks: Mapping[int, Mark],
        as_of: int | None = None,
    ) -> tuple[Header, list[int]]:
        rows = tx.rows(marks)
        if as_of is not None:
            newer = {bucket for bucket, row in rows.items() if row.token > as_of}
            marks = {bucket: mark for bucket, mark in marks.items() if bucket not in newer}
        marked = changes({b: rules.mark(rows.get(b), before, b, mark) for b, mark in marks.items()})
        if not marked and header == before:
            return before, []
        after = write_rows(tx, self._log, before, header, rows, marked.values())
        if not marked:
            moved = header.source_end != before.source_end
            why = "the source's end moved" if moved else "the bucket that the source ends in was closed"
            tx.put_events([self._log.of_view(Operation.LOOK, after.version, why)])
        return after, list(marked)

    def _end_attempt(self, tx: MapWriter, attempt: Attempt, written: Mapping[int, PartitionRow]) -> None:
        """Success ends every attempt on a bucket, anything else only the caller's own."""
        tx.end_attempts(written)
        rest = [bucket for bucket in attempt.buckets if bucket not in written]
        tx.end_attempts(rest, only_of=attempt.generation)
