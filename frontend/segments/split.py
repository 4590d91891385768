"""Owns the split of a run: its places, the state of the observed frames there."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any

import torch

from magweld.frontend.catalogue import SPLITTING, Break, StopRecordingError
from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.mock.rebuild import Lifted
from magweld.frontend.monitor.code_table import (
    Handler,
    Row,
    slot_count,
    slot_names,
    variadic_names,
)
from magweld.frontend.monitor.hooks import Rows, SessionHooks, Site
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.continuation import Sources
from magweld.frontend.segments.liveness import StackSlot
from magweld.frontend.segments.shape import Form, FrameForm, Shape, Suspended, outlives

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


class CannotSuspendError(Exception):
    """The frames cannot be made again later.

    Attributes:
        frame: Number of the outermost frame that prevents it, from 0.
    """

    def __init__(self, frame: int) -> None:
        super().__init__(f"frame {frame}")
        self.frame = frame


class ProgramLeftError(BaseException):
    """Leaves the frames of a program that goes on in others; no program catches it."""


def suspend(
    session: Session, sources: Sources, stack: list[Any]
) -> tuple[Suspended, list[Any]]:
    """Return the state of the observed frames, and what stands for it in a record.

    Args:
        session: Its innermost frame is before an instruction, the others in a call.
        stack: Value stack of the innermost frame.

    Raises:
        CannotSuspendError: A frame has no continuation or cannot go on in a later call,
            or its caller is no call.
    """
    observers = session.active()[1:]
    frames: list[FrameForm] = []
    state: list[Any] = []
    results: list[Any] = []
    for index, observer in enumerate(observers):
        values = stack
        if observer.stays_whole:
            raise CannotSuspendError(index)
        if index < len(observers) - 1:
            if not observer.links_to(observers[index + 1]):
                raise CannotSuspendError(index + 1)
            values = _below_call(session, observer)
            if observer.shadow is not None:
                observer.shadow.suspended()
        try:
            form, found, lifted = _frame(session, sources, observer, values)
        except ValueError as error:
            raise CannotSuspendError(index) from error
        frames.append(form)
        state += found
        results += lifted
    return Suspended(Form(tuple(frames)), state), results


def may_be_left(session: Session) -> bool:
    """Return whether an exception would leave the suspended frames unnoticed.

    Their code must not handle it, and no mode of torch may have been opened in them.
    """
    if torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack() > 2:
        return False
    rows = [observer.previous for observer in session.active()]
    return all(row is not None and not row.handlers for row in rows)


def _below_call(session: Session, observer: Observer) -> list[Any]:
    row = observer.previous
    assert row is not None, "the frame is in a call"
    # The operands are given away by now; what lies below them still lies there.
    return session.reader.stack(observer.frame, row.depth - row.taken)


def _frame(
    session: Session, sources: Sources, observer: Observer, stack: list[Any]
) -> tuple[FrameForm, list[Any], list[Any]]:
    row: Row | None = observer.previous
    assert row is not None, "the frame has begun"
    code = sources.origin(observer.code)
    source = sources.source(code)
    offset = source.first(sources.locate(observer.code, row.offset))
    kinds = source.kinds(offset)
    if StackSlot.OUTER in kinds:
        raise ValueError("an exception is being handled")
    null = session.reader.null
    positions = tuple(StackSlot.EMPTY if v is null else StackSlot.VALUE for v in stack)
    live = source.liveness.at(offset)
    values = [
        (slot, value)
        for slot in range(slot_count(code))
        for value in (session.reader.slot(observer.frame, slot),)
        if slot in live or outlives(value)
    ]
    for name in variadic_names(observer.code):
        # Nothing may have read it yet, but the call has made it.
        value = session.reader.slot(observer.frame, code.co_varnames.index(name))
        if value is not NULL and type(value) is not CellType:
            session.graph.adopt(value)
    bound = [(slot, value) for slot, value in values if value is not NULL]
    shape = Shape(offset, tuple(slot for slot, _ in bound), positions)
    form = FrameForm(code, observer.frame.f_globals, shape)
    names = slot_names(code)
    found = [value for _, value in bound]
    shadow = observer.shadow
    lifted = {} if shadow is None else shadow.names
    results = [_stand_in(lifted.get(names[slot]), value) for slot, value in bound]
    for position, value in enumerate(stack):
        if value is not null:
            found.append(value)
            expression = None if shadow is None else shadow.operand(position)
            results.append(_stand_in(expression, value))
    return form, found, results


def _stand_in(expression: Expression | None, value: Any) -> Any:
    return value if expression is None else Lifted(expression)


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
            is_left = self._outermost is None or index < self._outermost
            if site.stays or not is_left:
                return frames[:index][::-1]
            if not site.linked:
                return frames[: index + 1][::-1]
        return ()
