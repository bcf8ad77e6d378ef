"""The folder of a published Delta table: its log, which goes where it is withdrawn, and files of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from mv_assets.publish.contents import VIEW

_LOG = "_delta_log"
_CHECKPOINT = ".checkpoint"
_NEWEST = "_last_checkpoint"


@dataclass(frozen=True)
class Folder:
    """Files by the names that the log has of them, reached as the library reaches them."""

    uri: str
    storage: Mapping[str, str]

    def write(self, name: str, written: pa.Buffer) -> None:
        # The library's own streams take bytes, which is what they get of a buffer that was not full.
        with self._files.open_output_stream(name, buffer_size=written.size + 1) as out:
            out.write(written)

    def data(self) -> list[str]:
        """All files but the log's."""
        return [name for name in self._names("", recursive=True) if not name.startswith(f"{_LOG}/")]

    def delete(self, names: Iterable[str]) -> None:
        """Delete files; what is not there is fine."""
        for name in names:
            with suppress(FileNotFoundError):
                self._files.delete_file(name)

    def delete_log(self, last: int) -> None:
        """Delete a log up to a version of which there is a checkpoint.

        The oldest goes first, and at last the checkpoint and that version's own: readers find it, or no
        table. The library writes on top of no checkpoint alone.
        """
        self.delete(sorted(self._names(_LOG), key=lambda name: _turn(name, last)))

    def delete_remains(self, view: str) -> None:
        """Delete what peers have written of a view on top of a log that is gone; nobody can read it."""
        names = self._names(_LOG)
        if self._begins(names) or not all(self._is_of(view, name) for name in names):
            return
        self.delete(names)

    def delete_empty(self, *, whole: bool) -> None:
        """Leave no empty folder behind: that of the log, or the whole."""
        if self._is_local:
            with suppress(OSError):
                Path(self.uri, _LOG).rmdir()
                if whole:
                    Path(self.uri).rmdir()

    def begins(self) -> bool:
        """Whether there is a log that can be read from its beginning."""
        return self._begins(self._names(_LOG))

    def _begins(self, names: Iterable[str]) -> bool:
        return any(_CHECKPOINT in name or name == f"{_LOG}/{0:020}.json" for name in names)

    def _is_of(self, view: str, name: str) -> bool:
        lines: list[dict[str, Any]] = []
        with suppress(ValueError), self._files.open_input_stream(name) as stream:
            lines = [json.loads(line) for line in stream.read().decode().splitlines()]
        return any(line.get("commitInfo", {}).get(VIEW) == view for line in lines)

    def _names(self, below: str, *, recursive: bool = False) -> list[str]:
        if self._is_local and not Path(self.uri).is_dir():
            return []
        selector = fs.FileSelector(below, allow_not_found=True, recursive=recursive)
        found = self._files.get_file_info(selector)
        return sorted(each.path for each in found if each.type is fs.FileType.File)

    @property
    def _files(self) -> fs.FileSystem:
        if self._is_local:
            Path(self.uri).mkdir(parents=True, exist_ok=True)
        return fs.PyFileSystem(DeltaStorageHandler(self.uri, dict(self.storage)))

    @property
    def _is_local(self) -> bool:
        return "://" not in self.uri


def _turn(name: str, last: int) -> tuple[bool, bool, bool, str]:
    file = name.rpartition("/")[2]
    is_last = file.startswith(f"{last:020}.")
    return is_last and _CHECKPOINT not in file, is_last, file == _NEWEST, name
