"""Object stores in memory, each of which says something else about its objects."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

Info = dict[str, Any]


class Store(MemoryFileSystem):  # type: ignore[misc]
    """Memory under a scheme of its own; `reads` are the objects opened, `failing` those that can't be."""

    protocol = "plain"
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    reads: ClassVar[list[str]] = []
    bytes_read: ClassVar[list[int]] = []
    failing: ClassVar[dict[str, Exception]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace(f"{cls.protocol}://", "memory://")))

    @classmethod
    def clear(cls) -> None:
        for each in (cls.store, cls.reads, cls.bytes_read, cls.failing):
            each.clear()
        cls.pseudo_dirs[:] = [""]

    def find(self, path: str, **options: Any) -> Any:
        """As all stores do that have no better way: folder by folder."""
        return AbstractFileSystem.find(self, path, **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:  # noqa: FBT001, FBT002
        found = super().ls(path, detail=True, **options)
        return [self._shown(each) for each in found] if detail else [each["name"] for each in found]

    def info(self, path: str, **options: Any) -> Info:
        return self._shown(super().info(path, **options))

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if "r" in mode:
            self.reads.append(path)
            if path in self.failing:
                return _Failing(self.failing[path])
            return Counting(super()._open(path, mode, **options), self.bytes_read)
        return super()._open(path, mode, **options)

    def says(self, info: Info) -> Info:
        """What the store tells of an object, whose time of change is `created`."""
        return info

    def _shown(self, info: Info) -> Info:
        if info["type"] == "directory":
            return info
        when = info["created"]
        created = when if isinstance(when, datetime) else datetime.fromtimestamp(when, UTC)
        return self.says(info | {"created": created})


class Counting:
    """A file whose reads are counted."""

    def __init__(self, file: Any, counts: list[int]) -> None:
        self._file = file
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> Any:
        data = self._file.read(size)
        self._counts.append(len(data))
        return data


class _Failing:
    """A file whose reads fail."""

    closed = False

    def __init__(self, error: Exception) -> None:
        self._fail = error

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ("read", "seek", "readinto"):
            raise AttributeError(name)
        return self._raise

    def tell(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True

    def _raise(self, *_: Any) -> Any:
        raise self._fail


class Tagged(Store):
    """Says the entity tag, as S3 does."""

    protocol = "tagged"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    reads: ClassVar[list[str]] = []
    bytes_read: ClassVar[list[int]] = []
    failing: ClassVar[dict[str, Exception]] = {}

    def says(self, info: Info) -> Info:
        tag = sha256(self.store[info["name"]].getvalue()).hexdigest()
        return info | {"ETag": f'"{tag}"'}


class Seconds(Store):
    """Says the time of change as a number, as fsspec's own local file system does."""

    protocol = "seconds"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    reads: ClassVar[list[str]] = []
    bytes_read: ClassVar[list[int]] = []
    failing: ClassVar[dict[str, Exception]] = {}

    def says(self, info: Info) -> Info:
        return info | {"mtime": info.pop("created").timestamp()}


class Timeless(Store):
    """Says nothing but the size."""

    protocol = "timeless"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    reads: ClassVar[list[str]] = []
    bytes_read: ClassVar[list[int]] = []
    failing: ClassVar[dict[str, Exception]] = {}

    def says(self, info: Info) -> Info:
        return {key: value for key, value in info.items() if key != "created"}


STORES: tuple[type[Store], ...] = (Store, Tagged, Seconds, Timeless)


def register() -> None:
    for each in STORES:
        fsspec.register_implementation(each.protocol, each, clobber=True)
