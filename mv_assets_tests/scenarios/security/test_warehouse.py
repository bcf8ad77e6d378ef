"""What stands outside of the warehouse is neither written, read nor deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text, update

from mv_assets.config.models import MaterializedView
from mv_assets.errors import StateError
from mv_assets.run.errors import WarehouseUnusable
from mv_assets.run.warehouse import Warehouse
from mv_assets.state.store import schema
from mv_assets_tests.support.lake import view
from mv_assets_tests.support.warehouse_lake import GRACE, DuckDbLake

Make = Callable[..., DuckDbLake]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_text("dear")
    return folder


def whole(victim: Path) -> bool:
    return [path.name for path in sorted(victim.rglob("*"))] == ["inside", "file"]


def dropped(lake: DuckDbLake) -> DuckDbLake:
    """With data of a view that nobody needs any more."""
    lake.days(0, 1)
    lake.run()
    lake.manager.drop("v", "test")
    lake.clock.now += 2 * GRACE
    return lake


@pytest.mark.parametrize("name", ["../x", "/x", "a/b", "..", ".", "", "a\0b", "a b", "a`b", "a'b", "A"])
def test_no_view_has_a_name_that_leads_elsewhere(name: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        view(name)
    assert MaterializedView.model_fields["name"].is_required()


def test_gc_does_not_delete_behind_a_generation_that_became_a_link(
    duckdb_lake_on_sqlite: Make, victim: Path
) -> None:
    lake = dropped(duckdb_lake_on_sqlite())
    (generation,) = (lake.folder / "warehouse" / "v").iterdir()
    generation.rename(lake.folder / "moved")
    generation.symlink_to(victim)
    lake.gc()
    assert whole(victim)
    assert not generation.is_symlink()


def test_gc_does_not_follow_links_inside_of_a_generation(duckdb_lake_on_sqlite: Make, victim: Path) -> None:
    lake = dropped(duckdb_lake_on_sqlite())
    (generation,) = (lake.folder / "warehouse" / "v").iterdir()
    (generation / "link").symlink_to(victim)
    lake.gc()
    assert whole(victim)
    assert not generation.exists()


def test_a_view_whose_folder_is_a_link_is_neither_written_nor_deleted(
    duckdb_lake_on_sqlite: Make, victim: Path
) -> None:
    lake = dropped(duckdb_lake_on_sqlite())
    folder = lake.folder / "warehouse" / "v"
    (generation,) = folder.iterdir()
    generation.rename(victim / generation.name)
    folder.rmdir()
    folder.symlink_to(victim)
    (error,) = lake.garbage().gc("v").errors
    assert "link to another place" in str(error)
    assert (victim / generation.name).is_dir()
    with pytest.raises(WarehouseUnusable, match="link to another place"):
        lake.plain.prepare("v")
    with pytest.raises(WarehouseUnusable, match="link to another place"):
        lake.plain.create("v/g/part-0.parquet")


def test_a_warehouse_that_is_itself_a_link_is_used(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim)
    warehouse = Warehouse(str(tmp_path / "link"))
    warehouse.prepare("inside")
    warehouse.create("inside/g/part-0.parquet").close()
    assert (victim / "inside" / "g").is_dir()
    warehouse.delete("inside", "g")
    assert whole(victim)


@pytest.mark.parametrize(
    ("name", "generation"),
    [("v", "../../victim"), ("..", "victim"), ("v", ".."), ("v", ""), ("../victim", "inside")],
)
def test_a_generation_that_names_another_place_is_not_deleted(
    tmp_path: Path, victim: Path, name: str, generation: str
) -> None:
    (tmp_path / "warehouse" / "v").mkdir(parents=True)
    warehouse = Warehouse(str(tmp_path / "warehouse"))
    with pytest.raises(WarehouseUnusable, match="names no folder in it"):
        warehouse.delete(name, generation)
    assert whole(victim)


@pytest.mark.parametrize("path", ["../../victim/inside/file", "/etc/passwd", "v/../../x"])
def test_a_file_that_the_state_names_outside_of_the_warehouse_is_not_read(
    duckdb_lake_on_sqlite: Make, path: str
) -> None:
    lake = duckdb_lake_on_sqlite()
    lake.days(0)
    lake.run()
    (before,) = lake.store.files("v", [str(lake.data(0).generation)]).values()
    assert before
    with lake.store.database.write() as connection:
        connection.execute(update(schema.generation).values(files=json.dumps([[path, 1, 1]])))
    with pytest.raises(StateError, match="outside of the warehouse"):
        lake.store.files("v", [str(lake.data(0).generation)])
    with lake.store.database.write() as connection:
        files = json.dumps([[file.path, file.bytes, file.rows] for file in before])
        connection.execute(update(schema.generation).values(files=files))
        assert connection.execute(text("SELECT count(*) FROM mv_generation")).scalar() == 1
