"""The models: some of the actors and some of what can happen, small enough to be searched whole."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets.state.model import Attempt, Planned, SecondLook, Staged
from mv_assets_tests.modelled import DAY, File, overlapping, segments
from mv_assets_tests.simulation.memory import Memory
from mv_assets_tests.simulation.world import (
    LIFETIME,
    Actor,
    Base,
    Collector,
    Content,
    Engine,
    Looker,
    Reader,
    World,
    Writer,
)


def cold(
    actors: tuple[Actor, ...], budget: dict[str, int], *, buckets: int = 2, freezes: bool = False
) -> World:
    """Declared and looked at, nothing computed yet; one file a bucket."""
    base = Base()
    for day in range(buckets):
        base = base.put("abc"[day], File(1, day * DAY, (day + 1) * DAY - 1, day + 1))
    world = World(base, Memory(), actors, budget, buckets=buckets, freezes=freezes)
    engine = Engine(world)
    engine.manager.declare(world.view("d1"))
    world.memory = engine.memory
    engine.manager.look(world.view("d1"), world.look(base, "d1", engine.memory.snapshot()))
    return world.evolve(memory=engine.memory)


def warm(
    actors: tuple[Actor, ...], budget: dict[str, int], *, buckets: int = 2, freezes: bool = False
) -> World:
    """All buckets VALID, each in a generation of its own."""
    world = cold(actors, budget, buckets=buckets, freezes=freezes)
    view, here = world.view("d1"), segments(dict(world.base.files))
    for bucket, current in world.current_inputs(world.base, "d1").items():
        assert current.inputs is not None
        engine, read = Engine(world), tuple(overlapping(here, bucket, bucket + DAY))
        planned = Planned(bucket, None, current.inputs)
        attempt = Attempt(f"first {bucket // DAY}", world.memory.snapshot().header.version, (planned,))
        engine.manager.register(view, attempt)
        seen, noted = SecondLook({bucket: current}), {bucket: None}
        engine.manager.commit_once(view, attempt, {bucket: Staged(1, 1, 1, read)}, seen, noted)
        data = tuple((segment.name, segment.crc) for segment in read)
        version = engine.memory.snapshot().header.version
        world = world.evolve(
            memory=engine.memory,
            disk=world.disk | {attempt.generation: {bucket: data}},
            contents=world.contents | {(bucket, version): Content(data, "d1", 0, 0)},
        )
    return world


def stopped(actors: tuple[Actor, ...], budget: dict[str, int]) -> World:
    """Of two buckets, the data stops within the first, which is closed when a lifetime has passed."""
    base = Base().put("a", File(1, 0, DAY - 2, 1))
    world = World(base, Memory(), actors, budget, closes=LIFETIME - DAY)
    engine = Engine(world)
    engine.manager.declare(world.view("d1"))
    world.memory = engine.memory
    engine.manager.look(world.view("d1"), world.look(base, "d1", engine.memory.snapshot()))
    return world.evolve(memory=engine.memory)


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
    "drops and whole-view marks": (
        lambda: warm((*_writers(2), Looker(1)), {"change": 1, "force view": 1, "drop": 1}),
        lambda: warm((*_writers(2, 1), Looker(1)), {"change": 1, "force view": 1, "drop": 1, "lost": 1}),
    ),
}
# Between the two: searched whole as well, but by `make prove`.
WHOLE: dict[str, Form] = {
    "a writer, looks and many changes": lambda: warm((*_writers(2), Looker(2)), {"change": 3}),
    "forced marks": lambda: warm((*_writers(2), Looker(1)), {"change": 2, "force": 1, "lost": 1}),
    "crashes": lambda: cold(_writers(2, 1), {"change": 1, "crash": 1, "lost": 1}),
    "two definitions": lambda: warm(
        (*_writers(2), Writer("d2", 2, "down")), {"change": 1, "crash": 2, "adopt": 1, "declare": 0}
    ),
    "freezing": lambda: warm((*_writers(1), Looker(2)), {"change": 2, "force": 1}, freezes=True),
}
