"""What a publication needs of pyiceberg that it does not promise: a version that has it otherwise fails."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _ManifestMergeManager, _OverwriteFiles

from mv_assets.publish.iceberg.catalog import Overwrite, Staged
from mv_assets_tests.support.published_lake import IcebergReader, PublishedLakes


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (_OverwriteFiles._commit, ["self"]),
        (_OverwriteFiles._deleted_entries, ["self"]),
        (_OverwriteFiles._existing_manifests, ["self"]),
        (_OverwriteFiles._process_manifests, ["self", "manifests"]),
        (_OverwriteFiles._validate_required_deletes, ["self", "deleted_entries"]),
        (_OverwriteFiles.new_manifest_writer, ["self", "spec"]),
        (_ManifestMergeManager.merge_manifests, ["self", "manifests"]),
        (Transaction._apply, ["self", "updates", "requirements"]),
        (_pyarrow_to_schema_without_ids, ["schema"]),
    ],
)
def test_the_library_has_what_is_called_or_done_otherwise(
    function: Callable[..., Any], parameters: list[str]
) -> None:
    assert list(signature(function).parameters)[: len(parameters)] == parameters


def test_the_library_knows_what_is_staged_and_what_goes(iceberg_lake: PublishedLakes) -> None:
    made = iceberg_lake()
    made.days(0)
    made.run()
    made.published()
    assert isinstance(made.reader, IcebergReader)
    table = made.reader.table()
    staged = Staged(table)
    assert staged._table is table
    assert staged._updates == ()
    overwrite = Overwrite(Operation.OVERWRITE, staged, table.io, {}, [])
    assert overwrite._transaction is staged
    assert overwrite._deleted_data_files == set()
    assert isinstance(overwrite._snapshot_id, int)
