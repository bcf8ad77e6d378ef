"""`mv-assets gc` and `mv-assets drop`, on a state and a warehouse as refreshes leave them."""

from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mv_assets.state.leases import Leases
from mv_assets.state.model import Attempt
from mv_assets_tests.unit.cli.test_commands import DAILY, Lake

CONTENT = b"x" * 1_000


class Depot(Lake):
    """A project whose generations have files."""

    def generations(self, view: str = "daily") -> dict[str, str]:
        """All that are registered, with their states."""
        with closing(sqlite3.connect(self.state)) as connection:
            found = connection.execute("SELECT id, state FROM mv_generation WHERE view = ?", (view,))
            return dict(found.fetchall())

    def folder(self, generation: str, view: str = "daily") -> Path:
        return self.root / "warehouse" / view / generation

    def fill(self, view: str = "daily") -> None:
        """Refresh, and write a file for every generation."""
        self.refresh(view)
        for generation in self.generations(view):
            self.write_data(generation, view)

    def write_data(self, generation: str, view: str = "daily") -> None:
        self.folder(generation, view).mkdir(parents=True, exist_ok=True)
        (self.folder(generation, view) / "part-0.parquet").write_bytes(CONTENT)

    def age(self) -> None:
        """Let all heartbeats have been a while ago."""
        with closing(sqlite3.connect(self.state)) as connection, connection:
            connection.execute("UPDATE mv_generation SET heartbeat_at = heartbeat_at - 120000")

    def superseded(self, view: str = "daily") -> str:
        """All buckets computed again; the generation that they left."""
        self.fill(view)
        (left,) = self.generations(view)
        for day in (1, 2):
            self.day(day, rows=30)
        self.fill(view)
        self.age()
        return left


@pytest.fixture
def depot(tmp_path: Path) -> Depot:
    made = Depot(tmp_path)
    for day in (1, 2):
        made.day(day)
    return made


def deleted(depot: Depot, *arguments: str, code: int = 0) -> dict[str, list[str]]:
    views = depot.json("gc", *arguments, code=code)["views"]
    return {view["name"]: [each["generation"] for each in view["deleted"]] for view in views}


def test_gc_deletes_what_no_bucket_names(depot: Depot) -> None:
    left = depot.superseded()
    assert depot.said("gc") == "daily  1 generation deleted, 1.0 kB\n"
    assert not depot.folder(left).exists()
    assert depot.said("gc") == "nothing to delete\n"
    (kept,) = [name for name, state in depot.generations().items() if state == "LIVE"]
    assert depot.folder(kept).exists()


def test_gc_tells_programs_what_it_did(depot: Depot) -> None:
    left = depot.superseded()
    assert depot.json("gc") == {
        "dry_run": False,
        "views": [
            {
                "name": "daily",
                "deleted": [{"generation": left, "bytes": 1_000}],
                "compacted": [],
                "kept": [],
                "forgotten": 0,
                "errors": [],
            }
        ],
        "published": [],
    }


def test_a_dry_run_says_the_same_and_changes_nothing(depot: Depot) -> None:
    left = depot.superseded()
    rows, files = depot.rows(), depot.bytes()
    assert depot.said("gc", "--dry-run") == "daily  1 generation would be deleted, 1.0 kB\n"
    assert deleted(depot, "--dry-run") == {"daily": [left]}
    assert (depot.rows(), depot.bytes()) == (rows, files)
    assert deleted(depot) == {"daily": [left]}


def test_gc_before_anything_was_refreshed_makes_no_state(depot: Depot) -> None:
    assert depot.said("gc") == "nothing to delete\n"
    assert not depot.state.exists()


def test_gc_of_some_views_leaves_the_others(depot: Depot) -> None:
    depot.view("other")
    depot.fill("other")
    left = depot.superseded()
    (others,) = depot.generations("other")
    depot.refresh("other")
    assert deleted(depot, "daily") == {"daily": [left]}
    assert depot.folder(others, "other").exists()
    assert deleted(depot, "other") == {"other": [others]}


def test_gc_of_a_view_that_is_nowhere_names_those_there_are(depot: Depot) -> None:
    depot.fill()
    assert depot.refused("gc", "dayly") == "the project has no view 'dayly'; it has daily\n"


def test_gc_collects_a_view_that_the_project_no_longer_declares(depot: Depot) -> None:
    left = depot.superseded()
    depot.project["views"] = []
    depot.view("other")
    assert deleted(depot) == {"daily": [left]}


def test_what_can_not_be_deleted_is_said_and_the_other_views_are_collected(depot: Depot) -> None:
    depot.view("other")
    depot.fill("other")
    stuck = depot.superseded()
    depot.fill("other")
    depot.age()
    for path in (depot.folder(stuck) / "part-0.parquet", depot.folder(stuck)):
        path.unlink() if path.is_file() else path.rmdir()
    depot.folder(stuck).write_text("a file where a folder should be")
    views = depot.json("gc", code=1)["views"]
    assert [(view["name"], len(view["deleted"]), len(view["errors"])) for view in views] == [
        ("daily", 0, 1),
        ("other", 1, 0),
    ]
    assert str(depot.folder(stuck)) in views[0]["errors"][0]
    depot.folder(stuck).unlink()
    assert deleted(depot) == {"daily": [], "other": []}


def test_drop_without_a_terminal_wants_yes(depot: Depot) -> None:
    depot.fill()
    rows = depot.rows()
    said = depot.refused("drop", "daily")
    assert "dropping daily deletes its data; without a terminal to ask at, give --yes" in said
    assert depot.rows() == rows


def test_drop_removes_map_and_data(depot: Depot) -> None:
    depot.fill()
    depot.age()
    (generation,) = depot.generations()
    assert depot.json("drop", "daily", "--yes") == {
        "view": "daily",
        "buckets": 2,
        "deleted": [{"generation": generation, "bytes": 1_000}],
        "left": [],
        "errors": [],
        "dependants": [],
    }
    assert not depot.folder(generation).exists()
    assert depot.json("status")["views"][0]["buckets"] == []
    depot.refresh()
    assert len(depot.json("status")["views"][0]["buckets"]) == 2


def test_drop_says_what_readers_and_refreshes_still_hold(depot: Depot) -> None:
    depot.fill()
    depot.age()
    with depot.driver() as driver:
        lease = Leases(driver.store).acquire("daily")
        header = driver.store.summary("daily").header
        driver.manager.register(
            driver.catalog.view("daily").declaration, Attempt("staged", header.version, ())
        )
        depot.write_data("staged")
        said = depot.said("drop", "daily", "--yes")
        assert said.startswith("dropped 2 buckets of daily; 0 bytes deleted\n2.0 kB left: ")
        assert said.endswith("`mv-assets gc` will remove it\n")
        Leases(driver.store).release(lease)
    depot.age()
    assert len(deleted(depot)["daily"]) == 2


def test_a_view_that_the_project_no_longer_declares_can_be_dropped(depot: Depot) -> None:
    depot.fill()
    depot.age()
    depot.project["views"] = []
    depot.view("other")
    assert depot.said("drop", "daily", "--yes") == "dropped 2 buckets of daily; 1.0 kB deleted\n"


def test_a_view_that_was_never_refreshed_has_nothing_to_drop(depot: Depot) -> None:
    assert depot.said("drop", "daily") == "dropped 0 buckets of daily; 0 bytes deleted\n"
    assert not depot.state.exists()
    assert depot.refused("drop", "dayly") == "the project has no view 'dayly'; it has daily\n"


def upon(depot: Depot, name: str, base: str) -> None:
    """A view that is based on another."""
    depot.view(name, base=base, sql=DAILY.replace("pickup_at", "hour").replace("FROM trips", f"FROM {base}"))


def test_a_view_that_others_are_based_on_is_dropped_with_them_or_not_at_all(depot: Depot) -> None:
    upon(depot, "second", "daily")
    upon(depot, "third", "second")
    upon(depot, "never", "third")
    depot.view("beside")
    for name in ("daily", "second", "third", "beside"):
        depot.fill(name)
    depot.age()
    rows = depot.rows()
    assert depot.refused("drop", "daily", "--yes") == (
        "view 'daily' was not dropped: second, third, never are based on it and would wait for it; drop them "
        "too, with `--with-dependants` (in Dagster `with_dependants: true`)\n"
    )
    assert "never is based on it" in depot.refused("drop", "third", "--yes")
    wants_yes = depot.refused("drop", "daily", "--with-dependants")
    assert "dropping daily and second and third deletes their data" in wants_yes
    assert depot.rows() == rows
    found = depot.json("drop", "daily", "--with-dependants", "--yes")
    assert (found["view"], found["buckets"], len(found["deleted"])) == ("daily", 2, 1)
    assert {each["view"]: each["buckets"] for each in found["dependants"]} == {
        "second": 2,
        "third": 2,
        "never": 0,
    }
    buckets = {view["name"]: len(view["buckets"]) for view in depot.json("status")["views"]}
    assert buckets == {"daily": 0, "second": 0, "third": 0, "never": 0, "beside": 2}


def test_what_the_project_no_longer_declares_is_no_reason_to_keep_a_view(depot: Depot) -> None:
    upon(depot, "second", "daily")
    depot.fill()
    depot.fill("second")
    depot.age()
    depot.project["views"] = [view for view in depot.project["views"] if view["name"] != "second"]
    depot.save()
    assert depot.said("drop", "daily", "--yes") == "dropped 2 buckets of daily; 1.0 kB deleted\n"
    assert depot.said("drop", "second", "--yes") == "dropped 2 buckets of second; 1.0 kB deleted\n"


@pytest.mark.processes
@pytest.mark.parametrize(("answer", "dropped"), [("y", True), ("n", False)])
def test_drop_asks_at_a_terminal(depot: Depot, answer: str, *, dropped: bool) -> None:
    upon(depot, "upon", "daily")
    depot.fill()
    depot.fill("upon")
    depot.age()
    terminal, end = pty.openpty()
    command = [
        str(Path(sys.executable).with_name("mv-assets")),
        "--project",
        str(depot.file),
        "drop",
        "daily",
        "--with-dependants",
    ]
    process = subprocess.Popen(command, stdin=end, stdout=subprocess.PIPE, stderr=end)  # noqa: S603
    os.write(terminal, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=120)
    asked = os.read(terminal, 10_000)
    os.close(terminal)
    os.close(end)
    # An older click writes the space behind it elsewhere.
    assert b"Drop 2 buckets of daily and 2 buckets of upon, 400 bytes? [y/N]:" in asked
    # Nothing is drawn over what one types.
    assert b"\x1b" not in asked
    assert (process.returncode == 0) is dropped
    assert (b"dropped 2 buckets of daily" in out) is dropped
    for view in ("daily", "upon"):
        kept = [depot.folder(name, view).exists() for name in depot.generations(view)]
        assert (not any(kept)) is dropped
