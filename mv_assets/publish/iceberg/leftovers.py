"""Files that only expired snapshots name: the library forgets snapshots, and leaves their files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table

from mv_assets.publish.iceberg.snapshots import Known


def remove(table: Table, gone: Sequence[Known], kept: Sequence[Known], *, data_files: bool) -> None:
    """Delete manifests and their lists; data files only where they are the table's own.

    What can't be deleted stays: nobody reads it, and nothing depends on it.
    """
    with suppress(Exception):
        named = {manifest.manifest_path for each in _near(gone, kept) for manifest in _manifests(table, each)}
        manifests = {
            manifest.manifest_path: manifest
            for each in gone
            for manifest in _manifests(table, each)
            if manifest.manifest_path not in named
        }
        paths = list(manifests)
        if data_files:
            live = _data_files(table, [m for each in _near(gone, kept) for m in _manifests(table, each)])
            paths += sorted(_data_files(table, manifests.values()) - live)
        # Lists last: whoever is killed before finds by them what else there was.
        for path in [*paths, *(each.snapshot.manifest_list for each in reversed(gone))]:
            # Others may have written into the table that files belong to it which do not.
            if _is_inside(table, path):
                with suppress(Exception):
                    table.io.delete(path)


def _is_inside(table: Table, path: str) -> bool:
    return path.startswith(f"{table.location().rstrip('/')}/") and ".." not in path.split("/")


def _near(gone: Sequence[Known], kept: Sequence[Known]) -> list[Known]:
    """Those of the kept that may share manifests with what is gone: up to the first of ours after it.

    What that one does not name any more, no later one of ours does.
    """
    last = max((each.snapshot.sequence_number or 0 for each in gone), default=0)
    before = [each for each in kept if (each.snapshot.sequence_number or 0) <= last]
    after = [each for each in kept if (each.snapshot.sequence_number or 0) > last]
    others = list(itertools.takewhile(lambda each: not each.own, after))
    return before + after[: len(others) + 1]


def _manifests(table: Table, known: Known) -> list[ManifestFile]:
    with suppress(OSError):
        return list(known.snapshot.manifests(table.io))
    return []


def _data_files(table: Table, manifests: Iterable[ManifestFile]) -> set[str]:
    found = set[str]()
    for manifest in manifests:
        with suppress(OSError):
            found |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    return found
