"""The package's folders: each small enough to be looked through, and what it exports is there."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import mv_assets

MOST = 15


def test_no_folder_has_more_than_fifteen_modules() -> None:
    root = Path(mv_assets.__file__).parent
    folders = [root, *(each for each in root.rglob("*") if each.is_dir())]
    modules = {folder: [*folder.glob("*.py")] for folder in folders}
    # Besides its `__init__`, which every folder has.
    assert {folder.name: len(held) for folder, held in modules.items() if len(held) > MOST + 1} == {}


def test_what_a_package_exports_is_there() -> None:
    names = [each.name for each in walk_packages(mv_assets.__path__, "mv_assets.") if each.ispkg]
    packages = [mv_assets, *map(import_module, names)]
    exported = {package: getattr(package, "__all__", ()) for package in packages}
    assert [
        f"{package.__name__}.{name}"
        for package, names in exported.items()
        for name in names
        if not hasattr(package, name)
    ] == []
