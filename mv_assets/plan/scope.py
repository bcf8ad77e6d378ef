"""What of the views a person asks for: which buckets, whatever their state or not, how much; what to drop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mv_assets.errors import BucketError, Refused
from mv_assets.state.errors import OutOfCoverage
from mv_assets.state.manager import PartitionManager
from mv_assets.state.store import Store
from mv_assets.views.bounds import check_extension, check_range, check_start
from mv_assets.views.catalog import Catalog
from mv_assets.views.errors import HasDependants
from mv_assets.views.view import View

_ENDS = 2


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of the views a person asked for: a stretch of time, and bytes to read in all."""

    start: int | None = None
    end: int | None = None
    max_bytes: int | None = None
    # By view, the buckets that were asked for by name: these are meant, due or not.
    named: Mapping[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, view: View, buckets: Sequence[int] | None, max_bytes: int | None) -> Scope:
        """The time of some neighbouring buckets; None for all of it."""
        if buckets is None:
            return cls(max_bytes=max_bytes)
        named = {view.name: frozenset(buckets)}
        return cls(buckets[0], view.buckets.next(buckets[-1]), max_bytes, named)

    def holds(self, view: View, bucket: int) -> bool:
        after = self.start is None or view.buckets.next(bucket) > self.start
        return after and (self.end is None or bucket < self.end)


def between(view: View, first: str | None, last: str | None, now: int) -> list[int] | None:
    """The buckets from the first to the last, both by their keys; None, the whole view, without any.

    Raises:
        BucketError: a key names no bucket, they are in the wrong order or too many, or the last lies in the
            future.

    """
    if first is None and last is None:
        return None
    start = view.buckets.parse(str(last if first is None else first))
    end = view.buckets.parse(str(first if last is None else last))
    key = view.buckets.key
    if end < start:
        raise BucketError(f"the last bucket {key(end)} lies before the first, {key(start)}; swap the two")
    if end > now:
        # Forced, it would be STALE until its time comes.
        raise BucketError(f"bucket {key(end)} lies in the future; name one that has begun")
    check_range(view, start, view.buckets.next(end))
    return list(view.buckets.between(start, view.buckets.next(end)))


def named(
    view: View, keys: str | tuple[str, str] | None, now: int, *, extend: bool = False
) -> list[int] | None:
    """The buckets that a person named: one, or the first and the last; None, the whole view, without any.

    Raises:
        BucketError: as `between`.
        Refused: coverage is to be extended, and no bucket says how far; or these are no keys.

    """
    if keys is None and extend:
        raise Refused("coverage is extended to a bucket: name it")
    if keys is None or isinstance(keys, str):
        return between(view, keys, None, now)
    if len(keys) != _ENDS or not all(isinstance(key, str) for key in keys):
        raise Refused("buckets are named by a key, as '2024-01-31', or by the first and the last one's")
    return between(view, *keys, now)


def computed(store: Store, view: View, buckets: Sequence[int]) -> list[int]:
    """Of some buckets those that were ever computed, tried or marked.

    The others need no mark to be computed, and would be emptied where they have no files yet.
    """
    snapshot = store.snapshot(view.name, buckets[0], view.buckets.next(buckets[-1]))
    return [bucket for bucket in buckets if bucket in snapshot.rows or bucket in snapshot.attempts]


def prepare(
    manager: PartitionManager,
    store: Store,
    view: View,
    buckets: Sequence[int] | None,
    now: int,
    *,
    force: bool,
    extend: bool,
) -> None:
    """Mark what is to be computed whatever its state, or lies before the view's coverage.

    Raises:
        ExtendedTooFar: with `extend`, far more would be covered than anybody would mean.
        OutOfCoverage: a bucket lies before the view's start and `extend` is not given.
        TooManyBuckets: no look would get through all that is declared or would be covered.

    """
    if buckets is None and not force:
        return
    before = uncovered(manager, view, buckets or (), now, extend=extend)
    if force:
        known = None if buckets is None else sorted({*before, *computed(store, view, buckets)})
        manager.force(view.declaration, known, "a forced refresh", extend=bool(before))
    elif before:
        manager.force(view.declaration, before, "the coverage was extended", extend=True)


def to_drop(catalog: Catalog, view: str, *, with_dependants: bool) -> list[str]:
    """A view that is to be dropped, and after it those that go with it.

    Only what the project declares can be based on it: a view that nobody declares waits for nothing, and its
    map does not say what it was made of.

    Raises:
        HasDependants: others are based on it, and are to stay.

    """
    named, *dependants = catalog.with_dependants(view)
    if dependants and not with_dependants:
        raise HasDependants(named, dependants)
    return [named, *dependants]


def uncovered(
    manager: PartitionManager, view: View, buckets: Sequence[int], now: int, *, extend: bool
) -> list[int]:
    """Declare a view, and see which buckets lie before its coverage.

    Raises:
        ExtendedTooFar: there are some, and far more than anybody would mean.
        OutOfCoverage: there are some, and the coverage is not to be extended.
        TooManyBuckets: no look would get through all that is declared or would be covered.

    """
    if view.declared.start is not None:
        check_start(view, view.declared.start, now)
    header = manager.declare(view.declaration)
    start = header.start
    before = [each for each in buckets if each < start]
    # Of a view that starts with its data nobody knows where that is before the first look.
    unknown = view.declared.start is None and header.source_end is None
    if before and not extend and not unknown:
        raise OutOfCoverage(view.name, view.buckets.key(before[0]), view.buckets.key(start))
    if before:
        check_extension(view, before[0], start, now)
    return before
