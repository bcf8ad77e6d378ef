"""What names the contents of a publication: it is held against that of other processes and versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mv_assets.buckets import DAY
from mv_assets.publish.contents import Contents, contents
from mv_assets.state.model import _SEAL, DataFile, Header, StoredRows

HEADER = Header("v", 7, 2 * DAY, "1d", 0, "d", None, 0, seal=_SEAL)
ROWS = StoredRows(
    bucket=[0, DAY],
    state=["VALID", "STALE"],
    generation=["g", "g"],
    rows=[3, 4],
    bytes=[30, 40],
    refreshed_at=[100, 200],
    reason=[None, "it looks odd"],
    token=[5, 6],
    current=[True, True],
)
FILES = (DataFile("v/g/a.parquet", 30, 3), DataFile("v/g/b.parquet", 40, 4))


def made(header: Header = HEADER, rows: StoredRows = ROWS, files: tuple[DataFile, ...] = FILES) -> Contents:
    return contents(header, rows, files)


def test_what_is_stored_in_tables_stays_what_it_was() -> None:
    # Another way to name contents needs another key of the summary: else each table seems to be another's.
    assert made().summary(0)["mv-assets.digest"] == made().digest == "5ef8c80c39c232e7a9bfbdcc9529cb91"


def test_it_does_not_name_what_nobody_is_shown() -> None:
    digest = made().digest
    assert made(header=replace(HEADER, version=8, reset_at=3, seal=_SEAL)).digest == digest
    assert made(rows=ROWS._replace(token=[5, 9], bytes=[1, 2])).digest == digest
    # Of one kind of database it is a number.
    assert made(rows=ROWS._replace(current=[1, 1])).digest == digest
    assert made(files=FILES[::-1]).digest == digest


@pytest.mark.parametrize(
    "changed",
    [
        {"bucket": [0, 2 * DAY]},
        {"state": ["STALE", "STALE"]},
        {"rows": [4, 3]},
        {"refreshed_at": [100, 201]},
        {"reason": [None, "a file came late"]},
    ],
)
def test_it_names_all_that_is_said_of_buckets(changed: dict[str, list[object]]) -> None:
    # Two histories of a map may write the same bucket at the same version.
    other = made(rows=ROWS._replace(**changed))  # type: ignore[arg-type]
    assert other.digest != made().digest
    assert not other.parts.keys() & made().parts.keys()


def test_it_names_watermark_definition_and_files() -> None:
    others = [
        made(header=replace(HEADER, watermark=DAY, seal=_SEAL)),
        made(header=replace(HEADER, definition="e", seal=_SEAL)),
        made(files=(DataFile("v/h/c.parquet", 70, 7),)),
    ]
    assert len({each.digest for each in (made(), *others)}) == 4
