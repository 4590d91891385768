"""Owns suspending: the state of the observed frames before an instruction."""

from __future__ import annotations

from types import CellType
from typing import TYPE_CHECKING, Any

import torch

from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.mock.rebuild import Lifted
from magweld.frontend.monitor.code_table import Row, variadic_names
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.form import Form, FrameForm, Suspended
from magweld.frontend.segments.liveness import Slot, slot_count, slot_names
from magweld.frontend.segments.shape import Shape, outlives
from magweld.frontend.segments.sources import Sources

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
        CannotSuspendError: A frame has no continuation, or its caller is no call.
    """
    observers = session.active()[1:]
    frames: list[FrameForm] = []
    state: list[Any] = []
    results: list[Any] = []
    for index, observer in enumerate(observers):
        values = stack
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
    if Slot.OUTER in kinds:
        raise ValueError("an exception is being handled")
    null = session.reader.null
    positions = tuple(Slot.EMPTY if v is null else Slot.VALUE for v in stack)
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
