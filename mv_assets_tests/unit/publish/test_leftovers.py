"""What expired snapshots leave behind, and how many manifests a reader has to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mv_assets_tests.acceptance.test_readers import Broken, Crash
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.published_lake import KEEP, IcebergReader, PublishedLakes, rows_of
from mv_assets_tests.support.warehouse_lake import GRACE


def test_what_is_kept_of_a_table_does_not_grow_with_its_publications(iceberg_lake: PublishedLakes) -> None:
    made = iceberg_lake(keep=0)
    made.days(*range(3))
    made.run()
    made.published()
    place = made.folder / "warehouse" / "_iceberg" / "marts"
    for number in range(40):
        made.overwrite(number % 3)
        made.later(1)
        made.published()
    made.check_published()
    assert isinstance(made.reader, IcebergReader)
    table = made.reader.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert len(snapshot.manifests(table.io)) < 30
    assert len(list((place / "v" / "metadata").iterdir())) < 60
    assert len(list((place / "v__buckets" / "data").iterdir())) <= 3
    for name in ("v", "v__buckets"):
        for known in made.reader.snapshots(name):
            made.reader.rows(name, known)


def test_a_snapshot_that_somebody_tagged_is_kept_with_its_files(iceberg_lake: PublishedLakes) -> None:
    made = iceberg_lake(keep=0)
    made.days(*range(3))
    made.run()
    first = made.published().snapshot
    assert isinstance(made.reader, IcebergReader)
    assert first is not None
    made.reader.table().manage_snapshots().create_tag(int(first), "end of year").commit()
    rows = rows_of(made.reader.rows(snapshot=first))
    for number in range(3):
        made.overwrite(number)
        made.later(120_000)
        made.published()
        made.collect()
    assert rows_of(made.reader.rows(snapshot=first)) == rows
    made.check_published()


def test_a_branch_that_somebody_writes_to_is_kept_with_all_that_it_was_made_of(
    iceberg_lake: PublishedLakes,
) -> None:
    made = iceberg_lake(keep=0)
    made.days(*range(3))
    made.run()
    first = made.published().snapshot
    assert isinstance(made.reader, IcebergReader)
    assert first is not None
    made.reader.table().manage_snapshots().create_branch(int(first), "theirs").commit()
    row, reader = made.reader.rows().slice(0, 1), made.reader
    for number in range(4):
        # A second time on top of ours of before, after ours of later.
        reader.table().append(row, branch="theirs")
        made.overwrite(number % 3)
        made.later(120_000)
        made.published()
        made.collect()
    head = reader.table().refs()["theirs"].snapshot_id
    assert reader.rows(snapshot=str(head)).num_rows == 6 + 4
    made.check_published()


def test_of_a_commit_that_lost_nothing_is_deleted(iceberg_lake: PublishedLakes) -> None:
    """A snapshot that it was about to forget is kept by a tag, that came at the same time as a peer."""
    made = iceberg_lake(keep=0)
    made.days(*range(3))
    made.run()
    first = made.published().snapshot
    reader = made.reader
    assert isinstance(reader, IcebergReader)
    table, rows = reader.table(), rows_of(reader.rows(snapshot=first))
    made.overwrite(0)
    made.published()
    made.later(120_000)

    class Late:
        """Before its commit, a tag and a peer's, who is killed before he notes it."""

        def __init__(self, target: Any) -> None:
            self._target = target

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._target, name)
            return self._commit if name == "commit" else found

        def _commit(self, *given: Any) -> Any:
            table.refresh().manage_snapshots().create_tag(int(first or 0), "end of year").commit()
            made.wrap = lambda target: Broken(target, "commit_buckets")
            with pytest.raises(Crash):
                made.publish()
            made.wrap = lambda target: target
            return self._target.commit(*given)

    made.overwrite(1)
    made.wrap = Late
    made.published()
    made.check_published()
    assert rows_of(reader.rows(snapshot=first)) == rows


def test_what_could_not_be_read_rightly_any_more_goes_when_its_time_is_over(
    iceberg_lake: PublishedLakes,
) -> None:
    made = iceberg_lake()
    made.days(*range(3))
    made.run()
    made.published()
    reader = made.reader
    assert isinstance(reader, IcebergReader)
    for kind in ("STRING", "DOUBLE", "BOOLEAN"):
        sql = f"SELECT date_trunc('hour', at) AS hour, CAST(count(*) AS {kind}) AS n FROM events GROUP BY ALL"
        made.declare(view(sql=sql))
        made.run()
        made.later(GRACE)
        made.published()
    place = made.folder / "warehouse" / "_iceberg" / "marts" / "v" / "metadata"
    before = set(place.glob("*.avro"))
    assert before > named(reader)
    assert made.collect().deleted == {}
    assert set(place.glob("*.avro")) == before
    made.later(KEEP + GRACE)
    assert len(made.collect().deleted) == 3
    assert set(place.glob("*.avro")) == named(reader)
    made.check_published()


def named(reader: IcebergReader) -> set[Path]:
    """The lists of files that a table's metadata still names."""
    table = reader.table()
    found = set[str]()
    for snapshot in table.snapshots():
        found |= {snapshot.manifest_list, *(each.manifest_path for each in snapshot.manifests(table.io))}
    return {Path(path.removeprefix("file://")) for path in found}
