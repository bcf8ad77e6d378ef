"""From the files of one version to those of a later one, by the commits in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mv_assets.state.model import Segment
from mv_assets.tables.delta.description import Description, name_of
from mv_assets.tables.delta.files import FileList, file_at, key_of, refuse_twice
from mv_assets.tables.delta.log import Add, Commit, Key
from mv_assets.tables.lakehouse import Active
from mv_assets.tables.listing import Rewrite

# How many files are remembered that were rewritten before the last time.
_REWRITTEN = 100_000


def advanced(files: FileList, commits: Sequence[Commit], description: Description) -> FileList:
    """The files after some commits.

    Raises:
        Twice: a file is then listed twice.

    """
    changes = _Changes()
    for commit in commits:
        changes.follow(commit)
    places = files.places({name_of(path) for path, _ in changes.touched})
    listed = {key_of(name, place): name for name, place in places.items()}
    out = {key: name for key, name in listed.items() if key in changes.touched}
    found = files.without({name: places[name] for name in out.values()})
    came = (found.add(description.of(add)) for add in changes.added.values())
    refuse_twice([*(places.keys() - set(out.values())), *came])
    found.settle()
    before = {key: file_at(name, places[name]) for key, name in out.items()}
    found.rewrites = _latest(found.rewrites | changes.rewritten(before, description))
    after = [description.of(add).file for add in changes.added.values()]
    found.history = files.history.then(_segments([*before.values(), *after]))
    return found


class _Changes:
    """What commits did together: the files they touched, those that came and stayed, and rewrites."""

    def __init__(self) -> None:
        self.touched: set[Key] = set()
        self.added: dict[Key, Add] = {}
        # Of a rewrite: removed files that came meanwhile, keys of those from before, and what it added.
        self._rewrites: dict[int, tuple[list[Add], list[Key], list[Add]]] = {}

    def follow(self, commit: Commit) -> None:
        if commit.rewrites:
            before = [key for key in commit.removes if key not in self.added]
            came = [self.added[key] for key in commit.removes if key in self.added]
            # A file that went before can't be removed again: such a commit says nothing.
            if not self.touched.intersection(before):
                self._rewrites[commit.version] = came, before, list(commit.adds.values())
        for key in commit.removes | commit.adds.keys():
            self.added.pop(key, None)
            self.touched.add(key)
        self.added |= commit.adds

    def rewritten(self, before: Mapping[Key, Active], description: Description) -> dict[int, Rewrite]:
        """The rewrites whose files are all known; others would have to be computed anew anyway."""
        found = {}
        for version, (came, keys, adds) in self._rewrites.items():
            removed = [
                *(description.of(add).file for add in came),
                *(before[key] for key in keys if key in before),
            ]
            added = [description.of(add).file for add in adds]
            known = all(file.extent is not None for file in (*removed, *added))
            if known and len(removed) == len(came) + len(keys):
                found[version] = Rewrite(_segments(removed), _segments(added))
        return found


def _segments(files: Iterable[Active]) -> tuple[Segment, ...]:
    spans = ((file, file.extent.range) for file in sorted(files) if file.extent is not None)
    return tuple(Segment(file.name, file.crc, *span) for file, span in spans if span is not None)


def _latest(rewrites: Mapping[int, Rewrite]) -> dict[int, Rewrite]:
    """The last rewrite, and those before it while they are not too many files."""
    kept: dict[int, Rewrite] = {}
    files = 0
    for version in sorted(rewrites, reverse=True):
        files += len(rewrites[version].removed) + len(rewrites[version].added)
        if kept and files > _REWRITTEN:
            break
        kept[version] = rewrites[version]
    return dict(sorted(kept.items()))
