"""The one writer of partition maps: one method an operation, each a single version step of the header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from mv_assets.state import rules
from mv_assets.state.change import Change, Line, write
from mv_assets.state.errors import RowsMoved, UnknownView
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
from mv_assets.state.store import Store
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.state.store.retry import Profile, Retry

Clock = Callable[[], int]
Decide = Callable[[MapWriter], Change]


class PartitionManager:
    """Changes partition maps, and nobody else does.

    Every method locks the view's header, decides by the rules on what it finds there, and writes the
    `Change` that it decided on in that one short transaction: one version step at most, and none if there
    is nothing to do. Conflicts and transport errors are tried again; refusals
    (`mv_assets.errors.Refused`) are raised at once.

    All times in the map are of its `clock`: for maps that deployments share a `SharedClock`.
    """

    def __init__(
        self, store: Store, *, clock: Clock, who: str = "mv-assets", retry: Retry | None = None
    ) -> None:
        self._store = store
        self.clock = clock
        self._who = who
        self._retry = retry or store.retry

    def declare(self, view: Declaration) -> Header:
        """Put a declared view in force: create it, let a new definition take over, extend its coverage.

        Raises:
            Fenced: the definition is an earlier one.

        """
        now = self.clock()

        def decide(tx: MapWriter) -> Change:
            before = tx.header()
            if before is None:
                after = rules.start_view(view, now)
                return Change(None, after, adds_definition=True, line=Line(Operation.DECLARE))
            taken = rules.declare(before, tx.history(), view)
            if taken is not None:
                return _take_over(tx, before, taken, Operation.TAKE_OVER)
            after = rules.extend(before, view.start) or before
            below = rules.brought_in(before, after)
            line = None if below else Line(Operation.EXTEND, "coverage was extended")
            return Change(before, after, rows=below, operation=Operation.EXTEND, line=line)

        return self._write(view.view, "declare", decide).after

    def adopt(self, view: str, definition: str) -> Header:
        """Go back to an earlier definition on purpose.

        Raises:
            UnknownDefinition: the view never had it.

        """

        def decide(tx: MapWriter) -> Change:
            before = tx.known_header()
            after = rules.adopt(before, tx.history(), definition)
            if after is None:
                return Change(before, before)
            return _take_over(tx, before, after, Operation.ADOPT)

        return self._write(view, "adopt", decide).after

    def drop(self, view: str, why: str | None = None, *, dependants: Iterable[str] = ()) -> None:
        """Make a view VACANT, and with it those based on it: all of them, or in the end none.

        Their generations are garbage from this version on.
        """
        views, line = [view, *dependants], Line(Operation.DROP, why)

        def once() -> None:
            self.clock()
            with self._store.write_all(views) as writers:
                for tx in writers:
                    before = tx.known_header()
                    after = rules.drop(before)
                    self._put(tx, Change(before, after, drops_rows=True, forgets_look=True, line=line))

        self._retry.run(self._retry.critical, view, "drop", once)

    def mark_stale(self, view: Declaration, marks: Mapping[int, Mark]) -> list[int]:
        """Mark buckets that no longer match; those already STALE, above W and VACANT, or uncovered stay."""
        if not marks:
            return []

        def decide(tx: MapWriter) -> Change:
            before = rules.own(tx.known_header(), view)
            found = tx.rows(marks)
            marked = _changed({b: rules.mark(found.get(b), before, b, mark) for b, mark in marks.items()})
            return Change(before, before, found=found, rows=marked)

        with suppress(UnknownView):
            return list(self._write(view.view, "mark_stale", decide).rows)
        return []

    def look(self, view: Declaration, look: Look) -> list[int]:
        """Record a complete look: all that it changes in one write, and that it was made.

        Returns the buckets that it marked.
        """

        def decide(tx: MapWriter) -> Change:
            before = rules.own(tx.known_header(), view)
            after = rules.see_source(before, look.source_end, look.closed)
            found = tx.rows(sorted(look.marks.keys() | look.follows.keys()))
            # Rows that others wrote since this look read the map are not covered by it: they may know more.
            newer = {bucket for bucket, row in found.items() if row.token > look.map_version}
            follows = {b: each for b, each in look.follows.items() if b not in newer}
            marks = {bucket: mark for bucket, mark in look.marks.items() if bucket not in newer}
            followed = _changed({b: rules.follow(found.get(b), before, each) for b, each in follows.items()})
            known = found | followed
            marked = _changed({b: rules.mark(known.get(b), before, b, mark) for b, mark in marks.items()})
            rows = followed | marked
            moved = after.source_end != before.source_end
            why = "the source's end moved" if moved else "the bucket that the source ends in was closed"
            change = Change(
                before,
                after,
                found=found,
                rows=rows,
                segments={b: kept for b in followed if (kept := follows[b].segments) is not None},
                why={bucket: follows[bucket].why for bucket in followed if bucket not in marked},
                line=None if rows else Line(Operation.LOOK, why),
                # What is VALID again needs no attempt.
                attempts=dict.fromkeys(b for b in followed if follows[b].matches),
            )
            covers = change.version if before.version == look.map_version else look.map_version
            return replace(change, look=rules.recorded(tx.look(), look, covers))

        written = self._write(view.view, "look", decide).rows
        return [bucket for bucket in look.marks if bucket in written]

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

        def decide(tx: MapWriter) -> Change:
            before = rules.own(tx.known_header(), view)
            if asked is None:
                after, found = rules.reset(before), {row.bucket: row for row in tx.rows_between()}
                wanted = sorted(found.keys() | set(before.buckets.between(before.start, before.watermark)))
            else:
                after, found = (rules.extend(before, asked[0]) if extend else None) or before, tx.rows(asked)
                wanted = asked
            forced = {bucket: rules.force(found.get(bucket), after, bucket, reason) for bucket in wanted}
            rows = rules.brought_in(before, after) | forced
            return Change(before, after, found=found, rows=rows, attempts=dict.fromkeys(wanted))

        written = self._write(view.view, "force", decide).rows
        return [bucket for bucket, row in written.items() if row.forced]

    def revert(self, view: Declaration, current_inputs: Mapping[int, CurrentInputs]) -> list[int]:
        """Undo false alarms: STALE buckets whose inputs all turned out equal."""
        if not current_inputs:
            return []

        def decide(tx: MapWriter) -> Change:
            before = rules.own(tx.known_header(), view)
            found = tx.rows(current_inputs)
            reverted = _changed(
                {b: rules.revert(found.get(b), before, current) for b, current in current_inputs.items()}
            )
            ended = dict.fromkeys(reverted)
            return Change(
                before, before, found=found, rows=reverted, operation=Operation.REVERT, attempts=ended
            )

        with suppress(UnknownView):
            return list(self._write(view.view, "revert", decide, self._retry.revert).rows)
        return []

    def register(self, view: Declaration, attempt: Attempt) -> None:
        """Announce a generation before its first file, and count the attempt on its buckets."""

        def decide(tx: MapWriter) -> Change:
            before, name = rules.own(tx.known_header(), view), attempt.generation
            if tx.generation(name) is not None:
                # An earlier try landed unheard, perhaps long ago: it must not be born dead.
                return Change(before, before, alive=name)
            generation = Generation(name, view.view, GenerationState.STAGED, tx.now())
            found, now = tx.attempts(attempt.buckets), self.clock()
            begun = {
                p.bucket: rules.attempt_begun(found.get(p.bucket), name, p.inputs, now) for p in attempt.work
            }
            return Change(before, before, registered=generation, attempts_found=found, attempts=begun)

        self._write(view.view, "register", decide)

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
        wanted = [*sorted(attempt.buckets), view.buckets.next(max(attempt.buckets))]
        now = self.clock()
        with self._store.write(view.view) as tx:
            header, rows, generation = tx.claim(view.buckets, wanted, attempt.generation)
            before, found = rules.own(header, view), {bucket: rows.get(bucket) for bucket in wanted}
            tokens = {b: rows[b].token if b in rows else None for b in attempt.buckets}
            if tokens != noted:
                raise RowsMoved(view.view, tokens)
            decisions = {
                planned.bucket: rules.decide(
                    found[planned.bucket],
                    before,
                    attempt,
                    planned,
                    staged[planned.bucket],
                    second_look.current_inputs[planned.bucket],
                    second_look.changed.get(planned.bucket),
                    collected=generation in (None, GenerationState.DOOMED),
                    now=now,
                )
                for planned in attempt.work
            }
            written = _changed({bucket: decision.row for bucket, decision in decisions.items()})
            change = Change(
                before,
                before,
                found=found,
                rows=written,
                segments={bucket: staged[bucket].segments for bucket in written},
                generation=attempt.generation,
                files=files,
                # Success ends every attempt on a bucket, anything else only the caller's own.
                attempts=dict.fromkeys(written),
                ended=attempt,
            )
            self._put(tx, change)
            return decisions

    def fail(self, view: Declaration, attempt: Attempt, errors: Mapping[int, str]) -> list[int]:
        """Record why buckets of an attempt could not be computed, and when to try again."""
        if not errors:
            return []

        def decide(tx: MapWriter) -> Change:
            before = rules.own(tx.known_header(), view)
            # An attempt that no longer stands in the records was reported, forced or dropped meanwhile.
            own = {b: r for b, r in tx.attempts(errors).items() if r.generation == attempt.generation}
            found, now = tx.rows(own), self.clock()
            failed = _changed({b: rules.fail(found.get(b), before, b, attempt, errors[b]) for b in own})
            records = {b: rules.attempt_failed(own[b], errors[b], now) for b in failed}
            return Change(
                before,
                before,
                found=found,
                rows=failed,
                operation=Operation.FAIL,
                why=errors,
                attempts_found=own,
                attempts=dict.fromkeys(own) | records,
            )

        with suppress(UnknownView):
            return list(self._write(view.view, "fail", decide).rows)
        return []

    def abandon(self, view: str, attempt: Attempt) -> None:
        """End an attempt that will not commit (cancelled, fenced): its buckets are as if never attempted."""

        def decide(tx: MapWriter) -> Change:
            before, found = tx.known_header(), tx.attempts(attempt.buckets)
            own = {b: record for b, record in found.items() if record.generation == attempt.generation}
            return Change(
                before,
                before,
                generation=attempt.generation,
                attempts_found=own,
                attempts={b: rules.attempt_abandoned(record) for b, record in own.items()},
            )

        self._write(view, "abandon", decide)

    def repoint(
        self, view: str, copy: str, copied: Mapping[int, Copied], files: Iterable[DataFile]
    ) -> list[int]:
        """Let rows name a copy of their generations; rows that moved on keep what they have."""
        files = tuple(files)

        def decide(tx: MapWriter) -> Change:
            before = tx.known_header()
            tx.uncollected(copy)
            found = tx.rows(copied)
            moved = _changed({b: rules.repoint(row, before, copied[b], copy) for b, row in found.items()})
            change = Change(before, before, found=found, rows=moved, operation=Operation.REPOINT)
            return replace(change, generation=copy, files=files)

        return list(self._write(view, "repoint", decide).rows)

    def _write(self, view: str, operation: str, decide: Decide, profile: Profile | None = None) -> Change:
        """What was written, by the first try that met with no conflict."""

        def once() -> Change:
            self.clock()
            with self._store.write(view) as tx:
                return self._put(tx, decide(tx))

        return self._retry.run(profile or self._retry.critical, view, operation, once)

    def _put(self, tx: MapWriter, change: Change) -> Change:
        return write(tx, change, self.clock(), self._who)


def _take_over(tx: MapWriter, before: Header, after: Header, operation: Operation) -> Change:
    """Another definition in force: rows of the one before count as STALE, of another width they are dropped.

    Rows that an adopted definition finds again were not looked at meanwhile: they are marked, and the
    next plan reverts those that still match.
    """
    drops, adopted = after.width != before.width, Mark("its definition was adopted again")
    again = operation is Operation.ADOPT and not drops
    found = {row.bucket: row for row in tx.rows_between()} if again else {}
    return Change(
        before,
        after,
        found=found,
        rows=_changed({b: rules.mark(row, after, b, adopted) for b, row in found.items()}),
        drops_rows=drops,
        adds_definition=operation is Operation.TAKE_OVER,
        line=Line(operation, f"definition {after.definition}"),
        attempts={} if drops else dict.fromkeys(tx.attempts()),
        forgets_look=True,
    )


def _changed(decided: Mapping[int, PartitionRow | None]) -> dict[int, PartitionRow]:
    """The rows that a rule changed, of all that it decided on."""
    return {bucket: row for bucket, row in decided.items() if row is not None}
