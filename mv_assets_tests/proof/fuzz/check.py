"""A moment of a world questioned: every answer is held against DuckDB's, and against the base's schema."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mv_assets.query.execute.answer import Question
from mv_assets.query.route.eligibility import Freshness
from mv_assets_tests.proof.fuzz.batch import EVER, Batch, Found
from mv_assets_tests.proof.fuzz.comparison import Row, difference
from mv_assets_tests.proof.fuzz.oracle import Oracle
from mv_assets_tests.proof.fuzz.sql.profiles import NAMED
from mv_assets_tests.proof.fuzz.sql.queries import query
from mv_assets_tests.proof.fuzz.sql.select import Query
from mv_assets_tests.proof.fuzz.world import World

_AT_FIRST, _AT_ONCE = 4, 32


@dataclass
class Wrong(AssertionError):
    """An answer that the base table would not give."""

    seed: int
    moment: int
    number: int
    query: Query
    what: str
    served: str
    story: list[str]

    def __str__(self) -> str:
        again = f"MV_ASSETS_FUZZ_SEED={self.seed} moment {self.moment} query {self.number}"
        return "\n".join(
            (
                again,
                self.query.spark,
                self.query.duck,
                f"found {self.what}",
                self.served,
                "; ".join(self.story),
            )
        )


@dataclass
class Tally:
    """How the queries were answered."""

    queries: int = 0
    served: int = 0
    several: int = 0
    mixed: int = 0
    # Queries that views had been chosen for, and why they could not answer.
    gave_up: list[str] = field(default_factory=list)
    views: Counter[str] = field(default_factory=Counter)

    def add(self, query: Query, found: Found) -> None:
        self.queries += 1
        if found.gave_up and found.error is None:
            self.gave_up.append(f"{query.spark}: {found.gave_up}")
        if found.served is None or not found.served.views:
            return
        self.served += 1
        self.views.update(each.view for each in found.served.views)
        self.several += len(found.served.views) > 1
        self.mixed += found.served.files_from_base > 0

    def plus(self, other: Tally) -> None:
        self.queries += other.queries
        self.served += other.served
        self.several += other.several
        self.mixed += other.mixed
        self.gave_up += other.gave_up
        self.views += other.views

    def __str__(self) -> str:
        return (
            f"{self.queries} queries, {self.served} by views, {self.several} of them by several, "
            f"{self.mixed} with rows of the base too"
        )


class Check:
    """Queries for one moment of a world."""

    def __init__(self, world: World, batch: Batch, moment: int) -> None:
        self._world, self._asking, self._moment = world, batch, moment
        self._oracle = Oracle(world)
        self.tally = Tally()

    def queries(self, count: int) -> list[Query]:
        pick = random.Random(f"{self._world.seed}/{self._moment}")
        return [query(pick, self._world.first, named=list(NAMED)) for _ in range(count)]

    def wrong(self, queries: Sequence[Query], *, chosen: int | None = None) -> Iterator[Wrong]:
        """All wrong answers. The first queries come few at a time, for who stops at the first."""
        numbered = [(at, each) for at, each in enumerate(queries) if chosen in (None, at)]
        start, size = 0, _AT_FIRST
        while some := numbered[start : start + size]:
            start, size = start + size, min(2 * size, _AT_ONCE)
            found = self._asking.together([self._question(each, at) for at, each in some])
            others = iter(self._asking.together([self.off(q) for _, q in some if q.by_spark]))
            for (at, each), answer in zip(some, found, strict=True):
                self.tally.add(each, answer)
                what = self.judged(each, answer, next(others) if each.by_spark else None)
                if what is not None:
                    yield Wrong(
                        self._world.seed, self._moment, at, each, what, str(answer.served), self._world.story
                    )

    def close(self) -> None:
        self._oracle.close()

    def _question(self, each: Query, at: int) -> Question:
        # Where nothing has changed since everything was looked at, trusting the map is as good.
        if self._world.looked and at % 5 == 0:
            return Question(each.spark, Freshness.BOUNDED, EVER)
        return Question(each.spark)

    @staticmethod
    def off(each: Query) -> Question:
        return Question(each.spark, Freshness.OFF)

    def judged(self, each: Query, found: Found, base: Found | None) -> str | None:
        if found.error is not None:
            # What Spark itself refuses, it refuses without views too.
            alone = base or self._asking.alone(self.off(each))
            return None if alone.error is not None else f"{found.error!r} {found.gave_up}"
        expected: list[Row] = self._oracle.answer(each) if base is None else base.rows
        return self._shape(each, found) or difference(each, expected, found.rows)

    def _shape(self, each: Query, found: Found) -> str | None:
        wanted = [(f.name, f.dataType) for f in self._asking.schema(each.spark)]
        own = [(f.name, f.dataType) for f in found.schema or ()]
        return None if wanted == own else f"columns {own} instead of {wanted}"
