"""Our reading of a Delta log against the library's, after each operation that the library has."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from mv_assets.errors import MvError
from mv_assets.tables.errors import TableRefused, TableUnreadable
from mv_assets_tests.unit.tables.delta import log
from mv_assets_tests.unit.tables.delta.library import same
from mv_assets_tests.unit.tables.delta.rows import DAY, Make, ranges, rows


def some(*days: float | None, start: int = 0) -> pa.Table:
    return rows(*days, v=list(range(start, start + len(days))), p=[f"ä {at % 2}" for at in range(len(days))])


def merge(root: Path) -> None:
    source = some(1, 7, start=100)
    merging = DeltaTable(root).merge(source, "t.ts = s.ts", source_alias="s", target_alias="t")
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


def evolve(root: Path) -> None:
    write_deltalake(root, some(6).append_column("new", pa.array([1.5])), mode="append", schema_mode="merge")


def clean_up(root: Path) -> None:
    DeltaTable(root).create_checkpoint()
    DeltaTable(root).alter.set_table_properties({"delta.logRetentionDuration": "interval 0 days"})
    DeltaTable(root).create_checkpoint()
    DeltaTable(root).cleanup_metadata()


OPERATIONS: dict[str, Callable[[Path], object]] = {
    "append": lambda root: write_deltalake(root, some(4, None), mode="append"),
    "nulls only": lambda root: write_deltalake(root, some(None), mode="append"),
    "overwrite": lambda root: write_deltalake(root, some(4), mode="overwrite"),
    "overwrite a part": lambda root: write_deltalake(
        root, some(9)[:1], mode="overwrite", predicate="p = 'ä 0'"
    ),
    "delete": lambda root: DeltaTable(root).delete("v = 1"),
    "delete all": lambda root: DeltaTable(root).delete(),
    "update": lambda root: DeltaTable(root).update({"v": "v + 1"}, predicate="v > 1"),
    "merge": merge,
    "compact": lambda root: DeltaTable(root).optimize.compact(),
    "z-order": lambda root: DeltaTable(root).optimize.z_order(["v"]),
    "restore": lambda root: DeltaTable(root).restore(0),
    "vacuum": lambda root: DeltaTable(root).vacuum(0, dry_run=False, enforce_retention_duration=False),
    "new column": evolve,
    "added column": lambda root: DeltaTable(root).alter.add_columns([Field("x", PrimitiveType("long"))]),
    "property": lambda root: DeltaTable(root).alter.set_table_properties({"delta.appendOnly": "false"}),
    "constraint": lambda root: DeltaTable(root).alter.add_constraint({"positive": "v >= 0"}),
    "checkpoint": lambda root: DeltaTable(root).create_checkpoint(),
    "clean up": clean_up,
    "compact the log": lambda root: DeltaTable(root).compact_logs(0, DeltaTable(root).version()),
    "repair": lambda root: DeltaTable(root).repair(),
}


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_files_are_those_of_the_library_after(
    root: Path, table: Make, operation: str, *, partitioned: bool
) -> None:
    write_deltalake(root, some(1, 2), partition_by=["p"] if partitioned else None)
    write_deltalake(root, some(3, None, 5, start=2), mode="append")
    warm = table()
    warm.current().listing()
    OPERATIONS[operation](root)
    same(warm, warm.current().listing(), root)
    cold = table(keep=False)
    same(cold, cold.current().listing(), root)
    write_deltalake(root, some(8), mode="append", schema_mode="merge")
    same(warm, warm.current().listing(), root)


def test_partition_values_of_all_types_are_those_of_the_library(root: Path, table: Make) -> None:
    values: dict[str, tuple[pa.DataType, list[Any]]] = {
        "s": (pa.string(), ["a/b", "ü %25", None]),
        "i": (pa.int32(), [-1, 2**31 - 1, None]),
        "n": (pa.decimal128(12, 3), [Decimal("1.500"), Decimal("0.001"), None]),
        "f": (pa.float64(), [1.0, -2.5e-7, None]),
        "b": (pa.bool_(), [True, False, None]),
        "d": (pa.date32(), [date(2024, 2, 29), date(1, 1, 1), None]),
        "t": (pa.timestamp("us", "UTC"), [1_500_000, -1, None]),
        "z": (pa.timestamp("us"), [1_500_000, -62_135_596_800_000_000, None]),
    }
    columns = {name: pa.array(each, kind) for name, (kind, each) in values.items()}
    write_deltalake(root, rows(1, 2, 3, **columns), partition_by=list(values))
    same(table(), table().current().listing(), root)


# Checkpoints


CHECKPOINTS = ("classic", "in parts", "v2 json", "v2 parquet", "v2 under the classic name")


def checkpoint(root: Path, kind: str) -> None:
    """The library's checkpoint, written anew as others do."""
    DeltaTable(root).create_checkpoint()
    folder = root / "_delta_log"
    whole = max(folder.glob("*.checkpoint.parquet"))
    if kind == "classic":
        return
    content, version = pq.read_table(whole), whole.name[:20]
    whole.unlink()
    (folder / "_last_checkpoint").unlink()
    if kind == "in parts":
        for part in range(3):
            pq.write_table(
                content.slice(part * 2, 2 if part < 2 else None),
                folder / f"{version}.checkpoint.{part + 1:010}.{3:010}.parquet",
            )
        return
    valid = content["add"].is_valid()
    sidecars = folder / "_sidecars"
    sidecars.mkdir()
    files = content.filter(valid).select(["add"])
    pieces = [files.slice(0, 1), files.slice(1)]
    others = content.filter(pa.compute.invert(valid)).drop_columns("add").to_pylist()
    top = [{key: value for key, value in row.items() if value is not None} for row in others]
    for number, piece in enumerate(pieces):
        file = sidecars / f"s{number}.parquet"
        pq.write_table(piece, file)
        size = {"sizeInBytes": file.stat().st_size, "modificationTime": 1, "tags": []}
        top.append({"sidecar": {"path": file.name, **size}})
    top.append({"checkpointMetadata": {"version": int(version), "tags": []}})
    name = {
        "v2 json": f"{version}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "v2 parquet": f"{version}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet",
        "v2 under the classic name": f"{version}.checkpoint.parquet",
    }[kind]
    if name.endswith("json"):
        (folder / name).write_text("\n".join(json.dumps(_plain(action)) for action in top))
    else:
        pq.write_table(pa.Table.from_pylist(top, content.drop_columns("add").schema), folder / name)


def _plain(value: Any) -> Any:
    """Maps of Arrow as JSON has them."""
    if isinstance(value, dict):
        names = ("partitionColumns", "readerFeatures", "writerFeatures")
        found = {key: each for key, each in value.items() if each is not None}
        return {key: each if key in names else _plain(each) for key, each in found.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return {} if value == [] else value


def without_commits(root: Path) -> None:
    for file in (root / "_delta_log").glob("0*.json"):
        if "checkpoint" not in file.name:
            file.unlink()


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_checkpoints_of_all_kinds_are_read(root: Path, table: Make, kind: str) -> None:
    log.commit(
        root,
        log.protocol("v2Checkpoint", "deletionVectors"),
        log.metadata(log.column("ts", "timestamp"), log.column("v", "long")),
    )
    for day in range(4):
        write_deltalake(root, rows(day, v=[day]), mode="append")
    log.with_vector(root, log.deletion_vector(0))
    before = table(keep=False).current().listing()
    checkpoint(root, kind)
    for commits in ("there", "gone"):
        if commits == "gone":
            without_commits(root)
        after = table(keep=False).current().listing()
        assert sorted(after.segments(), key=str) == sorted(before.segments(), key=str)
        assert after.details == before.details
    same(table(), after, root)


@pytest.mark.parametrize("column", ["add", "path", "partitionValues"])
def test_a_checkpoint_without_what_it_must_have_is_no_empty_table(
    root: Path, table: Make, column: str
) -> None:
    write_deltalake(root, rows(1))
    seen = table(keep=False).current()
    DeltaTable(root).create_checkpoint()
    (file,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    content = file.read_bytes()
    assert content.count(column.encode()) > 0
    file.write_bytes(content.replace(column.encode(), column.upper().encode()))
    with pytest.raises(TableUnreadable, match=r"checkpoint _delta_log/.*can't be read"):
        seen.listing()


def test_a_checkpoint_of_which_parts_are_missing_is_not_taken(root: Path, table: Make) -> None:
    for day in range(5):
        write_deltalake(root, rows(day), mode="append")
    checkpoint(root, "in parts")
    max((root / "_delta_log").glob("*.checkpoint.*")).unlink()
    same(table(), table().current().listing(), root)


def test_statistics_that_a_checkpoint_has_as_columns_only_are_read(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2, None))
    write_deltalake(root, rows(3), mode="append")
    before = table(keep=False).current().listing()
    DeltaTable(root).create_checkpoint()
    (file,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    content = pq.read_table(file)
    parsed = [parsed_stats(json.loads(text)) if text else None for text in stats_of(content)]
    moments = pa.struct({"ts": pa.timestamp("us", "UTC")})
    kind = pa.struct(
        {
            "numRecords": pa.int64(),
            "minValues": moments,
            "maxValues": moments,
            "nullCount": pa.struct({"ts": pa.int64()}),
        }
    )
    adds = content["add"].combine_chunks()
    fields = [part for part in adds.type if part.name != "stats"]
    arrays = [adds.field(part.name) for part in fields]
    fields.append(pa.field("stats_parsed", kind))
    made = pa.StructArray.from_arrays(
        [*arrays, pa.array(parsed, kind)], fields=fields, mask=pa.compute.invert(adds.is_valid())
    )
    pq.write_table(content.set_column(content.schema.get_field_index("add"), "add", made), file)
    for data in root.glob("*.parquet"):
        data.unlink()
    after = table(keep=False).current().listing()
    assert not after.broken
    assert sorted(after.segments(), key=str) == sorted(before.segments(), key=str)
    assert after.nulls == before.nulls


def stats_of(content: pa.Table) -> list[str | None]:
    return [None if add is None else add["stats"] for add in content["add"].to_pylist()]


def parsed_stats(said: dict[str, Any]) -> dict[str, Any]:
    for bound in ("minValues", "maxValues"):
        said[bound] = {"ts": pa.scalar(said[bound]["ts"]).cast(pa.timestamp("us", "UTC")).as_py()}
    return said


# What a log may say


def test_stats_that_are_written_anew_change_no_checksum(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2))
    before = table().current().listing()
    (file,) = log.actions(root, "add")
    stated = json.loads(file["stats"]) | {"tightBounds": True, "more": 1}
    log.commit(root, {"add": file | {"dataChange": False, "stats": json.dumps(stated), "baseRowId": 7}})
    after = table().current().listing()
    assert list(after.segments()) == list(before.segments())
    assert not after.rewrites


@pytest.mark.parametrize("operation", ["property", "added column", "checkpoint", "vacuum", "constraint"])
def test_what_changes_no_file_changes_no_checksum(root: Path, table: Make, operation: str) -> None:
    write_deltalake(root, some(1, 2))
    before = table().current().listing()
    OPERATIONS[operation](root)
    assert list(table().current().listing().segments()) == list(before.segments())


def test_a_removed_file_is_removed_with_its_vector_only(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1, 2))
    (file,) = log.actions(root, "add")
    log.with_vector(root, log.deletion_vector(0))
    table().current().listing()
    for other in ({}, {"deletionVector": log.deletion_vector(1)}):
        log.commit(root, log.remove(file["path"], **other))
        assert ranges(table().current().listing()) == [(DAY, 2 * DAY)]
    log.commit(root, log.remove(file["path"], deletionVector=log.deletion_vector(0)))
    assert not table().current().listing().names
    same(table(), table().current().listing(), root)


WRONG = {
    "both adds and removes f.parquet": [log.remove("f.parquet"), log.add("f.parquet")],
    "adds f.parquet twice": [log.add("f.parquet"), log.add("f.parquet", size=7)],
    "adds a file 'f.parquet' of size '7'": [log.add("f.parquet", size="7")],
    "partition values": [log.add("f.parquet", None, {"p": 7})],
}


@pytest.mark.parametrize("why", WRONG)
def test_a_commit_that_says_what_can_not_be_is_named(root: Path, table: Make, why: str) -> None:
    write_deltalake(root, rows(1))
    table().current().listing()
    log.commit(root, *WRONG[why])
    with pytest.raises(TableUnreadable, match=rf"commit _delta_log/0+1\.json can't be understood.*{why}"):
        table().current()


def test_a_partition_value_that_is_none_of_its_type_is_named(root: Path, table: Make) -> None:
    fields = (log.column("ts", "timestamp"), log.column("p", "date"))
    log.commit(root, log.protocol(), log.metadata(*fields, partitioned=("p",)))
    table().current().listing()
    log.commit(root, log.add("f.parquet", None, {"p": "yesterday"}))
    with pytest.raises(TableUnreadable, match="'yesterday' in partition column p"):
        table().current().listing()


# Damage


def damaged(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


@pytest.mark.parametrize("warm", [False, True])
def test_bit_flips_in_a_commit_end_in_an_error_or_in_a_listing(
    root: Path, table: Make, *, warm: bool
) -> None:
    """A commit has no checksum: what can still be understood is what it says."""
    write_deltalake(root, rows(1, 2))
    if warm:
        table().current().listing()
    log.with_vector(root, log.deletion_vector(0))
    last = max((root / "_delta_log").glob("0*.json"))
    whole = last.read_bytes()
    if warm:
        whole = b"\n".join(line for line in whole.splitlines() if b"protocol" not in line)
    errors = 0
    for at in range(len(whole)):
        last.write_bytes(damaged(whole, at, at % 8))
        try:
            listing = table(keep=False).current().listing()
        except (TableUnreadable, TableRefused):
            errors += 1
        else:
            assert len(listing.listed()) <= 2
    assert errors > len(whole) // 4


def test_bit_flips_in_a_checkpoint_end_in_an_error_or_in_a_listing(root: Path, table: Make) -> None:
    for day in range(3):
        write_deltalake(root, rows(day), mode="append")
    DeltaTable(root).create_checkpoint()
    without_commits(root)
    (file,) = (root / "_delta_log").glob("*.checkpoint.parquet")
    whole, random_ = file.read_bytes(), random.Random(3)
    outcomes: set[bool | str] = set()
    for at in random_.sample(range(len(whole)), 600):
        file.write_bytes(damaged(whole, at, random_.randrange(8)))
        try:
            outcomes.add(len(table(keep=False).current().listing().listed()) <= 3)
        except MvError as error:
            outcomes.add(error.code)
    assert outcomes == {True, "table-unreadable"}


def test_a_table_that_was_replaced_is_listed_anew(root: Path, table: Make) -> None:
    write_deltalake(root, rows(1))
    table().current().listing()
    shutil.rmtree(root)
    write_deltalake(root, rows(5))
    assert ranges(table().current().listing()) == [(5 * DAY, 5 * DAY)]
