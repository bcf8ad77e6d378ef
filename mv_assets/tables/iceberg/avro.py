"""Manifest lists and manifests, read whole and checked: to be imported only where pyiceberg is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile, Block
from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.io import FileIO, InputFile
from pyiceberg.manifest import DATA_FILE_TYPE, MANIFEST_ENTRY_SCHEMAS, MANIFEST_LIST_FILE_SCHEMAS
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField

from mv_assets.tables.iceberg.entries import ADDED, DATA, EXISTING, Entry, Manifest, partition_text
from mv_assets.tables.lakehouse import short

# Reserved by the specification for the column of a position delete file that names the data file.
_FILE_PATH = 2_147_483_546
_DATA_FILE = 2
_SYNC = 16
# The most bytes of a number: one with more is damaged.
_LONGEST = 10


def _optional(fields: Iterable[NestedField]) -> list[NestedField]:
    """What a file of an older version does not have is null."""
    return [
        NestedField(part.field_id, part.name, part.field_type, required=False)
        for part in fields
        if part.field_id != _DATA_FILE
    ]


# The newest layouts: the library's own reading leaves out what deletion vectors are told by.
_LIST = Schema(*_optional(MANIFEST_LIST_FILE_SCHEMAS[3].fields))
_FILE = DATA_FILE_TYPE[3]
_ENTRIES = Schema(
    *_optional(MANIFEST_ENTRY_SCHEMAS[3].fields), NestedField(_DATA_FILE, "data_file", _FILE, required=True)
)
_PLACES = {part.name: place for place, part in enumerate(_FILE.fields)}


def manifests(io: FileIO, path: str) -> list[Manifest]:
    """The manifests of a manifest list.

    Raises:
        ValueError: it is damaged; the message names it.
        OSError: it can't be read.

    """
    with _named("manifest list", path), _File(io.new_input(path), _LIST) as file:
        names = [part.name for part in _LIST.fields]
        # A record of theirs has no other way to its values.
        return [_manifest(dict(zip(names, record._data, strict=True))) for record in file]  # noqa: SLF001


def entries(io: FileIO, manifest: Manifest, time: int | None) -> list[Entry]:
    """The files of a manifest, deleted ones too, with what is told of the time column of that id.

    Raises:
        ValueError: it is damaged, or not what the manifest list says it is; the message names it.
        OSError: it can't be read.

    """
    with _named("manifest", manifest.path), _File(io.new_input(manifest.path), _ENTRIES) as file:
        if file.size != manifest.length:
            raise ValueError(f"it has {file.size} bytes, and should have {manifest.length}")
        said = file.header.meta
        content = "deletes" if manifest.deletes else "data"
        if said.get("content", content) != content:
            raise ValueError(f"it is of {said['content']}, and its manifest list says {content}")
        if int(said.get("partition-spec-id", manifest.spec)) != manifest.spec:
            raise ValueError(
                f"it is of partition spec {said['partition-spec-id']}, and not of {manifest.spec}"
            )
        found = [_entry(manifest, time, *record._data) for record in file]  # noqa: SLF001
        counted = Counter(entry.status for entry in found)
        counts = [counted[status] for status in (ADDED, EXISTING, 2)]
        if manifest.counts is not None and counts != manifest.counts:
            raise ValueError(f"it has {counts} files added, existing and deleted, and not {manifest.counts}")
        return found


def _manifest(said: Mapping[str, Any]) -> Manifest:
    path, content = said["manifest_path"], said["content"] or 0
    if not path or content not in (0, 1):
        raise ValueError(f"it names a manifest {path!r} of content {content}")
    counts = [said[f"{kind}_files_count"] for kind in ("added", "existing", "deleted")]
    return Manifest(
        path,
        said["manifest_length"],
        said["partition_spec_id"],
        content == 1,
        said["sequence_number"] or 0,
        said["added_snapshot_id"],
        None if None in counts else counts,
    )


def _entry(
    manifest: Manifest,
    time: int | None,
    status: int,
    snapshot: int | None,
    sequence: int | None,
    _file_sequence: int | None,
    file: Record,
) -> Entry:
    if sequence is None:
        if status == EXISTING and manifest.sequence:
            raise ValueError("it has a file that is older than it, without a sequence number")
        sequence = manifest.sequence
    values = file._data  # noqa: SLF001
    content = int(values[_PLACES["content"]])
    if status not in (0, 1, 2) or (content != DATA) is not manifest.deletes or content not in (0, 1, 2):
        raise ValueError(f"it has a file of status {status} and content {content}")

    def of(name: str, field: int | None) -> Any:
        told: Mapping[int, Any] | None = values[_PLACES[name]]
        return told.get(field) if told and field is not None else None

    deletes: dict[str, Any] = {}
    if manifest.deletes:
        deletes = {
            "equality_ids": values[_PLACES["equality_ids"]],
            "target": values[_PLACES["referenced_data_file"]],
            "offset": values[_PLACES["content_offset"]],
            "length": values[_PLACES["content_size_in_bytes"]],
            "path_low": of("lower_bounds", _FILE_PATH),
            "path_high": of("upper_bounds", _FILE_PATH),
        }
    return Entry(
        status,
        manifest.snapshot if snapshot is None else snapshot,
        sequence,
        content,
        values[_PLACES["file_path"]],
        values[_PLACES["file_format"]].upper(),
        partition_text(values[_PLACES["partition"]]._data),  # noqa: SLF001
        values[_PLACES["record_count"]],
        values[_PLACES["file_size_in_bytes"]],
        values[_PLACES["key_metadata"]] is not None,
        of("lower_bounds", time),
        of("upper_bounds", time),
        of("null_value_counts", time),
        **deletes,
    )


@contextmanager
def _named(what: str, path: str) -> Iterator[None]:
    """An error that names the file; what a damaged one makes the library say may be anything."""
    try:
        yield
    except OSError as error:
        raise OSError(f"its {what} {path} can't be opened ({short(error)})") from error
    except Exception as error:
        raise ValueError(f"its {what} {path} is damaged ({short(error)})") from error


class _Decoder(BinaryDecoder):
    """A decoder that stays inside its bytes: the library's fast one reads on, and ends the process."""

    __slots__ = ("_at", "_data", "_end")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._end = len(data)

    @property
    def left(self) -> int:
        return self._end - self._at

    def tell(self) -> int:
        return self._at

    def read(self, n: int) -> bytes:
        at = self._at
        self.skip(n)
        return self._data[at : self._at]

    def skip(self, n: int) -> None:
        if not 0 <= n <= self.left:
            raise EOFError(f"{n} bytes wanted where {self.left} are left")
        self._at += n

    def read_int(self) -> int:
        data, at = self._data, self._at
        try:
            byte = data[at]
            at += 1
            value = byte & 0x7F
            shift = 7
            while byte & 0x80:
                byte = data[at]
                at += 1
                value |= (byte & 0x7F) << shift
                shift += 7
        except IndexError:
            raise EOFError("a number wanted where no bytes are left") from None
        if at - self._at > _LONGEST:
            raise ValueError("a number of more than 64 bits")
        self._at = at
        return (value >> 1) ^ -(value & 1)

    def skip_int(self) -> None:
        self.read_int()

    def read_ints(self, n: int) -> tuple[int, ...]:
        self._has(n)
        read = self.read_int
        return tuple([read() for _ in range(n)])

    def read_int_bytes_dict(self, n: int, dest: dict[int, bytes]) -> None:
        self._has(n)
        for _ in range(n):
            key = self.read_int()
            dest[key] = self.read(self.read_int())

    def read_bytes(self) -> bytes:
        return self.read(self.read_int())

    def skip_bytes(self) -> None:
        self.skip(self.read_int())

    def _has(self, values: int) -> None:
        """Each takes a byte at least: no loop is longer than the file."""
        if values > self.left:
            raise EOFError(f"{values} values wanted where {self.left} bytes are left")


class _File(AvroFile[Record]):
    """A file whose every byte is accounted for: the library takes what is cut off for the end."""

    __slots__ = ("size",)

    def __init__(self, file: InputFile, wanted: Schema) -> None:
        super().__init__(file, wanted)
        self.size = 0

    def __enter__(self) -> Self:
        with self.input_file.open() as stream:
            content = stream.read()
        self.size = len(content)
        self.decoder = _Decoder(content)
        self.header = self._read_header()
        self.schema = self.header.get_schema()
        self.reader = resolve_reader(self.schema, self.read_schema or self.schema)
        return self

    def __iter__(self) -> Iterator[Record]:  # type: ignore[override]
        codec = self.header.compression_codec()
        while self.decoder.tell() < self.size:
            records, content = self.decoder.read_int(), self.decoder.read_bytes()
            decoder = _Decoder(codec.decompress(content) if codec else content)
            block: Block[Record] = Block(self.reader, records, decoder)
            yield from block
            if self.decoder.read(_SYNC) != self.header.sync or decoder.left:
                raise ValueError("a block of it is not as long as it says")
