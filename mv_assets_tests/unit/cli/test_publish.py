"""`mv-assets publish`, of a project whose target changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mv_assets.config import DeltaTarget
from mv_assets.errors import MvError
from mv_assets.publish.names import name_of
from mv_assets.state.leases import Leases
from mv_assets.state.model import Doing, Publication
from mv_assets.state.publications import Publications
from mv_assets.state.store import Store
from mv_assets.state.troubles import Troubles
from mv_assets_tests.unit.cli.test_commands import Lake

OLD = "iceberg marts.daily in sql default sqlite:///old.db"


@pytest.fixture
def published(tmp_path: Path) -> Lake:
    """Published once where the project says nothing of any more, and where it does."""
    filled = Lake(tmp_path)
    filled.day(1)
    filled.refresh()
    store = Store(f"sqlite:///{filled.state}")
    publications, lease = Publications(store), Leases(store).acquire("daily")
    declared = name_of(DeltaTarget(folder=str(filled.root / "shown")), "daily")
    for target, table in ((OLD, "marts.daily"), (declared, f"{filled.root}/shown/daily")):
        version = store.summary("daily").header.version
        kept = publications.retain("daily", target, version, lease)
        publications.record(
            Publication("daily", target, version, version, version, table, "7", "here", mark=kept.mark)
        )
    Leases(store).release(lease)
    store.close()
    return filled


def targets(lake: Lake) -> list[str]:
    store = Store(f"sqlite:///{lake.state}")
    found = [each.target for each in Publications(store).of("daily")]
    store.close()
    return found


def test_what_is_no_longer_published_there_is_said_with_what_ends_it(published: Lake) -> None:
    published.project["publish"] = {"format": "delta", "folder": "shown"}
    published.save()
    said = published.said("status")
    assert f"no longer published to {OLD}: its files are kept for readers" in " ".join(said.split())
    assert "mv-assets publish daily --forget" in said
    [view] = published.json("status")["views"]
    assert [each["target"] for each in view["no_longer_published"]] == [OLD]
    assert [each["behind"] for each in view["published"]] == [0]


def test_what_is_kept_for_it_is_given_up_and_nothing_else(published: Lake) -> None:
    published.project["publish"] = {"format": "delta", "folder": "shown"}
    published.save()
    assert f"{OLD}: gc deletes what only its readers need" in " ".join(
        published.said("publish", "--forget").split()
    )
    assert len(targets(published)) == 1
    assert OLD not in targets(published)
    assert published.json("publish", "daily", "--forget") == {"views": [{"name": "daily", "forgotten": []}]}
    assert "nothing is kept" in published.said("publish", "--forget")


def test_the_trouble_of_a_view_that_is_published_nowhere_ends_with_it(published: Lake) -> None:
    store = Store(f"sqlite:///{published.state}")
    Troubles(store, lambda: 0).note(Doing.PUBLISH, {"daily": MvError("it does not answer")})
    store.close()
    [view] = published.json("status", code=1)["views"]
    assert view["troubles"]
    published.said("publish", "daily", "--forget")
    assert targets(published) == []
    [view] = published.json("status")["views"]
    assert not view["troubles"]
