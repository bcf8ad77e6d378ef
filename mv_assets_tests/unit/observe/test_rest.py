"""A look remembers whether the map was at rest, so that the next one need not read it."""

from __future__ import annotations

from collections.abc import Callable

from mv_assets.observe.observation import Observation, Unchanged
from mv_assets.state.model import Mark
from mv_assets_tests.support.lake import HOURLY, Lake, day, view
from mv_assets_tests.support.memory_table import DAY

Lakes = Callable[..., Lake]


def rest(made: Lake) -> int | None:
    """What a whole look remembers."""
    made.look(whole=True)
    look = made.store.summary("v").look
    assert look is not None
    return look.first_vacant


def test_a_view_without_rows_is_at_rest_with_its_start_vacant(lake: Lakes) -> None:
    assert rest(lake()) == 0


def test_valid_rows_are_at_rest_and_the_first_vacant_bucket_comes_after_them(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1, 2)
    made.converge()
    assert rest(made) == 3 * DAY
    assert isinstance(made.look(), Unchanged)


def test_a_stale_row_is_no_rest(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    made.manager.mark_stale(made.catalog.view("v").declaration, {DAY: Mark("changed")})
    assert rest(made) is None


def test_a_look_that_marks_is_no_rest(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    made.write("late.parquet", [day(1)])
    assert rest(made) is None


def test_rows_of_an_earlier_definition_are_no_rest(lake: Lakes) -> None:
    made = lake()
    made.days(0, 1)
    made.converge()
    made.declare(view(sql=HOURLY.replace("count(*)", "count(x)")))
    assert rest(made) is None
    assert isinstance(made.look(), Observation)


def test_a_commit_after_the_look_ends_the_rest(lake: Lakes) -> None:
    made = lake()
    made.days(0)
    observed = made.look()
    made.carry_out(observed)
    assert isinstance(made.look(), Observation)
    assert isinstance(made.look(), Unchanged)
