"""Delta commits written by hand, for what the deltalake library reads but does not write."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

Action = dict[str, Any]


def commit(root: Path, *actions: Action) -> None:
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = len(list(log.glob("*.json")))
    (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))


def actions(root: Path, kind: str) -> list[Action]:
    lines = [
        line
        for file in sorted((root / "_delta_log").glob("*.json"))
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
    """An inline vector: a roaring bitmap with one array container, as Z85."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16)
    bitmap += b"".join(struct.pack("<H", row) for row in rows)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    data += b"\0" * (-len(data) % 4)
    words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    text = "".join(_Z85[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}
