"""What is installed from a wheel, or from an sdist, has all that it needs, and runs without a checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

import mv_assets

pytestmark = pytest.mark.processes
PACKAGE = Path(mv_assets.__file__).parent
BUILT = ("pyproject.toml", "README.md", "LICENSE")
BUILD = """
import sys
from setuptools import build_meta
print({"sdist": build_meta.build_sdist, "wheel": build_meta.build_wheel}[sys.argv[1]](sys.argv[2]))
"""


def run(folder: Path, *command: str, **environment: str) -> str:
    """What is said by a process that finds nothing of the checkout."""
    given = {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONWARNINGS": "ignore", **environment}
    given.pop("PYTHONPATH", None)
    ran = subprocess.run(  # noqa: S603 - our own commands
        command, cwd=folder, env=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def built(kind: str, source: Path, to: Path) -> Path:
    return to / run(source, sys.executable, "-c", BUILD, kind, str(to)).splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in BUILT:
        shutil.copy(PACKAGE.parent / name, source)
    shutil.copytree(PACKAGE, source / "mv_assets", ignore=shutil.ignore_patterns("__pycache__"))
    return built("sdist", source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pip makes it of the sdist alone."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.iterdir()
    return built("wheel", source, folder)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment of its own, into which pip has installed the wheel.

    The libraries are this environment's: they are found behind what is its own, and pip is told of none.
    """
    folder = tmp_path_factory.mktemp("installed")
    run(folder, sys.executable, "-m", "venv", "--without-pip", str(folder))
    python, quiet = folder / "bin" / "python", ("--quiet", "--disable-pip-version-check")
    alone = ("install", *quiet, "--no-deps", "--no-index", str(wheel))
    run(folder, sys.executable, "-m", "pip", "--python", str(python), *alone)
    [own] = folder.glob("lib/python*/site-packages")
    (own / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder / "bin"


def test_a_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == {f"mv_assets/{path.relative_to(PACKAGE)}" for path in files}
    assert {"mv_assets/py.typed", "mv_assets/demo/project.yaml"} <= names


def test_it_says_to_others_where_to_begin(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [points] = [name for name in archive.namelist() if name.endswith("/entry_points.txt")]
        found = ConfigParser()
        found.read_string(archive.read(points).decode())
        assert any(name.endswith("/licenses/LICENSE") for name in archive.namelist())
    assert found["console_scripts"]["mv-assets"] == "mv_assets.cli:main"
    assert found["dagster_dg_cli.registry_modules"]["mv_assets"] == "mv_assets"


def test_the_demo_begins_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    ours, python = str(installed / "mv-assets"), str(installed / "python")
    here = {"MV_ASSETS_HOME": str(tmp_path / "home")}
    where = run(tmp_path, python, "-c", "import mv_assets; print(mv_assets.__file__)", **here)
    assert where.startswith(str(installed.parent))
    [described] = installed.parent.glob("lib/python*/site-packages/mv_assets-*.dist-info")
    version = described.name.removesuffix(".dist-info").split("-")[1]
    assert run(tmp_path, ours, "--version", **here).endswith(f"version {version}\n")
    # The first command that needs its data makes it.
    assert "trips_hourly" in run(tmp_path, ours, "plan", **here)
    assert "arrive" in run(tmp_path, ours, "demo", "late", **here)
    loads = "from mv_assets.launcher import WarmRunLauncher; import mv_assets.definitions"
    run(tmp_path, python, "-c", loads, **here)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_computes_the_demo_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    ours, here = str(installed / "mv-assets"), {"MV_ASSETS_HOME": str(tmp_path / "home")}
    assert run(tmp_path, ours, "refresh", **here).count("committed") == 2
    views = json.loads(run(tmp_path, ours, "status", "--json", **here))["views"]
    counts = {each["name"]: each["counts"] for each in views}
    assert counts.keys() == {"trips_hourly", "trips_daily"}
    assert all(each["VALID"] and not each["STALE"] for each in counts.values()), counts
