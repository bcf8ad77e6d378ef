"""What keeps a view from being looked at, computed or published, until it goes well again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from sqlalchemy import select

from mv_assets.errors import MvError, Refused, StateError, StillReading
from mv_assets.state.model import Doing, Trouble
from mv_assets.state.store import Store, schema

# Of these the first can't be written down, the second is for who asked, the third is none.
_NO_TROUBLE = (StateError, Refused, StillReading)
_KNOWN = select(schema.trouble)


class Troubles:
    """Beside the map, for people to read: nothing is decided by it, so it is written if it can be."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock

    def views(self, doing: Doing) -> set[str]:
        """Those of which it went wrong."""
        return {view for (what, view) in self._known() if what is doing}

    def note(self, doing: Doing, errors: Mapping[str, MvError | None]) -> None:
        """What it came to, by view, to do something; None if it went well. Writes only changes."""
        self.note_all({doing: errors})

    def note_all(self, all_errors: Mapping[Doing, Mapping[str, MvError | None]]) -> None:
        """The same of several."""
        with suppress(StateError):
            known = self._known()
            for doing, errors in all_errors.items():
                for view, error in errors.items():
                    self._note(doing, view, error, known.get((doing, view)))

    def _note(self, doing: Doing, view: str, error: MvError | None, before: Trouble | None) -> None:
        what = None if error is None else str(error)
        if not isinstance(error, _NO_TROUBLE) and what != (before and before.what):
            since = self._clock() if before is None else before.since
            with self._store.write(view, lock=False) as tx:
                tx.put_trouble(doing, None if what is None else Trouble(doing, since, what))

    def _known(self) -> dict[tuple[Doing, str], Trouble]:
        with self._store.database.read() as connection:
            found = [
                (record.view, Trouble(Doing(record.doing), record.since, record.what))
                for record in connection.execute(_KNOWN)
            ]
        return {(trouble.doing, view): trouble for view, trouble in found}
