"""Bits turned around in every byte of delete files and metadata files: a named error, and no other rows.

Nothing vouches for the values inside a manifest: neither Iceberg nor Avro has checksums of them. One that
still decodes, and is as long and of as many files as its manifest list says, is taken at its word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io.pyarrow import PyArrowFileIO

from mv_assets.tables.iceberg import avro, positions
from mv_assets.tables.parquet.footer import Unusable
from mv_assets_tests.unit.tables.iceberg import log
from mv_assets_tests.unit.tables.iceberg.tables import Create, Make, long, paths, rows


def turned(content: bytes, after: int = 0) -> Iterator[bytes]:
    """The content with a bit of each of its bytes turned around, another bit in the next byte.

    Before the byte `after`, it is some bytes only.
    """
    for at in [*range(0, after, 17), *range(after, len(content))]:
        yield content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]


def cut(content: bytes) -> Iterator[bytes]:
    return (content[:at] for at in range(0, len(content), len(content) // 50))


@pytest.mark.parametrize("vector", [False, True])
def test_126_damaged_deletes_give_a_named_error_or_the_same_rows(
    create: Create,
    table: Make,
    root: Path,
    vector: bool,  # noqa: FBT001
) -> None:
    made = create()
    made.append(rows(*[1] * 9, v=list(range(9))))
    (path,) = paths(made)
    file = root / "d"
    if vector:
        log.commit(root, *log.vectors(file, {path: [0, 3, 8]}))
    else:
        log.commit(root, log.position_deletes(file, (path, 0), (path, 3), (path, 8), (f"{path}x", 1)))
    reading = table()
    listing = reading.current().listing()
    (name,) = listing.details.deletes

    def read() -> list[int] | None:
        positions._recent.clear()
        try:
            return reading.deleted(listing, name).to_pylist()  # type: ignore[no-any-return]
        except Unusable as error:
            return None if str(file) in str(error) else [-1]

    whole = file.read_bytes()
    seen = [[0, 3, 8]]
    for content in [*turned(whole), *cut(whole)]:
        file.write_bytes(content)
        found = read()
        seen += [] if found in (None, [0, 3, 8]) else [found]
    assert seen == [[0, 3, 8]]


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("which", ["list", "data", "deletes"])
def test_damaged_metadata_gives_a_named_error_or_as_many_files(
    create: Create, root: Path, which: str, codec: AvroCompressionCodec
) -> None:
    create()
    for number in range(3):
        stated = log.bounds(1, long(number), long(number))
        log.commit(root, log.data_file(f"{root}/data/{number}.parquet", **stated), codec=codec)
    number = log.commit(root, log.position_deletes(root / "d", (f"{root}/data/1.parquet", 0)), codec=codec)
    io, listed = PyArrowFileIO(), f"{root}/metadata/snap-{number}.avro"
    manifests = avro.manifests(io, listed)
    manifest = next(each for each in manifests if each.deletes is (which == "deletes"))
    file = Path(listed if which == "list" else manifest.path)

    def read() -> Sequence[object] | None:
        try:
            return avro.manifests(io, listed) if which == "list" else avro.entries(io, manifest, 1)
        except (ValueError, OSError) as error:
            return None if file.name in str(error) else []

    whole, expected = file.read_bytes(), read()
    assert expected
    # The schema before the first mark is long, and the same in all.
    for content in turned(whole, whole.index(whole[-16:])):
        file.write_bytes(content)
        found = read()
        assert found is None or len(found) == len(expected)
    for content in cut(whole):
        file.write_bytes(content)
        assert read() is None
