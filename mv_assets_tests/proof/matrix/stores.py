"""An object store by Arrow, call by call: its one bucket is this machine's disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyarrow import fs

from mv_assets_tests.proof.matrix.faults import Process, io_error

T = TypeVar("T")
_BUCKET = "lake"
STORE = f"s3://{_BUCKET}"


def store_of(process: Process) -> fs.FileSystem:
    """What Arrow asks of a store; whatever is not asked of it here it does not do."""
    disk = fs.LocalFileSystem()

    def called(what: str, function: Callable[[], T]) -> T:
        return process.call(what, function, io_error, changes=False)

    def get_file_info(_self: Any, paths: Sequence[str]) -> list[fs.FileInfo]:
        return called("HEAD", lambda: [_named(disk.get_file_info(_on_disk(path))) for path in paths])

    def get_file_info_selector(_self: Any, asked: fs.FileSelector) -> list[fs.FileInfo]:
        here = fs.FileSelector(
            _on_disk(asked.base_dir), allow_not_found=asked.allow_not_found, recursive=asked.recursive
        )
        return called("LIST", lambda: [_named(each) for each in disk.get_file_info(here)])

    def open_input_file(_self: Any, path: str) -> Any:
        return called("GET", lambda: disk.open_input_file(_on_disk(path)))

    asked = (get_file_info, get_file_info_selector, open_input_file)
    known = {each.__name__: each for each in asked} | {"get_type_name": lambda _self: "store"}
    known |= {"normalize_path": lambda _self, path: path}
    others = dict.fromkeys(fs.FileSystemHandler.__abstractmethods__ - known.keys(), None)
    return fs.PyFileSystem(type("Store", (fs.FileSystemHandler,), {**others, **known})())


def _on_disk(path: str) -> str:
    return path.removeprefix(_BUCKET)


def _named(found: fs.FileInfo) -> fs.FileInfo:
    return fs.FileInfo(f"{_BUCKET}{found.path}", found.type, size=found.size, mtime_ns=found.mtime_ns)
