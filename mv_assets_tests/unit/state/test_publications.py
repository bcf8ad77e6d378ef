"""What is published, as the state remembers it, on each kind of database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mv_assets.state.errors import LeaseExpired, UnknownView
from mv_assets.state.leases import Leases
from mv_assets.state.model import Lease, Publication
from mv_assets.state.publications import Publications
from mv_assets_tests.support.harness import Deployment

TABLE = "iceberg marts.v"


@pytest.fixture
def publications(deployment: Deployment) -> Publications:
    return Publications(deployment.store)


@pytest.fixture
def lease(deployment: Deployment) -> Lease:
    return Leases(deployment.store).acquire("v")


def at(version: int, **known: object) -> Publication:
    return Publication("v", TABLE, 1, version, version, "marts.v", str(version), "here", "d", 5, **known)  # type: ignore[arg-type]


def test_what_is_retained_is_known_before_anything_is_shown(publications: Publications, lease: Lease) -> None:
    kept = publications.retain("v", TABLE, 3, lease)
    assert kept == Publication("v", TABLE, 3, mark=kept.mark)
    assert publications.retain("v", TABLE, 7, lease) == kept
    assert publications.of("v") == [kept]
    assert publications.at("v", TABLE) == kept
    assert kept.mark is not None
    assert publications.retain("v", "another", 3, lease).mark == kept.mark


def test_whoever_has_no_lease_any_more_retains_nothing(
    deployment: Deployment, publications: Publications, lease: Lease
) -> None:
    Leases(deployment.store).release(lease)
    with pytest.raises(LeaseExpired):
        publications.retain("v", TABLE, 3, lease)
    assert publications.of("v") == []


def test_versions_only_grow_whoever_records_last(publications: Publications, lease: Lease) -> None:
    publications.retain("v", TABLE, 3, lease)
    assert publications.record(at(7))
    assert publications.record(at(5))
    [known] = publications.of("v")
    assert (known.version, known.oldest) == (7, 3)


def test_what_was_ended_meanwhile_is_not_recorded(publications: Publications, lease: Lease) -> None:
    publications.retain("v", TABLE, 3, lease)
    publications.end("v", TABLE)
    assert not publications.record(at(3))
    assert publications.of("v") == []


def test_only_expiry_gives_something_up_and_never_takes_it_back(
    publications: Publications, lease: Lease
) -> None:
    publications.retain("v", TABLE, 3, lease)
    publications.record(at(7))
    publications.expire("v", TABLE, 6)
    publications.expire("v", TABLE, 4)
    assert publications.of("v")[0].oldest == 6


def test_what_is_passed_over_is_kept_as_long_as_it_should_be(
    publications: Publications, lease: Lease
) -> None:
    publications.retain("v", TABLE, 3, lease)
    publications.record(at(3))
    publications.pass_over("v", TABLE, now=0, keep=10)
    publications.record(at(5))
    publications.pass_over("v", TABLE, now=10, keep=10)
    assert publications.of("v")[0].oldest == 3
    publications.pass_over("v", TABLE, now=11, keep=10)
    assert publications.of("v")[0].oldest == 3
    publications.pass_over("v", TABLE, now=22, keep=10)
    assert publications.of("v")[0].oldest == 5


def test_a_map_that_changed_since_is_behind(
    deployment: Deployment, publications: Publications, lease: Lease
) -> None:
    version = deployment.store.summary("v").header.version
    assert publications.behind([("v", TABLE), ("unknown", TABLE)]) == ["v"]
    publications.retain("v", TABLE, version, lease)
    publications.record(at(version))
    assert publications.behind([("v", TABLE)]) == []
    assert publications.behind([("v", "another")]) == ["v"]
    deployment.fill(0)
    assert publications.behind([("v", TABLE)]) == ["v"]


def test_two_targets_are_kept_for_apart(publications: Publications, lease: Lease) -> None:
    publications.retain("v", TABLE, 3, lease)
    publications.retain("v", "another", 5, lease)
    assert [each.target for each in publications.all()] == ["another", TABLE]
    publications.end("v", TABLE)
    assert [each.oldest for each in publications.all()] == [5]


def test_of_a_view_that_nobody_declared_nothing_is_kept(publications: Publications, lease: Lease) -> None:
    with pytest.raises(UnknownView):
        publications.retain("w", TABLE, 1, lease)
    assert publications.of("w") == []


def test_what_others_wrote_is_remembered_as_it_is(publications: Publications, lease: Lease) -> None:
    publications.retain("v", TABLE, 1, lease)
    publications.record(replace(at(2), replaced="a \0 commit"))
    assert publications.of("v")[0].replaced == "a \\0 commit"
