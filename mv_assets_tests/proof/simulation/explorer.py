"""Breadth-first search through every schedule, merging states that can't be told apart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from mv_assets_tests.proof.simulation.actors import Steps, steps
from mv_assets_tests.proof.simulation.invariants import Violation, check_convergence, check_state, check_step
from mv_assets_tests.proof.simulation.world import World

# A state's hash -> the state it was first reached from, and by what.
Parents = dict[int, tuple[int, str] | None]


@dataclass(frozen=True, slots=True)
class Explored:
    states: int
    steps: int
    schedules: int
    endings: int
    complete: bool

    def __str__(self) -> str:
        whole = "all" if self.complete else "the first"
        return (
            f"{whole} {self.states:,} states, {self.steps:,} steps, {self.schedules:.2g} schedules; "
            f"mended from {self.endings:,} maps"
        )


class Found(AssertionError):
    """A schedule that leads to a forbidden state."""

    def __init__(self, violation: Violation, trace: list[str]) -> None:
        super().__init__(f"{violation}\nafter:\n  " + "\n  ".join(trace))


def explore(start: World, most_states: int = 10_000_000, *, convergence: bool = True) -> Explored:
    """Visit every state that can be reached from `start`, checking all invariants in each.

    Raises:
        Found: the shortest schedule that breaks one.

    """
    # Hashes stand for keys: at a million states, two that collide are a matter of one in ten million.
    parents: Parents = {hash(start.key()): None}
    queue = deque([(hash(start.key()), start)])
    edges: dict[int, list[int]] = {}
    taken, mended = 0, set[int]()
    while queue:
        at, world = queue.popleft()
        for label, after in _checked(steps(world), parents, at):
            taken += 1
            key = hash(after.key())
            edges.setdefault(at, []).append(key)
            known = key in parents
            if not known:
                parents[key] = (at, label)
            try:
                check_step(world, after)
                if known:
                    continue
                check_state(after)
                if convergence and (ending := after.mendable()) not in mended:
                    mended.add(ending)
                    check_convergence(after)
            except Violation as violation:
                raise Found(violation, [*_trace(parents, at), label]) from None
            if len(parents) >= most_states:
                return Explored(len(parents), taken, _schedules(edges, start), len(mended), complete=False)
            queue.append((key, after))
    return Explored(len(parents), taken, _schedules(edges, start), len(mended), complete=True)


def _checked(following: Steps, parents: Parents, at: int) -> Steps:
    """The steps, with a violation found while one was taken told like any other."""
    try:
        yield from following
    except Violation as violation:
        raise Found(violation, _trace(parents, at)) from None


def _schedules(edges: dict[int, list[int]], start: World) -> int:
    """How many different schedules lead from the start to an end, steps back to an earlier state left out."""
    first = hash(start.key())
    paths: dict[int, int] = {}
    open_ = {first}
    stack = [(first, iter(edges.get(first, ())))]
    while stack:
        at, following = stack[-1]
        for after in following:
            if after not in paths and after not in open_:
                open_.add(after)
                stack.append((after, iter(edges.get(after, ()))))
                break
        else:
            stack.pop()
            open_.discard(at)
            paths[at] = sum(paths.get(after, 0) for after in edges.get(at, ())) or 1
    return paths[first]


def _trace(parents: Parents, at: int) -> list[str]:
    labels = []
    while (parent := parents[at]) is not None:
        at, label = parent
        labels.append(label)
    return labels[::-1]
