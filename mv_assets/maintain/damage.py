"""Generation files that are gone, or are no longer what was committed; found without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.model import DataFile

Files = Mapping[str, Sequence[DataFile]]


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with a generation, and whether it is that something lacks."""

    what: str
    missing: bool


def damaged(warehouse: Warehouse, generations: Iterable[str], files: Files) -> dict[str, Damage]:
    """Generations of which a file is missing or has another size, by what the file system says of it.

    Raises:
        WarehouseUnusable: it says nothing, or nothing at all is there: a disk that is not mounted must not
            count as the loss of every bucket.

    """
    wanted = list(generations)
    found = {g: Damage(f"generation {g} is not in the state database", missing=True) for g in wanted}
    found = {generation: damage for generation, damage in found.items() if generation not in files}
    listed = [(generation, file) for generation in wanted for file in files.get(generation, ())]
    if not listed:
        return found
    infos = _infos(warehouse, [file for _, file in listed])
    for (generation, file), info in zip(listed, infos, strict=True):
        damage = _damage(file, info)
        if damage is not None:
            found.setdefault(generation, damage)
    return found


def _infos(warehouse: Warehouse, files: Sequence[DataFile]) -> list[fs.FileInfo]:
    try:
        filesystem, folder = warehouse.filesystem
        warehouse.see_anything()
        return list(filesystem.get_file_info([f"{folder}/{file.path}" for file in files]))
    except (OSError, pa.ArrowException) as error:
        raise WarehouseUnusable(warehouse.root, str(error)) from error


def _damage(file: DataFile, info: fs.FileInfo) -> Damage | None:
    if info.type == fs.FileType.NotFound:
        return Damage(f"generation file {file.path} is missing", missing=True)
    if info.size is not None and info.size != file.bytes:
        what = f"generation file {file.path} has {info.size} bytes instead of {file.bytes}"
        return Damage(what, missing=False)
    return None


def unreadable(warehouse: Warehouse, generations: Iterable[str], files: Files) -> dict[str, Damage]:
    """Generations of which a file can't be read to its end."""
    found: dict[str, Damage] = {}
    for generation in generations:
        for file in files[generation]:
            try:
                with warehouse.open(file.path) as opened:
                    for _ in pq.ParquetFile(opened).iter_batches():
                        pass
            except (pa.ArrowException, OSError, ValueError) as error:
                what = f"generation file {file.path} can't be read ({error})"
                found.setdefault(generation, Damage(what, isinstance(error, FileNotFoundError)))
    return found
