"""Delta commits written by hand, for what the deltalake library reads but does not write."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from pyroaring import BitMap64

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

Action = dict[str, Any]


def commit(root: Path, *actions: Action) -> None:
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = max((int(file.stem[:20]) for file in log.glob("0*.json")), default=-1) + 1
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def actions(root: Path, kind: str) -> list[Action]:
    lines = [
        line
        for file in sorted((root / "_delta_log").glob("0*.json"))
        for line in file.read_text().splitlines()
    ]
    return [action[kind] for action in map(json.loads, lines) if kind in action]


def protocol(*features: str) -> Action:
    names = list(features)
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": names,
            "writerFeatures": names,
        }
    }


def column(name: str, kind: Any, mapped: tuple[int, str] | None = None, **metadata: Any) -> Action:
    if mapped is not None:
        metadata |= {"delta.columnMapping.id": mapped[0], "delta.columnMapping.physicalName": mapped[1]}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct_of(*fields: Action) -> Action:
    return {"type": "struct", "fields": list(fields)}


def metadata(*fields: Action, partitioned: tuple[str, ...] = (), **configuration: str) -> Action:
    return {
        "metaData": {
            "id": "an-id",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(struct_of(*fields)),
            "partitionColumns": list(partitioned),
            "configuration": {key.replace("__", "."): value for key, value in configuration.items()},
            "createdTime": 1,
        }
    }


def add(path: str, stats: Action | None = None, partition: Action | None = None, **more: Any) -> Action:
    action = {
        "path": path,
        "partitionValues": partition or {},
        "size": 100,
        "modificationTime": 7,
        "dataChange": True,
    }
    return {"add": action | ({} if stats is None else {"stats": json.dumps(stats)}) | more}


def remove(path: str, **more: Any) -> Action:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1, **more}}


def stats(column: str, first: Any, last: Any, rows: int = 2, nulls: int = 0) -> Action:
    return {
        "numRecords": rows,
        "minValues": {column: first},
        "maxValues": {column: last},
        "nullCount": {column: nulls},
    }


def deletion_vector(*rows: int) -> Action:
    """An inline vector."""
    data = bitmap(*rows)
    return described("i", z85(data), data, rows)


def bitmap(*rows: int) -> bytes:
    return struct.pack("<I", 1681511377) + BitMap64(rows).serialize()


def z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    return "".join(_Z85[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


def described(storage: str, place: str, data: bytes, rows: Sequence[int], **more: int) -> Action:
    size = {"sizeInBytes": len(data), "cardinality": len(rows)}
    return {"storageType": storage, "pathOrInlineDv": place, **size, **more}


def vector_file(
    root: Path, *vectors: Sequence[int], prefix: str = "", absolute: bool = False
) -> list[Action]:
    """A file with some vectors, and how the log tells of each."""
    name = uuid4()
    file = root / prefix / f"deletion_vector_{name}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    place = f"file://{quote(str(file))}" if absolute else prefix + z85(name.bytes)
    content, found = b"\x01", []
    for rows in vectors:
        data = bitmap(*rows)
        found.append(described("p" if absolute else "u", place, data, rows, offset=len(content)))
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    file.write_bytes(content)
    return found


def with_vector(root: Path, vector: Action | None, path: str | None = None, **more: Any) -> None:
    """Delete rows of the file, else of the last one, by a vector instead of by the one it has."""
    file = [added for added in actions(root, "add") if path in (None, added["path"])][-1]
    before = {key: file[key] for key in ("deletionVector",) if key in file}
    now = {} if vector is None else {"deletionVector": vector}
    allowed = any("deletionVectors" in said.get("readerFeatures", ()) for said in actions(root, "protocol"))
    commit(
        root,
        *([] if allowed else [protocol("deletionVectors")]),
        remove(file["path"], **before, **more),
        {"add": {key: value for key, value in file.items() if key != "deletionVector"} | now | more},
    )
