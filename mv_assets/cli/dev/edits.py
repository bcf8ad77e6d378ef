"""The project file while it is served: once it is edited and has no mistakes, Dagster loads it anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from rich.markup import escape

from mv_assets.cli.dev.dagster import Loaded
from mv_assets.cli.dev.home import writing
from mv_assets.config import Spark
from mv_assets.errors import MvError
from mv_assets.spark.startup import is_local
from mv_assets.views.catalog import Catalog

_LOOK_S = 0.5
_LEAVE_WITHIN_S = 5.0
_KEPT = "Dagster goes on with the version before"


@dataclass(slots=True)
class Edits:
    """The file, and the version of it that Dagster's processes read: a run that starts reads it once more.

    `load` is given where a version is, and raises if that has mistakes. `unloaded` is set while Dagster has
    yet to load the accepted one.
    """

    file: Path
    accepted: Path
    load: Callable[[Path], Catalog]
    say: Callable[[str], None]
    spark: Spark
    _judged: bytes | None
    _served: bytes | None
    _before: bytes | None
    unloaded: bool = False

    @classmethod
    def begun(
        cls, file: Path, accepted: Path, load: Callable[[Path], Catalog], say: Callable[[str], None]
    ) -> Edits:
        """The file as it is now.

        Raises:
            ProjectError: it has mistakes, or can't be read.
            HomeUnwritable: the version that is served can't be kept.

        """
        content = _content(file)
        if content is not None:
            _write(accepted, content)
        spark = load(file if content is None else accepted).project.spark
        return cls(file, accepted, load, say, spark, content, content, content)

    def look(self) -> None:
        """See whether the file was edited; what is not the same at two looks is still being written."""
        content, before = _content(self.file), self._before
        self._before = content
        if content == before and content != self._judged:
            self._judged = content
            self._judge(content)

    def _judge(self, content: bytes | None) -> None:
        if content == self._served:
            self.say(f"{self._name} is again the version that Dagster has")
            return
        if content is None:
            self.say(f"[bold red]{self._name} can't be read[/]; {_KEPT}")
            return
        tried = self.accepted.with_name(f".{self.accepted.name}")
        try:
            _write(tried, content)
            if self._fits(self.load(tried).project.spark):
                tried.replace(self.accepted)
                self._served, self.unloaded = content, True
        except MvError as error:
            self.say(f"[bold red]{escape(str(error))}[/]\n{_KEPT}")
        finally:
            tried.unlink(missing_ok=True)

    def _fits(self, spark: Spark) -> bool:
        """Whether the Spark that runs will do: runs under way need it."""
        if spark != self.spark and (is_local(spark) or is_local(self.spark)):
            again = "stop this with Ctrl-C and start it again to have that"
            self.say(f"[yellow]{self._name} was edited, and its `spark` is another[/]: {again}; {_KEPT}")
            return False
        self.spark = spark
        return True

    def loaded(self, how: Loaded) -> None:
        """Dagster has loaded the accepted version, well or not."""
        self.unloaded = False
        for name, error in how.errors.items():
            self.say(f"[bold red]{escape(name)} can't be loaded:[/] {escape(error.strip())}")
        if not how.errors:
            self.say(f"{self._name} was edited: Dagster has loaded it anew")

    @property
    def _name(self) -> str:
        return escape(str(self.file))


@contextmanager
def watching(edits: Edits, reload: Callable[[], Loaded | None]) -> Iterator[None]:
    """Look at the file, from a thread, while the block lasts: to load it anew takes seconds.

    `reload` has Dagster load it and says how that went, or None while Dagster can't be asked.
    """
    over = Event()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            edits.look()
            if edits.unloaded and (how := reload()) is not None:
                edits.loaded(how)

    thread = Thread(target=watch, name="edits", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        # A table that does not answer must not hold up the end.
        thread.join(_LEAVE_WITHIN_S)


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _write(file: Path, content: bytes) -> None:
    """For its owner only, as there may be secrets in it."""
    with writing(file.parent):
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        file.write_bytes(content)
