"""The models: some of the actors and some of what can happen, small enough to be searched whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mv_assets.state.model import Attempt, Planned
from mv_assets.views.view import Window
from mv_assets_tests.proof.simulation.memory import Memory
from mv_assets_tests.proof.simulation.world import (
    LIFETIME,
    NOW,
    Actor,
    Base,
    Collector,
    Content,
    Engine,
    Looker,
    Publisher,
    Reader,
    World,
    Writer,
    named,
)
from mv_assets_tests.support.memory_table import BASE, DAY, File


def cold(
    actors: tuple[Actor, ...], budget: dict[str, int], *, buckets: int = 2, freezes: bool = False
) -> World:
    """Declared and looked at, nothing computed yet; one file a bucket."""
    return _looked_at(World(_days(buckets), Memory(), actors, budget, buckets=buckets, freezes=freezes))


def warm(
    actors: tuple[Actor, ...], budget: dict[str, int], *, buckets: int = 2, freezes: bool = False
) -> World:
    """All buckets VALID, each in a generation of its own."""
    return _filled(cold(actors, budget, buckets=buckets, freezes=freezes))


def stopped(actors: tuple[Actor, ...], budget: dict[str, int]) -> World:
    """Of two buckets, the data stops within the first, which is closed when a lifetime has passed."""
    base = Base().put("a", File(1, 0, DAY - 2, 1))
    return _looked_at(World(base, Memory(), actors, budget, closes=NOW + LIFETIME - DAY))


def joined(
    actors: tuple[Actor, ...], budget: dict[str, int], *, freezes: bool = False, filled: bool = False
) -> World:
    """Two tables: a bucket reads its own day of the base, and of the further one a day before and half after.

    What may come late of that begins where the first bucket's window ends.
    """
    base = _days(2).put("further/a", File(1, 0, DAY - 1, 3)).put("further/b", File(1, DAY, _END - 1, 4))
    late = ("further/late", DAY + DAY // 2, _END - 1)
    world = World(base, Memory(), actors, budget, windows=_windows(), freezes=freezes, late=late)
    return _filled(_looked_at(world)) if filled else _looked_at(world)


def stalled(
    actors: tuple[Actor, ...], budget: dict[str, int], *, waits: bool = True, closes: int | None = None
) -> World:
    """The further table ends half a day before the first bucket's window; its next file completes both."""
    base = _days(2).put("further/a", File(1, 0, DAY - 1, 3))
    late, windows = ("further/b", DAY, _END - 1), _windows(waits=waits)
    return _looked_at(World(base, Memory(), actors, budget, windows=windows, late=late, closes=closes))


# Where the last window of the further table ends; and what closes the first bucket after a lifetime.
_END = 2 * DAY + DAY // 2
_CLOSES = NOW + LIFETIME - (DAY + DAY // 2)


def _windows(*, waits: bool = True) -> tuple[Window, ...]:
    return Window(BASE), Window("further", before=DAY, after=DAY // 2, waits=waits)


def _days(buckets: int) -> Base:
    base = Base()
    for day in range(buckets):
        base = base.put("abc"[day], File(1, day * DAY, (day + 1) * DAY - 1, day + 1))
    return base


def _looked_at(world: World) -> World:
    engine = Engine(world)
    engine.manager.declare(world.view("d1"))
    world.memory = engine.memory
    engine.manager.look(world.view("d1"), world.look(world.base, "d1")[0])
    return _remembered(world.evolve(memory=engine.memory))


def _remembered(world: World) -> World:
    """Whoever looks has looked before, and remembers it."""

    def remembering(actor: Actor) -> Actor:
        if not isinstance(actor, Looker):
            return actor
        return replace(actor, last=world.look(world.base, "d1", closes=actor.closes)[1])

    return world.evolve(actors=tuple(map(remembering, world.actors)))


def _filled(world: World) -> World:
    view = world.view("d1")
    for bucket, current in world.current_inputs(world.base, "d1").items():
        assert current.inputs is not None
        engine, planned = Engine(world), Planned(bucket, None, current.inputs)
        attempt = Attempt(f"first {bucket // DAY}", world.memory.snapshot().header.version, (planned,))
        engine.manager.register(view, attempt)
        seen = world.second_look(world.base, world.base, "d1", attempt)
        staged = world.staged(world.base, "d1", [bucket])
        engine.manager.commit_once(view, attempt, staged, seen, {bucket: None})
        data = tuple((named(read.source, read.name), read.crc) for read in staged[bucket].segments)
        version = engine.memory.snapshot().header.version
        world = world.evolve(
            memory=engine.memory,
            disk=world.disk | {attempt.generation: {bucket: data}},
            contents=world.contents | {(bucket, version): Content(data, "d1", 0, 0)},
        )
    return _remembered(world)


def _writers(*runs: int) -> tuple[Writer, ...]:
    return tuple(Writer("d1", count) for count in runs)


# Each model's quick form is searched whole by the tests, its deep form by `make prove`.
Form = Callable[[], World]
MODELS: dict[str, tuple[Form, Form]] = {
    "two writers, cold": (
        lambda: cold(_writers(1, 1), {"change": 2}),
        lambda: cold(_writers(2, 2), {"change": 2, "lost": 1}),
    ),
    "two writers, warm, and looks": (
        lambda: warm((*_writers(1, 1), Looker(1)), {"change": 2}),
        lambda: warm((*_writers(2, 2), Looker(2)), {"change": 2}),
    ),
    "a writer, looks and many changes": (
        lambda: warm((*_writers(2), Looker(2)), {"change": 2}),
        lambda: warm((*_writers(3), Looker(3)), {"change": 4}),
    ),
    "forced marks": (
        lambda: warm((*_writers(2), Looker(1)), {"change": 1, "force": 1, "lost": 1}),
        lambda: warm((*_writers(2, 1), Looker(1)), {"change": 2, "force": 2, "lost": 1}),
    ),
    "crashes": (
        lambda: cold(_writers(1, 1), {"change": 1, "crash": 1, "lost": 1}),
        lambda: cold((*_writers(2, 2), Looker(1)), {"change": 2, "crash": 2}),
    ),
    "gc and slow attempts": (
        lambda: warm(
            (*_writers(2), Looker(1), Collector(2)), {"change": 1, "expire": 1, "crash": 1, "lost": 1}
        ),
        lambda: warm((*_writers(2, 1), Looker(2), Collector(2)), {"change": 2, "expire": 2, "crash": 1}),
    ),
    "gc and readers": (
        lambda: warm((*_writers(1), Looker(1), Collector(1), Reader(1)), {"change": 1, "expire": 2}),
        lambda: warm(
            (*_writers(2), Looker(2), Collector(2), Reader(1), Reader(1)), {"change": 2, "expire": 2}
        ),
    ),
    "publishing and gc": (
        lambda: warm((*_writers(1), Publisher(2), Collector(1)), {"force": 1, "expire": 1, "crash": 1}),
        lambda: warm(
            (*_writers(2), Publisher(2), Publisher(1), Collector(2)), {"force": 2, "expire": 2, "crash": 1}
        ),
    ),
    "two publishers": (
        lambda: warm((*_writers(1), Publisher(2), Publisher(1)), {"force": 1, "crash": 1}),
        lambda: warm((*_writers(2), Publisher(2), Publisher(2)), {"force": 2, "expire": 1, "crash": 2}),
    ),
    "publishing and compaction": (
        lambda: warm((Publisher(2), Collector(1)), {"repoint": 1, "expire": 1, "crash": 1}),
        lambda: warm(
            (*_writers(1), Publisher(2), Collector(2)),
            {"force": 1, "repoint": 1, "expire": 2, "crash": 1},
        ),
    ),
    "compaction": (
        lambda: warm((*_writers(1), Looker(1), Collector(1)), {"change": 1, "repoint": 1, "expire": 1}),
        lambda: warm((*_writers(2), Looker(2), Collector(2)), {"change": 2, "repoint": 2, "expire": 1}),
    ),
    "two definitions": (
        lambda: warm(
            (*_writers(2), Writer("d2", 2, "down")), {"change": 1, "crash": 1, "adopt": 1, "declare": 0}
        ),
        lambda: warm(
            (*_writers(2), Writer("d2", 3, "down"), Looker(2)),
            {"change": 2, "crash": 2, "adopt": 1, "declare": 0},
        ),
    ),
    "three buckets and failures": (
        lambda: cold(_writers(2, 1), {"fail": 1, "change": 1}, buckets=3),
        lambda: cold((*_writers(2, 2), Looker(1)), {"fail": 2, "change": 1}, buckets=3),
    ),
    "freezing and two writers": (
        lambda: warm(_writers(1, 1), {"change": 2, "force": 1}, freezes=True),
        lambda: warm((*_writers(1, 1), Looker(1)), {"change": 2, "force": 1}, freezes=True),
    ),
    "freezing": (
        lambda: warm((*_writers(1), Looker(1)), {"change": 2, "force": 1}, freezes=True),
        lambda: warm((*_writers(2), Looker(3)), {"change": 3, "force": 1, "dimension": 1}, freezes=True),
    ),
    "dimension and upstream": (
        lambda: warm((*_writers(2), Looker(2)), {"change": 1, "dimension": 1, "upstream": 1}),
        lambda: warm((*_writers(2), Looker(3)), {"change": 1, "dimension": 2, "upstream": 2}),
    ),
    "a bucket that the clock closes": (
        lambda: stopped((*_writers(1), Looker(1), Looker(1, closes=False)), {"expire": 1, "force": 1}),
        lambda: stopped(
            (*_writers(2, 1), Looker(2), Looker(2, closes=False)), {"expire": 1, "force": 2, "change": 2}
        ),
    ),
    "two tables, a window": (
        lambda: joined((*_writers(1), Looker(1)), {"change": 2}),
        lambda: joined((*_writers(2, 1), Looker(1)), {"change": 2, "lost": 1}),
    ),
    "two tables, a window, warm": (
        lambda: joined((*_writers(2), Looker(1)), {"change": 2}, filled=True),
        lambda: joined((*_writers(2, 1), Looker(2)), {"change": 3, "crash": 1}, filled=True),
    ),
    "two tables, one stalls": (
        lambda: stalled((*_writers(2), Looker(1)), {"change": 2}),
        lambda: stalled((*_writers(2, 2), Looker(2)), {"change": 3}),
    ),
    "two tables, one is not waited for": (
        lambda: stalled((*_writers(1), Looker(1)), {"change": 2}, waits=False),
        lambda: stalled((*_writers(2, 1), Looker(2)), {"change": 2, "force": 1}, waits=False),
    ),
    "two tables, the clock closes a bucket": (
        lambda: stalled(
            (*_writers(1), Looker(1), Looker(1, closes=False)), {"expire": 1, "change": 1}, closes=_CLOSES
        ),
        lambda: stalled(
            (*_writers(2, 1), Looker(2), Looker(1, closes=False)),
            {"expire": 1, "change": 2, "force": 1},
            closes=_CLOSES,
        ),
    ),
    "two tables, freezing": (
        lambda: joined((*_writers(1), Looker(1)), {"change": 2, "force": 1}, freezes=True, filled=True),
        lambda: joined((*_writers(2), Looker(2)), {"change": 3, "force": 1}, freezes=True, filled=True),
    ),
    "a table that is only compacted": (
        lambda: warm((*_writers(1), Looker(2)), {"compact": 2}, buckets=3),
        lambda: warm((*_writers(2, 2), Looker(3), Looker(2)), {"compact": 2, "crash": 2}, buckets=3),
    ),
    "looks that remember": (
        lambda: warm((Looker(2),), {"change": 2, "force": 1}),
        lambda: warm((*_writers(2), Looker(3)), {"change": 3, "force": 1, "dimension": 1}),
    ),
    "a table that is compacted": (
        lambda: warm((*_writers(1), Looker(1)), {"change": 1, "compact": 1, "force": 1}),
        lambda: warm((*_writers(2), Looker(2)), {"change": 3, "compact": 2, "force": 1, "forget": 1}),
    ),
    "a table that is compacted, freezing": (
        lambda: warm((*_writers(1), Looker(1)), {"change": 1, "compact": 1, "forget": 1}, freezes=True),
        lambda: warm((*_writers(2), Looker(2)), {"change": 3, "compact": 2, "forget": 1}, freezes=True),
    ),
    "two tables that are compacted, a window": (
        lambda: joined((*_writers(1), Looker(1)), {"change": 1, "compact": 1}, filled=True),
        lambda: joined((*_writers(2), Looker(2)), {"change": 2, "compact": 2}, filled=True),
    ),
    "drops and whole-view marks": (
        lambda: warm((*_writers(2), Looker(1)), {"change": 1, "force view": 1, "drop": 1}),
        lambda: warm((*_writers(2, 1), Looker(1)), {"change": 1, "force view": 1, "drop": 1, "lost": 1}),
    ),
}
# Between the two: searched whole as well, but by `make prove`.
WHOLE: dict[str, Form] = {
    "two tables, a window": lambda: joined(_writers(1, 1), {"change": 2}),
    "a writer, looks and many changes": lambda: warm((*_writers(2), Looker(2)), {"change": 3}),
    "forced marks": lambda: warm((*_writers(2), Looker(1)), {"change": 2, "force": 1, "lost": 1}),
    "crashes": lambda: cold(_writers(2, 1), {"change": 1, "crash": 1, "lost": 1}),
    "two definitions": lambda: warm(
        (*_writers(2), Writer("d2", 2, "down")), {"change": 1, "crash": 2, "adopt": 1, "declare": 0}
    ),
    "freezing": lambda: warm((*_writers(1), Looker(2)), {"change": 2, "force": 1}, freezes=True),
    "a table that is compacted": lambda: warm(
        (*_writers(1), Looker(1)), {"change": 2, "compact": 1, "force": 1}
    ),
    "a table that is compacted twice": lambda: warm((*_writers(1), Looker(1)), {"change": 2, "compact": 2}),
    "a table that is compacted, freezing": lambda: warm(
        (*_writers(1), Looker(1)), {"change": 2, "compact": 1, "forget": 1}, freezes=True
    ),
}
