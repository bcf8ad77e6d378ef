"""A package of a user's in a folder, imported anew each time that its files are written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mv_assets.views.python import Loaded, load

VIEWS = """\
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from shop.helpers import rate


def weekly(events: DataFrame) -> DataFrame:
    factor = rate(3)
    return events.groupBy("day").agg(F.sum("n") * factor)
"""
HELPERS = """\
RATE = 2


def rate(times):
    return RATE * times
"""


class Shop:
    """Files of a package `shop`; a text is of shop/views.py unless it says otherwise."""

    def __init__(self, folder: Path, views: str = VIEWS, **others: str) -> None:
        self.folder = folder
        self.write(**{"__init__": "", "helpers": HELPERS, "views": views, **others})

    def write(self, **files: str) -> None:
        """Files of the package, by their names; `__` stands for a folder."""
        forget(self.folder)
        for name, text in files.items():
            path = self.folder / "shop" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def load(self, name: str = "shop.views:weekly") -> Loaded:
        return load(name, self.folder)

    def code(self, name: str = "shop.views:weekly") -> str:
        return self.load(name).code

    def code_elsewhere(self, python: str = sys.executable, before: str = "", **environment: str) -> str:
        """The same by a process of its own."""
        text = f"{before}\nfrom pathlib import Path\nfrom mv_assets.views.python import load\n"
        text += f"print(load('shop.views:weekly', Path({str(self.folder)!r})).code)"
        done = subprocess.run(  # noqa: S603 - our own text
            [python, "-c", text], env=os.environ | environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()


def forget(folder: Path) -> None:
    """As if nothing had been imported from there."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]
    sys.path[:] = [each for each in sys.path if each != str(folder)]
