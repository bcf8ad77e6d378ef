"""What was found out once, for as long as there is room for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_MOST = 500


class Memory(Generic[K, V]):
    """Forgets the oldest when there is too much. Threads may share it: at worst they find out twice."""

    def __init__(self, most: int = _MOST) -> None:
        self._known: dict[K, V] = {}
        self._most = most

    def get(self, key: K, find: Callable[[], V]) -> V:
        """What is known under the key, or is found now."""
        try:
            return self._known[key]
        except KeyError:
            found = find()
        self.put(key, found)
        return found

    def put(self, key: K, found: V) -> None:
        """Know something under the key from now on."""
        while len(self._known) >= self._most:
            self._known.pop(next(iter(self._known)), None)
        self._known[key] = found
