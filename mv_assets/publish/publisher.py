"""The recipe: from the map at one pinned version to a table that anybody reads."""

from __future__ import annotations

import itertools
import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from mv_assets.errors import MvError
from mv_assets.maintain.compaction import Compactor, Holding
from mv_assets.publish.contents import Contents, contents
from mv_assets.publish.errors import Lost, NotPublished, StillCopying
from mv_assets.publish.names import name_of
from mv_assets.publish.open import open_target
from mv_assets.publish.target import Shown, Target, is_newer
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.errors import Fenced, UnknownView
from mv_assets.state.leases import Leases
from mv_assets.state.manager import PartitionManager
from mv_assets.state.model import Doing, Header, Lease, Publication, StoredRows
from mv_assets.state.publications import Publications
from mv_assets.state.registry import Registry
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles
from mv_assets.tables.recent import Recent
from mv_assets.views.catalog import Catalog

_log = logging.getLogger(__name__)
# Maps as they were read to be published, by database and view; so many rows at most.
STORED: Recent[tuple[Header, StoredRows]] = Recent(1_000_000)
# How often a publication is derived anew, because others committed to the map or to the target meanwhile.
_TRIES = 8


@dataclass(frozen=True, slots=True)
class PublishedView:
    """What became of a view's publication: what others see now, whether that is new, or why it is not."""

    view: str
    publication: Publication | None = None
    is_new: bool = False
    error: MvError | None = None
    # There is more to copy than there was time for; until then others see what they saw.
    copying: bool = False


@dataclass(frozen=True, slots=True)
class Publisher:
    """Publishes views of a catalog. Nothing that goes wrong here holds up a commit: it is the view's trouble.

    Order matters: what a snapshot will show is retained once its target has answered and before it is there,
    and given up after it is gone.
    """

    catalog: Catalog
    store: Store
    manager: PartitionManager
    warehouse: Warehouse
    open: Callable[[Catalog, str, Warehouse], Target | None] = open_target

    def targets(self) -> dict[str, str]:
        """The views that are published, each with the name of its target."""
        found = {name: self.catalog.target(name) for name in self.catalog.views}
        return {name: name_of(target, name) for name, target in found.items() if target is not None}

    def behind(self) -> list[str]:
        """Views whose map has changed since they were published.

        Those that can't be come last, in any order: a target that hangs holds up none of the others.
        """
        stuck = Troubles(self.store, self.manager.clock).views(Doing.PUBLISH)
        found = Publications(self.store).behind(self.targets().items())
        return sorted(found, key=lambda name: random.random() if name in stuck else -1)  # noqa: S311

    def publish(
        self, names: Iterable[str], *, look: bool = False, enough: Callable[[], bool] = lambda: False
    ) -> list[PublishedView]:
        """Publish what is missing of views that have a target.

        Args:
            names: the views.
            look: see what the target shows even if nothing changed here.
            enough: whether there is no time for more.

        """
        asked = [name for name in names if self.catalog.target(name) is not None]
        done = dict[str, PublishedView]()
        for name in asked:
            if not (done and enough()):
                # Who has much to copy does that in the time that others leave: each copy is a write of the
                # map, so that it would come first, again and again.
                done[name] = self._try(name, look=look, enough=_after_one() if asked[1:] else enough)
        for name in [each.view for each in done.values() if each.copying]:
            if not enough():
                done[name] = self._try(name, look=look, enough=enough)
        return list(done.values())

    def expire(self, names: Iterable[str]) -> list[PublishedView]:
        """Give up snapshots that no reader should still hold; where that failed, why."""
        failed = list[PublishedView]()
        for name in names:
            try:
                for publication in Publications(self.store).of(name):
                    self._expire(name, publication)
            except MvError as error:
                self._note(name, error)
                failed.append(PublishedView(name, error=error))
        return failed

    def _expire(self, name: str, publication: Publication) -> None:
        declared = self.catalog.target(name)
        if declared is not None and name_of(declared, name) == publication.target:
            with self._opened(name) as target:
                if self._is_ours(name, target.shown()):
                    self._give_up(name, target)

    def _give_up(self, name: str, target: Target) -> None:
        publications, declared = Publications(self.store), self.catalog.target(name)
        with suppress(Lost):
            now = self.manager.clock()
            oldest = target.expire(now)
            if oldest is not None:
                publications.expire(name, target.name, oldest)
            elif declared is not None:
                publications.pass_over(name, target.name, now, declared.keep)

    def left(self, name: str) -> list[Publication]:
        """What is kept for readers of tables that the project no longer names."""
        declared = self.catalog.target(name)
        wanted = None if declared is None else name_of(declared, name)
        return [each for each in Publications(self.store).of(name) if each.target != wanted]

    def forget(self, name: str) -> list[Publication]:
        """Keep nothing for those any more; the tables themselves can't be reached."""
        left = self.left(name)
        for each in left:
            Publications(self.store).end(name, each.target)
        if self.catalog.target(name) is None:
            self._note(name, None)
        return left

    def withdraw(self, name: str) -> MvError | None:
        """Take back what is published of a view, as DROP does; why that can't be done, if it can't.

        What is kept for readers stays kept until it is done.
        """
        known = Publications(self.store).of(name)
        try:
            for publication in known:
                self._withdraw(name, publication)
        except MvError as error:
            self._note(name, error)
            return error
        if known:
            self._note(name, None)
        return None

    def _withdraw(self, name: str, publication: Publication) -> None:
        declared = self.catalog.target(name)
        if declared is None or name_of(declared, name) != publication.target:
            raise NotPublished(
                name,
                publication.target,
                "it was published there, but the project no longer declares that target, so it can't be "
                "withdrawn and its files are kept; declare it once more, and drop the view then, or give "
                f"them up with `mv-assets publish {name} --forget`",
            )
        with self._opened(name) as target:
            # Another project may have a table there by now, in the place of ours.
            if self._is_ours(name, target.shown()):
                _take_back(name, target)
        Publications(self.store).end(name, publication.target)

    def _try(self, name: str, *, look: bool, enough: Callable[[], bool]) -> PublishedView:
        try:
            with self._opened(name) as target:
                found = self._publish(name, target, look=look, enough=enough)
        except UnknownView:
            # Nothing was computed yet.
            return PublishedView(name)
        except StillCopying as copying:
            _log.info("%s", copying)
            return PublishedView(name, copying=True)
        except MvError as error:
            self._note(name, error)
            return PublishedView(name, error=error)
        self._note(name, None)
        return found

    def _publish(self, name: str, target: Target, *, look: bool, enough: Callable[[], bool]) -> PublishedView:
        # Of no bucket: as much of the map as is shown is read by itself, each time at a later version.
        with self._leases().pin(name, 0, 0) as pinned:
            found = self._published(name, target, pinned.lease, look=look, enough=enough)
        if found.is_new:
            self._give_up(name, target)
        return found

    def _published(
        self, name: str, target: Target, lease: Lease, *, look: bool, enough: Callable[[], bool]
    ) -> PublishedView:
        key = self.store.database.where, name
        # Should what is remembered be wrong after all, a look at the table ends that.
        stored = None if look else STORED.get(key)
        for _ in range(_TRIES):
            stored = self.store.stored(name, stored)
            STORED.put(key, stored, len(stored[1].bucket))
            try:
                found = self._publish_once(*stored, target, lease, look=look, enough=enough)
            except (Lost, Fenced):
                # Others changed the table, or the view's definition, meanwhile.
                continue
            if found is not None:
                return found
        raise NotPublished(name, target.table, "others were faster each time; it is tried again")

    def _separate(self, header: Header, mixed: Sequence[Holding], enough: Callable[[], bool]) -> None:
        """Copy what shares files with rows that are no longer current: nobody else could tell them apart."""
        name, compaction = header.view, self._compactor().separate(header, mixed, enough)
        for error in compaction.errors:
            raise error
        if compaction.kept:
            raise NotPublished(
                name,
                "any table",
                f"{len(compaction.kept)} generations hold rows that are no longer current, and have types "
                f"that only Spark writes; `mv-assets refresh {name} --force` computes them anew",
            )
        if len(compaction.done) < len(compaction.bundles) and enough():
            raise StillCopying(name)

    def _publish_once(
        self,
        header: Header,
        rows: StoredRows,
        target: Target,
        lease: Lease,
        *,
        look: bool,
        enough: Callable[[], bool],
    ) -> PublishedView | None:
        """Show the map as it was read; None if something had to be copied, and it is another one now."""
        name, publications = header.view, Publications(self.store)
        files, others = self._compactor().current(name, rows)
        mixed = [found for each in others if (found := each.mixed()).files]
        if mixed:
            self._separate(header, mixed, enough)
            return None
        wanted = contents(header, rows, files)
        recorded = publications.at(name, target.name)
        if recorded is not None and recorded.digest == wanted.digest and not look:
            seen = replace(recorded, seen=header.version)
            publications.record(seen)
            return PublishedView(name, seen)
        there = target.shown()
        if there is not None and there.version is not None:
            self._check_owner(name, target, there.mark, recorded)
        known = publications.retain(name, target.name, header.version, lease)
        shown = self._show(replace(wanted, mark=known.mark), target, there, known)
        done = self._recorded(known, wanted, target, shown)
        if not publications.record(done):
            # The view was dropped meanwhile: what is shown now are rows that gc may take.
            _take_back(name, target)
            return PublishedView(name)
        return PublishedView(name, done, is_new=_is_new(known, done))

    def _show(
        self, wanted: Contents, target: Target, there: Shown | None, known: Publication
    ) -> Shown | None:
        at, foreign = self.manager.clock(), None if there is None else there.foreign
        equal = there is not None and self._is_shown(wanted, target, there, known)
        if foreign is not None:
            _log.warning("%s: %s; it is published over", target.table, foreign)
        if equal and there is not None and there.version is not None:
            # No contents are shown as two versions.
            wanted = wanted.as_of(there.version)
        shown = there if equal and foreign is None else target.commit(wanted, at)
        if shown is not None and shown.version is not None:
            target.commit_buckets(wanted.as_of(shown.version), at)
            shown = replace(shown, foreign=foreign)
        return shown

    def _is_shown(self, wanted: Contents, target: Target, there: Shown, known: Publication) -> bool:
        """Whether the table shows these contents.

        Raises:
            Lost: a peer has shown what came since this map was read.
            NotPublished: no version is shown twice, and this one, or one after it, was shown with others.

        """
        version = there.version
        if version is None:
            return False
        if version > wanted.version and self.store.summary(wanted.view).header.version >= version:
            raise Lost
        equal = there.digest == wanted.digest
        if there.digest is None:
            equal = version == wanted.version or known.digest == wanted.digest
        if is_newer(version, wanted.version) or (equal and version == wanted.version):
            return equal
        other = f"and the map is at version {wanted.version}"
        if version == wanted.version:
            other = "with other contents than the map has"
        raise NotPublished(
            wanted.view,
            target.table,
            f"version {version} is published, {other}: the state was set back; "
            f"`mv-assets drop {wanted.view}` withdraws it, and a refresh computes it anew",
        )

    def _check_owner(self, name: str, target: Target, mark: str | None, recorded: Publication | None) -> None:
        if recorded is not None and mark in (recorded.mark, None):
            return
        # A peer may have published it first meanwhile, or we did under another address.
        known = {each.mark for each in Publications(self.store).of(name)}
        if mark not in known and not (mark is None and known):
            raise NotPublished(
                name,
                target.table,
                "another project publishes a view of that name there, or this one did before its state was "
                "lost; name another place, or drop that table",
            )

    def _is_ours(self, name: str, there: Shown | None) -> bool:
        if there is None or there.mark is None:
            return True
        return there.mark in {each.mark for each in Publications(self.store).of(name)}

    def _recorded(
        self, known: Publication, wanted: Contents, target: Target, shown: Shown | None
    ) -> Publication:
        seen = replace(known, seen=wanted.version, digest=wanted.digest, table=target.table)
        if shown is None:
            # There is nothing to show yet.
            return seen
        found = replace(seen, version=shown.version, snapshot=shown.snapshot, location=shown.location)
        is_new = _is_new(known, found)
        return replace(
            found,
            at=self.manager.clock() if is_new or known.at is None else known.at,
            replaced=shown.foreign if is_new or shown.foreign is not None else known.replaced,
        )

    @contextmanager
    def _opened(self, name: str) -> Iterator[Target]:
        target = self.open(self.catalog, name, self.warehouse)
        if target is None:
            raise AssertionError("only views with a target are published")
        with closing(target):
            yield target

    def _note(self, name: str, error: MvError | None) -> None:
        if error is not None:
            _log.error("%s", error)
        Troubles(self.store, self.manager.clock).note(Doing.PUBLISH, {name: error})

    def _compactor(self) -> Compactor:
        return Compactor(self.store, self.manager, self.warehouse, Registry(self.store), self._leases())

    def _leases(self) -> Leases:
        return Leases(self.store, who="mv-assets publish")


def _after_one() -> Callable[[], bool]:
    """Enough, from the second time on that it is asked."""
    asked = itertools.count()
    return lambda: next(asked) > 0


def _take_back(name: str, target: Target) -> None:
    for _ in range(_TRIES):
        with suppress(Lost):
            target.withdraw()
            return
    raise NotPublished(name, target.table, "others publish it while it is withdrawn; drop the view again")


def _is_new(known: Publication, found: Publication) -> bool:
    # A table that was made anew counts its snapshots from the first one.
    return (found.version, found.snapshot) != (known.version, known.snapshot)
