"""Owns running a way that the program does not take, and undoing all it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING

from magweld.frontend.control.arm_code import FrameState, continue_at
from magweld.frontend.control.flow import Flow, Join
from magweld.frontend.control.pieces import Piece
from magweld.frontend.control.rollback import Rollback
from magweld.frontend.control.scopes import Arm, ArmEndedError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.events import Observe
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.segments.liveness import slot_count

if TYPE_CHECKING:
    from magweld.frontend.operators.recorder import OperatorRecorder
    from magweld.frontend.session.session import Session


def read_state(session: Session, observer: Observer, depth: int) -> FrameState:
    """Return the values in a frame whose event this is.

    Args:
        session: Knows how to read frames.
        observer: Of the frame.
        depth: How much of the value stack counts.
    """
    reader = session.reader
    count = slot_count(observer.code)
    slots = tuple(reader.slot(observer.frame, index) for index in range(count))
    stack = tuple(reader.stack(observer.frame, depth))
    return FrameState(slots, tuple(reader.plain(value) for value in stack))


def run_on_trial(
    session: Session,
    recorder: OperatorRecorder,
    arm: Arm,
    start: int,
    state: FrameState,
    original: FunctionType,
) -> Piece:
    """Run a way of a branch on the side, with everything undone at its end.

    Args:
        session: The run; its innermost frame is the one of the branch.
        recorder: Records the operators.
        arm: Becomes the result: a state or a failure.
        start: Offset of the first instruction.
        state: The values to start with.
        original: Function of that frame.

    Returns:
        The operators that ran.
    """
    mark = recorder.mark()
    try:
        function = continue_at(original, start, state)
    except ValueError as error:
        arm.failure = str(error)
        return Piece(recorder.since(mark))
    session.registered.add(id(function.function))
    # The function must not lose its id to another one.
    session.graph.constant(function.function)
    arm.code, arm.shift = function.function.__code__, function.shift
    before = operator_state()
    undo = Rollback(recorder.watch)
    try:
        with undo, recorder:
            next(_with_own_handlers(session, function.run), None)
        arm.failure = "the function returned"
    except ArmEndedError:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # What the other way raises is no matter of the program's.
        arm.failure = f"{type(error).__name__} in the other way"
    session.resume_events()
    if arm.state is not None and arm.modes != before:
        arm.state, arm.failure = None, "a mode of torch was changed"
    return Piece(recorder.since(mark))


def _with_own_handlers(session: Session, run: Callable[[], object]) -> Iterator[None]:
    """Run a way with a stack of handled exceptions of its own, that of a generator.

    A way may end between two instructions at the end of a handler, where the
    interpreter does not take off what was handled: the program would see it as
    `sys.exc_info()` and as the context of what it raises.
    """
    session.run_aside(run)
    yield


def enter_arm(session: Session, arm: Arm, frame: FrameType, flow: Flow) -> Observe:
    """Return what observes the outermost frame of an arm."""
    parent = session.current
    assert parent is not None, "an arm belongs to an observed frame"
    table = session.tables.table(flow.code)
    observer = parent.beside(frame, table.rows)
    observer.code = flow.code
    observer.began = parent.began
    observer.anchor = parent.anchor
    arm.observer = observer
    shift = arm.shift

    def observe(frame: FrameType, offset: int) -> None:
        if offset >= shift:
            observer.observe(frame, offset - shift)

    session.admit(frame, observer)
    return observe


def state_at_end(
    session: Session, join: Join, observer: Observer, row: Row
) -> FrameState:
    """Return what lives at the end of a way."""
    if not join.returns:
        return read_state(session, observer, row.depth)
    if row.opname == "RETURN_CONST":
        return FrameState((), (row.argval,))
    value = session.reader.stack(observer.frame, row.depth)[-1]
    return FrameState((), (value,))
