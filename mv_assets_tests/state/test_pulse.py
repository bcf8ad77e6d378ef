"""The pulse says without reading the rows what the rows would say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mv_assets.state.model import Mark
from mv_assets_tests.harness import Deployment, view
from mv_assets_tests.modelled import DAY


def pulse(deployment: Deployment) -> tuple[bool, int]:
    found = deployment.store.pulse(deployment.name)
    return found.restless, found.vacant // DAY


def test_a_view_that_was_just_declared_is_at_rest_with_its_start_vacant(deployment: Deployment) -> None:
    assert pulse(deployment) == (False, 0)


def test_valid_rows_are_at_rest_and_the_first_vacant_bucket_comes_after_them(deployment: Deployment) -> None:
    deployment.fill(0, 1, 2)
    assert pulse(deployment) == (False, 3)
    deployment.fill(5)
    assert pulse(deployment) == (False, 3)


def test_a_stale_row_is_restless(deployment: Deployment) -> None:
    deployment.fill(0, 1)
    deployment.manager.mark_stale(deployment.declaration, {DAY: Mark("changed")})
    assert pulse(deployment) == (True, 2)


def test_a_row_that_never_had_data_is_restless(deployment: Deployment) -> None:
    deployment.fill(0)
    deployment.manager.force(deployment.declaration, [DAY], "a person")
    assert pulse(deployment) == (True, 2)


@pytest.mark.parametrize(
    ("old", "new"), [("d1", "d_"), ("dx1", "d_1"), ("100", "1%"), ('a"b', "a"), ("a/b", "a")]
)
def test_rows_of_another_definition_are_restless_however_alike_it_is(
    peer: Callable[..., Deployment], old: str, new: str
) -> None:
    before = peer(declaration=view(definition=old))
    before.declare()
    before.fill(0, 1)
    assert not pulse(before)[0]
    after = peer(declaration=view(definition=new))
    after.declare()
    assert pulse(after) == (True, 2)
