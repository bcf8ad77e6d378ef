"""Several stores driven as one: every call goes to all of them, and all must answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from mv_assets.errors import MvError
from mv_assets.state.store import Store
from mv_assets.state.store.map_reader import MapReader
from mv_assets.state.store.map_writer import MapWriter
from mv_assets.state.store.retry import Retry


class LockstepStore(Store):
    def __init__(self, *stores: Store) -> None:
        self.stores = stores
        self.retry = Retry()

    @contextmanager
    def read(self, view: str) -> Iterator[MapReader]:
        with ExitStack() as stack:
            yield LockstepMap(view, [stack.enter_context(store.read(view)) for store in self.stores])

    @contextmanager
    def write(self, view: str, *, lock: bool = True) -> Iterator[MapWriter]:
        with ExitStack() as stack:
            yield LockstepMap(
                view, [stack.enter_context(store.write(view, lock=lock)) for store in self.stores]
            )

    @contextmanager
    def write_all(self, views: Iterable[str], *, lock: bool = True) -> Iterator[list[MapWriter]]:
        [view] = views
        with self.write(view, lock=lock) as writer:
            yield [writer]


class LockstepMap(MapWriter):
    """Forwards every public call; an answer that differs between the stores fails the test."""

    def __init__(self, view: str, maps: list[Any]) -> None:
        self.view = view
        self._maps = maps

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("view", "known_header", "uncollected", "beat"):
            return object.__getattribute__(self, name)
        return _on_all(name, [getattr(each, name) for each in self._maps])


def _on_all(name: str, calls: list[Callable[..., Any]]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        args = tuple(list(arg) if isinstance(arg, Iterator) else arg for arg in args)
        answers = [_answer(each, *args, **options) for each in calls]
        assert all(answer == answers[0] for answer in answers), f"{name} differs: {answers}"
        if isinstance(answers[0], type):
            raise answers[0]
        return answers[0]

    return call


def _answer(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The answer in a form that can be compared; of an error, its kind."""
    try:
        answer = call(*args, **options)
    except MvError as error:
        return type(error)
    return list(answer) if isinstance(answer, Iterator) else answer
