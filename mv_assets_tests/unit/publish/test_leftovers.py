"""What expired snapshots leave behind, and how many manifests a reader has to read."""

from __future__ import annotations

from mv_assets_tests.support.published_lake import IcebergReader, PublishedLakes, rows_of


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
