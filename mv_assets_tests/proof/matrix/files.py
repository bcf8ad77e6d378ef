"""The file system with faults: what looks and the warehouse ask of it, call by call."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from mv_assets.config import Storage
from mv_assets.run import warehouse
from mv_assets.tables.files import local, locations
from mv_assets.tables.files.locations import filesystem_at
from mv_assets_tests.proof.matrix.faults import Process, Raw, io_error
from mv_assets_tests.proof.matrix.stores import store_of

_ASKING = ("get_file_info", "open_input_file")
_CHANGING = ("create_dir", "delete_file", "delete_dir")


@contextmanager
def faulty(process: Process) -> Iterator[None]:
    def called(what: str, function: Any, *, changes: bool) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return process.call(what, lambda: function(*arguments, **options), io_error, changes=changes)

        return call

    class Disk(fs.LocalFileSystem):  # type: ignore[misc]
        """The real one, call by call."""

        def open_output_stream(self, path: str, **_options: Any) -> Any:
            opened = process.call("create", lambda: Raw(process, path), io_error, changes=True)
            return pa.PythonFile(opened, mode="w")

    for name in (*_ASKING, *_CHANGING):
        inherited = getattr(fs.LocalFileSystem, name)

        def method(self: Any, *given: Any, _name: str = name, _real: Any = inherited, **options: Any) -> Any:
            changes = _name in _CHANGING
            return process.call(_name, lambda: _real(self, *given, **options), io_error, changes=changes)

        setattr(Disk, name, method)

    def at(path: str, _storage: Storage | None) -> tuple[fs.FileSystem, str]:
        return Disk(), filesystem_at(path)[1]

    listing = {name: called(name, getattr(os, name), changes=False) for name in ("scandir", "stat")}
    settling = {
        "open": called("open", os.open, changes=False),
        "fsync": called("fsync", os.fsync, changes=True),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "os", SimpleNamespace(**(vars(os) | listing)))
        patch.setattr(
            local, "pa", SimpleNamespace(**(vars(pa) | {"OSFile": called("read", pa.OSFile, changes=False)}))
        )
        patch.setattr(warehouse, "os", SimpleNamespace(**(vars(os) | settling)))
        patch.setattr(warehouse, "filesystem_at", at)
        patch.setattr(locations, "_store", lambda *_: store_of(process))
        yield
