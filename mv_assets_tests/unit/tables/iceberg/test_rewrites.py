"""Files that were replaced by others with the same rows, as far as the table says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from mv_assets.state.model import Segment
from mv_assets.tables.iceberg import rewrites
from mv_assets.tables.listing import Listing
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import STATED, Create, Make, long, paths, rows

LATER = log.bounds(1, long(5_000_000), long(6_000_000))


def segment(listing: Listing, name: str) -> Segment:
    return listing.segment(listing.names.index(name))


def test_a_compaction_tells_which_files_became_which(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("a", 2, **STATED), log.data_file("b", 3, **LATER))
    log.commit(root, log.data_file("c", 4, **STATED))
    before = table().current().listing()
    assert before.rewrites == ()
    both = log.bounds(1, long(0), long(6_000_000))
    log.commit(root, log.data_file("new", 5, **both), remove=["a", "b"], operation="replace")
    after = table().current().listing()
    (rewrite,) = after.rewrites
    assert set(rewrite.removed) == {segment(before, "a"), segment(before, "b")}
    assert rewrite.added == (segment(after, "new"),)
    # What is committed later does not change that, nor what is rewritten again.
    log.commit(root, log.data_file("d", 1, **LATER))
    assert table().current().listing().rewrites == (rewrite,)
    log.commit(root, log.data_file("newer", 6, **both), remove=["new", "d"], operation="replace")
    last = table().current().listing()
    assert last.rewrites[0] == rewrite
    assert {each.name for each in last.rewrites[1].removed} == {"new", "d"}
    assert last.rewrites[1].added == (segment(last, "newer"),)


def test_a_compaction_that_applies_deletes_is_one_too(create: Create, table: Make, root: Path) -> None:
    made = create()
    made.append(rows(1, 1, 1, v=[1, 2, 3]))
    (path,) = paths(made)
    delete = log.position_deletes(root / "d.parquet", (path, 0))
    log.commit(root, delete, summary={"total-records": "3", "total-delete-files": "1"})
    before = table().current().listing()
    said = {"total-records": "2", "total-delete-files": "0"}
    removed = [path, delete.file_path]
    log.commit(root, log.data_file("new", 2, **STATED), remove=removed, operation="replace", summary=said)
    (rewrite,) = table().current().listing().rewrites
    # As it was with its deletes.
    assert rewrite.removed == tuple(before.segments())
    assert [each.name for each in rewrite.added] == ["new"]


@pytest.mark.parametrize(
    ("operation", "rows_after", "said", "told"),
    [
        ("replace", 2, {}, 1),
        ("replace", 2, {"total-records": "2"}, 1),
        ("overwrite", 2, {}, 0),
        ("replace", 3, {}, 0),
        ("replace", 1, {}, 0),
        ("replace", 2, {"total-records": "9"}, 0),
    ],
)
def test_only_what_the_table_says_clearly_is_a_rewrite(
    create: Create, table: Make, root: Path, operation: str, rows_after: int, said: dict[str, str], told: int
) -> None:
    create()
    log.commit(root, log.data_file("a", 2, **STATED), summary={"total-records": "2"})
    new = log.data_file("new", rows_after, **STATED)
    log.commit(root, new, remove=["a"], operation=operation, summary=said)
    assert len(table().current().listing().rewrites) == told


def test_a_file_of_unknown_range_makes_it_no_rewrite(create: Create, table: Make, root: Path) -> None:
    create()
    log.commit(root, log.data_file("a", 2))
    log.commit(root, log.data_file("new", 2, **STATED), remove=["a"], operation="replace")
    assert table().current().listing().rewrites == ()


def test_what_an_expired_snapshot_did_is_not_told(create: Create, table: Make, root: Path) -> None:
    create()
    first = log.commit(root, log.data_file("a", 2, **STATED))
    log.commit(root, log.data_file("new", 2, **STATED), remove=["a"], operation="replace")
    assert table().current().listing().rewrites
    log.rewrite(
        root,
        lambda metadata: metadata.update(
            snapshots=[each for each in metadata["snapshots"] if each["snapshot-id"] != first]
        ),
    )
    assert table().current().listing().rewrites == ()


def test_a_rewrite_that_can_not_be_read_is_no_reason_not_to_look(
    create: Create, table: Make, root: Path
) -> None:
    create()
    first = log.commit(root, log.data_file("a", 2, **STATED))
    log.commit(root, log.data_file("new", 2, **STATED), remove=["a"], operation="replace")
    (root / "metadata" / f"snap-{first}.avro").unlink()
    rewrites._recent.clear()
    listing = table().current().listing()
    assert (listing.names, listing.rewrites) == (["new"], ())


def test_there_are_no_more_rewrites_than_can_be_told(
    create: Create, table: Make, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()
    log.commit(root, log.data_file("0", 2, **STATED))
    for number in range(1, 5):
        new = log.data_file(str(number), 2, **STATED)
        log.commit(root, new, remove=[str(number - 1)], operation="replace")
    assert [each.added[0].name for each in table().current().listing().rewrites] == ["1", "2", "3", "4"]
    monkeypatch.setattr(rewrites, "_MOST", 2)
    assert [each.added[0].name for each in table().current().listing().rewrites] == ["3", "4"]
    monkeypatch.setattr(rewrites, "_MOST_FILES", 3)
    rewrites._recent.clear()
    assert [each.added[0].name for each in table().current().listing().rewrites] == ["4"]
