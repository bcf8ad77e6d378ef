"""A map that is known from before is read again only where it changed, and is then as if read anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import text

from mv_assets.state.model import Snapshot
from mv_assets_tests.support.harness import Deployment
from mv_assets_tests.support.memory_table import DAY

DAYS = 12
PARTS = [(None, None), (3 * DAY, None), (None, 7 * DAY), (3 * DAY, 7 * DAY)]


@pytest.fixture
def known(deployment: Deployment) -> Deployment:
    deployment.fill(*range(DAYS))
    return deployment


def of_parts(d: Deployment, before: list[Snapshot] | None = None) -> list[Snapshot]:
    known: Sequence[Snapshot | None] = before or [None] * len(PARTS)
    return [d.store.snapshot(d.name, *part, each) for part, each in zip(PARTS, known, strict=True)]


def happenings(d: Deployment, chance: random.Random) -> list[Callable[[], object]]:
    def some() -> list[int]:
        return sorted(chance.sample(range(DAYS), chance.randint(1, 3)))

    def arrives() -> None:
        d.table.day(f"late-{d.header().version}", 1, chance.randrange(DAYS))
        d.look()

    def drops() -> None:
        d.manager.drop(d.name)
        d.look()
        d.refresh(*range(chance.randint(1, DAYS)))

    def redefines() -> None:
        d.declaration = replace(d.declaration, definition=f"d{d.header().version}")
        d.declare()

    return [
        arrives,
        lambda: d.refresh(*some()),
        lambda: d.manager.force(d.declaration, [day * DAY for day in some()], "by hand"),
        lambda: d.fail(d.begin(*(days := some())), *days),
        drops,
        redefines,
    ]


@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_and_read_on_is_what_would_be_read_anew(known: Deployment, seed: int) -> None:
    chance, d = random.Random(seed), known
    seen = [of_parts(d)]
    for _ in range(15):
        chance.choice(happenings(d, chance))()
        now = of_parts(d)
        for before in seen:
            again = of_parts(d, before)
            assert again == now
            assert [list(each.rows) for each in again] == [list(each.rows) for each in now]
        seen = [*seen[-3:], now]


def test_only_what_changed_is_read(known: Deployment) -> None:
    before = known.map()
    known.manager.force(known.declaration, [2 * DAY], "by hand")
    after = known.store.snapshot(known.name, known=before)
    assert {bucket for bucket in after.rows if after.rows[bucket] is not before.rows[bucket]} == {2 * DAY}


def test_a_map_that_was_restored_from_a_backup_is_read_anew(known: Deployment) -> None:
    d = known
    d.manager.force(d.declaration, [2 * DAY], "by hand")
    before = d.map()
    with d.store.database.write() as connection:
        connection.execute(text("UPDATE mv_partition SET token = token - 1, reason = 'restored'"))
    d.manager.force(d.declaration, [3 * DAY], "by hand")
    assert d.store.snapshot(d.name, known=before) == d.map()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_stored_and_read_on_is_what_would_be_read_anew(known: Deployment, seed: int) -> None:
    chance, d = random.Random(seed), known
    seen = [d.store.stored(d.name)]
    for _ in range(15):
        chance.choice(happenings(d, chance))()
        now = d.store.stored(d.name)
        for before in seen:
            assert d.store.stored(d.name, before) == now
        seen = [*seen[-3:], now]


def test_of_what_is_stored_only_what_changed_is_read(known: Deployment) -> None:
    before = known.store.stored(known.name)
    known.manager.force(known.declaration, [2 * DAY], "by hand")
    with known.store.database.write() as connection:
        connection.execute(text("UPDATE mv_partition SET reason = 'is not looked at'"))
        connection.execute(text(f"UPDATE mv_partition SET reason = 'is new' WHERE bucket = {2 * DAY}"))
    _, after = known.store.stored(known.name, before)
    assert dict(zip(after.bucket, after.reason, strict=True)) == {
        **dict(zip(before[1].bucket, before[1].reason, strict=True)),
        2 * DAY: "is new",
    }


def test_what_is_stored_of_another_definition_is_read_anew(known: Deployment) -> None:
    before = known.store.stored(known.name)
    assert any(before[1].current)
    known.declaration = replace(known.declaration, definition="another")
    known.declare()
    header, after = known.store.stored(known.name, before)
    assert header.definition == "another"
    assert not any(after.current)


def test_what_is_stored_in_a_map_restored_from_a_backup_is_read_anew(known: Deployment) -> None:
    d = known
    d.manager.force(d.declaration, [2 * DAY], "by hand")
    before = d.store.stored(d.name)
    with d.store.database.write() as connection:
        connection.execute(text("UPDATE mv_partition SET token = token - 1, reason = 'restored'"))
    d.manager.force(d.declaration, [3 * DAY], "by hand")
    assert d.store.stored(d.name, before) == d.store.stored(d.name)


def test_after_a_look_only_what_it_wrote_is_read(known: Deployment) -> None:
    """Unless somebody else wrote as well."""
    d, before = known, known.map()
    d.table.day("late", 1, 3)
    assert d.look() == [3]
    assert d.store.snapshot(d.name, known=before, written=[3 * DAY]) == d.map()
    assert d.store.snapshot(d.name, known=d.map(), written=[]) == d.map()
    d.manager.force(d.declaration, [5 * DAY], "by hand")
    assert d.store.snapshot(d.name, known=before, written=[3 * DAY]) == d.map()


def test_another_database_of_the_same_numbers_is_read_anew(known: Deployment) -> None:
    d, before = known, known.map()
    with d.store.database.write() as connection:
        connection.execute(text("UPDATE mv_partition SET refreshed_at = refreshed_at + 1, reason = 'other'"))
    assert d.store.snapshot(d.name, known=before) == d.map()
