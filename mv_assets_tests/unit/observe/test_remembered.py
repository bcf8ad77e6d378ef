"""A look that remembers what earlier ones found leaves nothing to find for one that compares everything."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from mv_assets.config import MaterializedView
from mv_assets.observe.inputs import BucketInputs, ViewInputs
from mv_assets.observe.observation import Observation
from mv_assets.observe.remembered import REMEMBERED
from mv_assets.plan import planner
from mv_assets.state.store import Store
from mv_assets_tests.support.lake import Lake, through, view
from mv_assets_tests.support.memory_table import DAY

DAYS = 9
ROLLING = "SELECT date_trunc('day', at) AS day, count(*) AS n FROM events GROUP BY ALL"
JOINED = """
    SELECT date_trunc('hour', e.at) AS hour, count(*) AS n
    FROM events e JOIN z ON e.x = z.x GROUP BY ALL
"""
KINDS: dict[str, list[MaterializedView]] = {
    "a day": [view()],
    "a dimension": [view(dimensions=["z"], sql=JOINED)],
    "windows": [view(base={"table": "events", "from": "2d"}, scope="bucket", sql=ROLLING, time_column="day")],
    "frozen": [view(on_base_delete="freeze")],
    "a view on a view": [view(), view("up", base="v", sql="SELECT hour, n FROM v")],
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(f"sqlite:///{tmp_path}/state.db")
    yield opened
    opened.close()


def happenings(lake: Lake, chance: random.Random) -> Sequence[Callable[[], object]]:
    def file() -> str:
        return f"day-{chance.randrange(DAYS)}.parquet"

    def some() -> list[int]:
        return [day * DAY for day in sorted(chance.sample(range(DAYS), chance.randint(1, 3)))]

    def goes() -> None:
        (lake.folder / "events" / file()).unlink(missing_ok=True)

    def long() -> None:
        first = chance.randrange(DAYS)
        lake.write(f"long-{chance.randrange(3)}.parquet", through(first, first + chance.randrange(4)))

    def forced() -> None:
        declaration = lake.catalog.view("v").declaration
        held = lake.store.snapshot("v").rows
        lake.manager.force(declaration, [b for b in some() if b in held], "by hand")

    def dimension() -> None:
        if lake.dimensions:
            lake.write("z.parquet", [], chance.randrange(9), lake.dimensions[0])

    def elsewhere() -> None:
        """Another process has looked and computed: nothing of that is remembered here."""
        mine = REMEMBERED._kept.copy()
        REMEMBERED.clear()
        lake.refresh()
        for key, (value, weight) in mine.items():
            REMEMBERED.put(key, value, weight)

    return [
        lambda: lake.days(chance.randrange(DAYS)),
        lambda: lake.write(file(), through(chance.randrange(DAYS))),
        goes,
        goes,
        long,
        forced,
        dimension,
        elsewhere,
        lake.refresh,
        lake.refresh,
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_left_to_find(
    tmp_path: Path, store: Store, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"{kind} {seed}")
    dimensions = ["z"] if kind == "a dimension" else []
    lake = Lake(tmp_path / "lake", store, KINDS[kind], dimensions=dimensions)
    if dimensions:
        lake.write("z.parquet", [], 1, "z")
    lake.days(*range(DAYS - 2))
    lake.refresh()
    compared, swept = list[int](), ViewInputs.of

    def counted(self: ViewInputs, buckets: Iterable[int]) -> Iterator[BucketInputs]:
        compared.append(len(wanted := list(buckets)))
        return swept(self, wanted)

    monkeypatch.setattr(ViewInputs, "of", counted)
    for _ in range(15):
        for _ in range(chance.randint(1, 2)):
            chance.choice(happenings(lake, chance))()
        for name in lake.catalog.views:
            lake.look(name)
            # What a look has frozen or thawed it takes for work; the next one knows.
            found = lake.look(name)
            whole = lake.dry(name)
            assert isinstance(whole, Observation)
            kept = store.snapshot(name)
            assert dict(whole.snapshot.rows) == dict(kept.rows)
            assert kept.look is not None
            assert whole.snapshot.look is not None
            assert (kept.look.first_vacant, kept.look.oldest_waiting) == (
                whole.snapshot.look.first_vacant,
                whole.snapshot.look.oldest_waiting,
            )
            if isinstance(found, Observation):
                assert planner.plan(found) == planner.plan(whole)
    # Else all of this were said of whole looks.
    assert min(compared) < DAYS // 2
