"""Owns suspending: the state of the observed frames before an instruction."""

from __future__ import annotations

from types import CellType
from typing import Any

from magweld.frontend.monitor.code_table import Row, variadic_names
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.session import Session
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.segments.form import Form, FrameForm, Suspended
from magweld.frontend.segments.liveness import Slot, slot_names
from magweld.frontend.segments.shape import Shape
from magweld.frontend.segments.sources import Sources


class CannotSuspendError(Exception):
    """The frames cannot be made again later.

    Attributes:
        frame: Number of the outermost frame that prevents it, from 0.
    """

    def __init__(self, frame: int) -> None:
        super().__init__(f"frame {frame}")
        self.frame = frame


def suspend(session: Session, sources: Sources, stack: list[Any]) -> Suspended:
    """Return the state of the observed frames.

    Args:
        session: Its innermost frame is before an instruction, the others in a call.
        sources: Knows the code.
        stack: Value stack of the innermost frame.

    Raises:
        CannotSuspendError: A frame has no continuation, or its caller is no call.
    """
    observers = session.active()[1:]
    frames: list[FrameForm] = []
    state: list[Any] = []
    for index, observer in enumerate(observers):
        values = stack
        if index < len(observers) - 1:
            if not observer.links_to(observers[index + 1]):
                raise CannotSuspendError(index + 1)
            values = _below_call(session, observer)
        try:
            form, found = _frame(session, sources, observer, values)
        except ValueError as error:
            raise CannotSuspendError(index) from error
        frames.append(form)
        state += found
    return Suspended(Form(tuple(frames)), tuple(state))


def _below_call(session: Session, observer: Observer) -> list[Any]:
    row = observer.previous
    assert row is not None, "the frame is in a call"
    operands = row.arg + 2 if row.opname == "CALL" else 3 + (row.arg & 1)
    # The operands are given away by now; what lies below them still lies there.
    return session.reader.stack(observer.frame, row.depth - operands)


def _frame(
    session: Session, sources: Sources, observer: Observer, stack: list[Any]
) -> tuple[FrameForm, list[Any]]:
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
    values = [
        (slot, session.reader.slot(observer.frame, slot))
        for slot in sorted(source.liveness.at(offset))
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
    found = [_lifted(observer.lifted_local(names[s]), value) for s, value in bound]
    for position, value in enumerate(stack):
        if value is not null:
            found.append(_lifted(observer.lifted_operand(position), value))
    return form, found


def _lifted(lifted: Any, value: Any) -> Any:
    return value if lifted is None else lifted
