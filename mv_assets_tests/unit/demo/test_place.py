from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import pytest
from dagster import AssetSpec

from mv_assets.buckets import DAY, iso
from mv_assets.clock import clock
from mv_assets.config import DeclaredProject, MaterializedView, Spark
from mv_assets.config.errors import HomeUnwritable
from mv_assets.config.tables import FORMATS
from mv_assets.demo import Demo, project_file
from mv_assets.demo.errors import ProjectNotNamed
from mv_assets.demo.files import files_in
from mv_assets.views.catalog import load

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MV_ASSETS_PROJECT", raising=False)
    monkeypatch.setenv("MV_ASSETS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_project_file_is_the_one_that_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MV_ASSETS_PROJECT", "mine.yaml")
    assert project_file() == Path("mine.yaml")
    assert not home.exists()


def test_else_it_is_the_demos_with_two_weeks_of_data(home: Path) -> None:
    before = clock()
    file = project_file()
    assert file == home / "demo" / "project.yaml"
    held = files_in(Demo.here().trips)
    start = before - before % DAY - 14 * DAY
    assert held[0].start == start
    assert before - 1_000 <= held[-1].end <= clock()
    # One after the other, without a gap.
    assert [each.end for each in held[:-1]] == [each.start for each in held[1:]]
    catalog = load(file, schemas=True)
    assert {view.start for view in catalog.project.views} == {start}
    assert catalog.project.tables[0].path == str(home / "demo" / "trips")


def test_a_project_that_lies_here_is_the_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Dagster loads it."""
    monkeypatch.chdir(tmp_path)
    Path("project.yaml").write_text("views: []\n")
    told = list[Path]()
    assert project_file(told.append) == tmp_path / "project.yaml"
    assert told == [tmp_path / "project.yaml"]
    assert not home.exists()


def test_the_demos_own_folder_is_no_other_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_file()
    monkeypatch.chdir(home / "demo")
    assert project_file() == home / "demo" / "project.yaml"


@pytest.fixture
def deployed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """DAGSTER_HOME with the settings of the checkout; the process was started elsewhere."""
    folder = tmp_path / "deployed"
    folder.mkdir()
    (folder / "dagster.yaml").write_text((CHECKOUT / "dagster.yaml").read_text())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name in ("MV_ASSETS_PROJECT", "MV_ASSETS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder


def test_dagster_finds_one_project_wherever_it_is_started(
    deployed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_file() == deployed / ".mv_assets" / "demo" / "project.yaml"
    monkeypatch.setenv("HOME", str(deployed.parent))
    monkeypatch.setenv("DAGSTER_HOME", "~/deployed")
    assert project_file() == deployed / ".mv_assets" / "demo" / "project.yaml"
    (deployed / "project.yaml").write_text("views: []\n")
    assert project_file() == deployed / "project.yaml"
    assert list(Path.cwd().iterdir()) == []
    # Another one beside it is not passed over in silence.
    Path("project.yaml").write_text("views: []\n")
    with pytest.raises(ProjectNotNamed) as refused:
        project_file()
    assert f"there is {Path.cwd()}/project.yaml, but DAGSTER_HOME is {deployed}" in str(refused.value)


@pytest.mark.parametrize(
    "settings", [None, "", "nux: {enabled: false}\n", "[]", "instance_class: x", "a: [", b"\xff"]
)
def test_other_settings_of_dagsters_say_nothing_of_projects(
    deployed: Path, settings: str | bytes | None
) -> None:
    file = deployed / "dagster.yaml"
    file.unlink()
    if settings is not None:
        file.write_bytes(settings if isinstance(settings, bytes) else settings.encode())
    Path("project.yaml").write_text("views: []\n")
    assert project_file() == Path.cwd() / "project.yaml"


def test_the_second_start_finds_what_the_first_has_written(home: Path) -> None:
    project_file()
    first = everything(home)
    assert project_file().is_file()
    assert everything(home) == first


def test_what_the_user_made_of_the_project_file_stays(home: Path) -> None:
    project_file().write_text("views: []\n")
    assert project_file().read_text() == "views: []\n"
    assert home.is_dir()


def test_a_project_file_that_was_thrown_away_is_written_again_with_the_same_start(home: Path) -> None:
    text = project_file().read_text()
    project_file().unlink()
    # Nor does retention move it.
    demo = Demo.here()
    demo.deleted.mkdir()
    first = min(demo.trips.iterdir())
    first.rename(demo.deleted / first.name)
    assert project_file().read_text() == text
    assert f"start: {first.name}" in text
    assert home.is_dir()


def test_several_that_start_at_once_make_one_whole_demo(home: Path) -> None:
    told = list[Path]()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(Demo.here().ensured, clock(), told.append) for _ in range(4)]
    assert {each.result() for each in asked} == {home / "demo" / "project.yaml"}
    assert told == [home / "demo"]
    assert [path.name for path in home.iterdir()] == ["demo"]
    held = files_in(Demo.here().trips)
    assert [each.end for each in held[:-1]] == [each.start for each in held[1:]]


def test_a_home_that_is_no_folder_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("MV_ASSETS_PROJECT", raising=False)
    monkeypatch.setenv("MV_ASSETS_HOME", str(tmp_path / "file"))
    with pytest.raises(HomeUnwritable, match="name another folder with MV_ASSETS_HOME"):
        project_file()


def test_the_demo_moves_with_its_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project_file()
    home.rename(tmp_path / "elsewhere")
    monkeypatch.delenv("MV_ASSETS_HOME")
    project = load(tmp_path / "elsewhere" / "demo" / "project.yaml", schemas=True).project
    assert Path(project.warehouse.path).resolve() == tmp_path / "elsewhere" / "warehouse"
    assert Path(project.state.url.removeprefix("sqlite:///")).resolve() == tmp_path / "elsewhere" / "state.db"


def test_the_example_shows_every_key_there_is() -> None:
    text = files("mv_assets.demo").joinpath("project.yaml").read_text()
    models = [DeclaredProject, Spark, MaterializedView, *FORMATS.values()]
    keys = {name for model in models for name in model.model_fields}
    assert {key for key in keys if not re.search(rf"\b{key.rstrip('_')}:", text)} == set()


def test_dagster_takes_the_owners(home: Path) -> None:
    for view in load(project_file(), schemas=False).project.views:
        assert view.description
        assert AssetSpec(view.name, owners=list(view.owners)).owners == list(view.owners)
        assert iso(view.start or 0).endswith("T00:00:00Z")
    assert home.is_dir()
