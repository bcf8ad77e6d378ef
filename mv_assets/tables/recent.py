"""What a process keeps of what it found out, so that it need not find it out again; and for how long."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any, Generic, TypeVar

from mv_assets.errors import SettingRefused

WHOLE_LOOK_S = 3_600
_WHOLE_LOOK = "MV_ASSETS_WHOLE_LOOK"

T = TypeVar("T")


class Recent(Generic[T]):
    """Values that were wanted last, as many as weigh no more than so much together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._kept: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> T | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Any, value: T, weight: int) -> None:
        with self._lock:
            self._weight -= self._kept.pop(key, (value, 0))[1]
            self._kept[key] = value, weight
            self._weight += weight
            while self._weight > self._most:
                self._weight -= self._kept.popitem(last=False)[1][1]

    def forget(self, key: Any) -> None:
        with self._lock:
            if key in self._kept:
                self._weight -= self._kept.pop(key)[1]

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._weight = 0


def whole_look_ms() -> int:
    """How long what earlier looks found out is relied on, before a look goes by nothing but what is there.

    Raises:
        SettingRefused: the environment says something else than a time.

    """
    given = os.environ.get(_WHOLE_LOOK)
    if not given:
        return WHOLE_LOOK_S * 1_000
    if not (given.isascii() and given.isdigit()):
        instead = f"write {WHOLE_LOOK_S}, or 0 to have each look compare everything, or unset it"
        raise SettingRefused(_WHOLE_LOOK, given, "which is no whole number of seconds", instead)
    return int(given) * 1_000


def is_due(since: int, now: int) -> bool:
    """Whether a whole look is due again, as it is where the clock was set back."""
    return not since <= now < since + whole_look_ms()
