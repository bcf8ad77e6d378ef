"""The result of a benchmark: a figure, beside it what it must not exceed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. Without a target it only informs; `detail` says what it was made from."""

    benchmark: str
    what: str
    value: float
    unit: str = "x"
    at_most: float | None = None
    detail: str = ""

    @property
    def met(self) -> bool:
        return self.at_most is None or self.value <= self.at_most


Benchmark = Callable[[], Iterable[Figure]]
# Prepares, and gives what is to be measured.
Step = Callable[[], Callable[[], object]]
Samples = Mapping[str, Sequence[float]]


def interleaved(
    rounds: int,
    steps: Mapping[str, Step],
    clock: Callable[[], float] = time.perf_counter,
) -> Samples:
    """Seconds that each step took, round by round; of CPU time, with that as the clock.

    A step prepares, unmeasured, and returns what is to be measured. Each round runs all of them and starts
    with another one, so that neither a busy moment nor what ran before favours one of them.
    """
    taken: dict[str, list[float]] = {name: [] for name in steps}
    names = list(steps)
    for round_ in range(rounds):
        first = round_ % len(names)
        for name in names[first:] + names[:first]:
            measured = steps[name]()
            start = clock()
            measured()
            taken[name].append(clock() - start)
    return taken


def ratio(
    benchmark: str, what: str, samples: Samples, measured: str, against: str, at_most: float | None = None
) -> Figure:
    """The ratio of two medians of one run."""
    mine, other = statistics.median(samples[measured]), statistics.median(samples[against])
    detail = f"{mine * 1000:.2f} ms / {other * 1000:.2f} ms, medians of {len(samples[measured])}"
    return Figure(benchmark, what, mine / other, "x", at_most, detail)
