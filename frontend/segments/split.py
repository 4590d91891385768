"""Owns the places where programs are split, and the split of one run."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any

from magweld.frontend.catalogue import SPLITTING, Break, StopRecordingError
from magweld.frontend.monitor.code_table import Handler, Row
from magweld.frontend.monitor.hooks import Rows, SessionHooks, Site
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.segments.form import Form, Suspended
from magweld.frontend.segments.sources import Sources
from magweld.frontend.segments.suspend import (
    CannotSuspendError,
    ProgramLeftError,
    may_be_left,
    suspend,
)

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

# Instructions of one traced callable before which a recording may end.
MAX_PLACES = 64


class Places:
    """Instructions that are known to end a recording before they run."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._places: dict[int, dict[int, Break]] = {}
        # Keeps the ids of code objects their own.
        self._codes: list[CodeType] = []
        self._suspects: set[tuple[int, int]] = set()

    def is_known(self, site: Site) -> bool:
        """Return whether an instruction ends recordings."""
        code = self._sources.origin(site.code)
        offset = self._sources.locate(site.code, site.offset)
        return offset in self._places.get(id(code), {})

    def add(self, site: Site, reason: Break) -> bool:
        """Add an instruction; False if it will not end recordings yet.

        A value that decides may decide otherwise, or be a branch of the graph, in the
        next run, which is then captured as a whole; such a place is added when it has
        ended a recording for the second time.
        """
        code = self._sources.origin(site.code)
        offset = self._sources.locate(site.code, site.offset)
        if len(self._codes) >= MAX_PLACES:
            return False
        self._codes.append(code)
        place = id(code), offset
        if reason.id == "tensor-value" and place not in self._suspects:
            self._suspects.add(place)
            return False
        self._places.setdefault(id(code), {})[offset] = reason
        return True

    def rows(self, code: CodeType, rows: Rows) -> Rows:
        """Return the rows of a code object, with the known places marked."""
        known = self._places.get(id(self._sources.origin(code)))
        if not known:
            return rows
        shift = self._sources.shift(code)
        marked = {offset + shift: reason for offset, reason in known.items()}
        result = list(rows)
        for index, row in enumerate(rows):
            if row is not None and row.offset in marked:
                result[index] = _marked(row, marked[row.offset])
        return result


def _marked(row: Row, reason: Break) -> Row:
    def leave(observer: Observer, row: Row, stack: list[Any]) -> None:
        raise StopRecordingError(reason.id, reason.detail)

    handler: Handler = leave
    return row.with_handler(handler)


class Split:
    """The end of a recording within a run.

    Attributes:
        form: Form of the state of the program there; None if it was not suspended.
        left: The program, when its frames were left there; it has to go on in others.
    """

    def __init__(
        self,
        session: Session,
        sources: Sources,
        places: Places,
        finish: Callable[[list[Any]], Any],
    ) -> None:
        self.form: Form | None = None
        self._part: Callable[[], Any] | None = None
        self.left: Suspended | None = None
        self._session = session
        self._sources = sources
        self._places = places
        self._finish = finish
        # Number of the outermost frame that cannot be left in the middle.
        self._outermost: int | None = None
        session.hooks = SessionHooks(
            places.rows, sources.is_read, sources.begins, self._split
        )

    def _split(self, observer: Observer, row: Row, stack: list[Any]) -> None:
        # Where this does not succeed, an instruction further out may be split at.
        try:
            program, results = suspend(self._session, self._sources, stack)
        except CannotSuspendError as error:
            self._outermost = error.frame
            return
        trail = self._session.trail
        try:
            part = self._finish(results)
        except StopRecordingError:
            if self._session.trail is trail:  # else it is known where to split
                self._outermost = len(program.form.frames) - 1
            return
        self.form = program.form
        if may_be_left(self._session):
            self.left, self._part = program, lambda: part
            raise ProgramLeftError
        # The program goes on now, and the values that it lets go of are to end.
        self._part = part.let_go()

    @property
    def part(self) -> Any:
        """What was made of the recording, None if nothing was."""
        return None if self._part is None else self._part()

    def learn(self) -> bool:
        """Remember where the next run has to be split.

        Returns:
            Whether a new place was found; if not, the call has to be given up.
        """
        session = self._session
        stopped = session.stopped
        if stopped is None or stopped.id not in SPLITTING:
            return False
        for site in self._candidates(session.trail[1:]):
            if not self._places.is_known(site):
                return self._places.add(site, stopped)
        return False

    def _candidates(self, frames: tuple[Site, ...]) -> tuple[Site, ...]:
        """Return the instructions to split at, the innermost first."""
        for index, site in enumerate(frames):
            if self._outermost is not None and index >= self._outermost:
                return frames[:index][::-1]
            if not site.linked:
                return frames[: index + 1][::-1]
        return ()
