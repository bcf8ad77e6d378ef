"""Where the demo lives, and making it on first use."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path

from mv_assets.clock import clock
from mv_assets.config.errors import HomeUnwritable
from mv_assets.config.home import folder, home
from mv_assets.demo.errors import ProjectNotNamed

DAYS = 14
_START = "2024-01-01"


def _say_nothing(_written: Path) -> None:
    pass


def project_file(say: Callable[[Path], None] = _say_nothing) -> Path:
    """The project file that a process of Dagster works with: the one MV_ASSETS_PROJECT names.

    Else, and then `say` is told: project.yaml, or the demo, in the one folder that they all find.

    Raises:
        ProjectNotNamed: this process was started beside another one.
        HomeUnwritable: the demo's folder can't be written.

    """
    if named := os.environ.get("MV_ASSETS_PROJECT"):
        return Path(named)
    found = lying_here()
    if found and not found[0].parent.samefile(folder()):
        raise ProjectNotNamed(str(found[0].absolute()), str(folder()))
    file = found[0].absolute() if found else Demo.here().ensured(clock())
    say(file)
    return file


def lying_here() -> list[Path]:
    """Project files that nobody named: of the working directory, and of the folder that Dagster keeps to."""
    here, other = Path("project.yaml"), folder() / "project.yaml"
    found = [file for file in (here, other) if file.is_file() and not _same(file, Demo.here().project)]
    return found[:1] if len(found) > 1 and _same(*found) else found


def _same(file: Path, other: Path) -> bool:
    return other.is_file() and file.samefile(other)


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's folder. Hidden folders beside the tables hold what events have taken out of them."""

    root: Path

    @classmethod
    def here(cls) -> Demo:
        """The demo in MV_ASSETS_HOME."""
        return cls(Path(home()).absolute() / "demo")

    @property
    def project(self) -> Path:
        return self.root / "project.yaml"

    @property
    def trips(self) -> Path:
        return self.root / "trips"

    @property
    def zones(self) -> Path:
        return self.root / "zones"

    @property
    def deleted(self) -> Path:
        return self.root / ".deleted"

    @property
    def originals(self) -> Path:
        """Whole copies of the files that were damaged."""
        return self.root / ".originals"

    def exists(self) -> bool:
        return self.trips.is_dir()

    def ensured(self, now: int, say: Callable[[Path], None] = _say_nothing) -> Path:
        """The project file, with the data of the last two weeks if there was nothing yet.

        Raises:
            HomeUnwritable: the folder can't be written.

        """
        try:
            written = self._written(now)
        except OSError as error:
            raise HomeUnwritable(str(self.root), error.strerror or str(error)) from error
        if written is not None:
            say(written)
        return self.project

    def _written(self, now: int) -> Path | None:
        """What was missing: all of it, the project file, or nothing."""
        if not self.root.is_dir():
            return self.root if self._make(now) else None
        if self.project.is_file():
            return None
        self._write_project(self._first_day())
        return self.project

    def _make(self, now: int) -> bool:
        from mv_assets.demo.feeder import advance, write_zones  # noqa: PLC0415 - most commands need no Arrow

        today = datetime.fromtimestamp(now / 1_000, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        start = today - timedelta(days=DAYS)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: several processes may start with the demo at the same time.
        made = Demo(Path(tempfile.mkdtemp(prefix=".demo-", dir=self.root.parent)))
        try:
            write_zones(made)
            advance(made, int(start.timestamp() * 1_000), now)
            made._write_project(f"{start:%Y-%m-%d}")
            made.root.chmod(0o755)
            return _move(made.root, self.root)
        finally:
            shutil.rmtree(made.root, ignore_errors=True)

    def _write_project(self, start: str) -> None:
        """A copy of the example with the start filled in: coverage must not move with the clock."""
        text = files("mv_assets.demo").joinpath("project.yaml").read_text(encoding="utf-8")
        written = self.project.with_name(f".project-{os.getpid()}.yaml")
        written.write_text(text.replace(f"start: {_START}", f"start: {start}"), encoding="utf-8")
        written.replace(self.project)

    def _first_day(self) -> str:
        days = [path.name for folder in (self.trips, self.deleted) for path in folder.glob("[0-9]*")]
        return min(days, default=_START)


def _move(source: Path, target: Path) -> bool:
    """Put a folder in its place, unless somebody else was first."""
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():
            raise
        return False
    return True
