"""deltalake and pyiceberg with faults: each of their calls that reaches a table or its folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from deltalake.fs import DeltaStorageHandler
from deltalake.table import TableAlterer
from deltalake.transaction import create_table_with_add_actions
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from mv_assets.publish.delta import table as published
from mv_assets_tests.proof.matrix.faults import Process, Raw, Upload, io_error

_CALLS: tuple[tuple[type[Any], tuple[str, ...], bool], ...] = (
    (deltalake.DeltaTable, ("__init__", "history", "get_add_actions"), False),
    (deltalake.DeltaTable, ("create_write_transaction", "restore", "vacuum", "create_checkpoint"), True),
    (TableAlterer, ("add_columns",), True),
    (DeltaStorageHandler, ("get_file_info", "get_file_info_selector", "open_input_file"), False),
    (DeltaStorageHandler, ("open_input_stream",), False),
    (DeltaStorageHandler, ("delete_file",), True),
    (PyArrowFile, ("open", "exists"), False),
    (PyArrowFileIO, ("delete",), True),
)


@contextmanager
def faulty(process: Process) -> Iterator[None]:
    def called(what: str, real: Any, *, changes: bool) -> Any:
        def call(*given: Any, **options: Any) -> Any:
            return process.call(what, lambda: real(*given, **options), io_error, changes=changes)

        return call

    def create(self: PyArrowFile, *, overwrite: bool = False) -> Any:
        path = Path(self._path)
        if not overwrite and path.exists():
            raise FileExistsError(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = process.call("create", lambda: Raw(process, str(path)), io_error, changes=True)
        return pa.PythonFile(opened, mode="w")

    def stream(self: DeltaStorageHandler, path: str, metadata: Any = None) -> Any:
        opened = self._handler.open_output_stream(path, metadata)
        return pa.PythonFile(Upload(process, opened), mode="w")

    with pytest.MonkeyPatch.context() as patch:
        for owner, names, changes in _CALLS:
            for name in names:
                patch.setattr(owner, name, called(name, getattr(owner, name), changes=changes))
        made = called("create table", create_table_with_add_actions, changes=True)
        patch.setattr(published, "create_table_with_add_actions", made)
        patch.setattr(
            deltalake.DeltaTable,
            "is_deltatable",
            staticmethod(called("is_deltatable", deltalake.DeltaTable.is_deltatable, changes=False)),
        )
        patch.setattr(PyArrowFile, "create", create)
        patch.setattr(DeltaStorageHandler, "open_output_stream", stream)
        yield
