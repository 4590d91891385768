"""Owns running a branch that the program does not take, and undoing all it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.flow import Flow, Join
from magweld.frontend.control.frame_state import FrameState, continue_at
from magweld.frontend.control.pieces import Piece
from magweld.frontend.control.scopes import TrialBranch, TrialEndedError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.events import Observe
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.put_back import SavedMemory, save_generators
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.operators.watch import OperatorWatch
from magweld.frontend.segments.liveness import slot_count
from magweld.storages import storage_of

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session


class Rollback:
    """Undoes at its end what tensors, generators and modes have become.

    Args:
        watch: Tells about writes before they happen.
    """

    def __init__(self, watch: OperatorWatch) -> None:
        self._watch = watch
        self._made: set[int] = set()
        self._saved: dict[int, SavedMemory] = {}

    def __enter__(self) -> Self:
        self._put_back = save_generators()
        self._grad = torch.is_grad_enabled()
        self._before = self._watch.before_write, self._watch.made
        self._watch.before_write, self._watch.made = self._save, self._made
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._watch.before_write, self._watch.made = self._before
        if self._watch.made is not None:
            self._watch.made |= self._made
        torch.set_grad_enabled(self._grad)
        self._put_back()
        for saved in self._saved.values():
            saved.restore()

    def _save(self, tensor: torch.Tensor, args: Any) -> None:
        storage = storage_of(tensor)
        if storage in self._saved or storage in self._made:
            return
        if self._before[0] is not None:
            self._before[0](tensor, args)  # a way within a way
        if torch.is_grad_enabled() and any(map(_requires_grad, (tensor, *args))):
            # The write would change the autograd graph, which nothing undoes.
            raise StopRecordingError("tensor-value", "a write with gradients")
        self._saved[storage] = SavedMemory.of(tensor)


def _requires_grad(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_requires_grad, obj))
    return isinstance(obj, torch.Tensor) and obj.requires_grad


def read_state(session: Session, observer: Observer, depth: int) -> FrameState:
    """Return the values in a frame whose event this is.

    Args:
        depth: How much of the value stack counts.
    """
    reader = session.reader
    count = slot_count(observer.code)
    slots = tuple(reader.slot(observer.frame, index) for index in range(count))
    stack = tuple(reader.stack(observer.frame, depth))
    plain = tuple(reader.plain(value) for value in stack)
    return FrameState(slots, plain, observer.noted(depth))


def run_on_trial(
    session: Session,
    recorder: OperatorRecorder,
    trial: TrialBranch,
    start: int,
    state: FrameState,
    original: FunctionType,
) -> Piece:
    """Run a side of a branch on the side, with everything undone at its end.

    Args:
        session: The run; its innermost frame is the one of the branch.
        trial: Becomes the result: a state or a failure.
        original: Function of that frame.

    Returns:
        The operators that ran.
    """
    mark = recorder.mark()
    try:
        function = continue_at(original, start, state)
    except ValueError as error:
        trial.failure = str(error)
        return Piece(recorder.since(mark))
    session.registered.add(id(function.function))
    # The function must not lose its id to another one.
    session.graph.constant(function.function)
    trial.code, trial.shift = function.function.__code__, function.shift
    before = operator_state()
    undo = Rollback(recorder.watch)
    try:
        with undo, recorder:
            next(_with_own_handlers(session, function.run), None)
        trial.failure = "the function returned"
    except TrialEndedError:
        pass
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # What the other branch raises is no matter of the program's.
        trial.failure = f"{type(error).__name__} in the other branch"
    session.resume_events()
    if trial.state is not None and trial.modes != before:
        trial.state, trial.failure = None, "a mode of torch was changed"
    return Piece(recorder.since(mark))


def _with_own_handlers(session: Session, run: Callable[[], object]) -> Iterator[None]:
    """Run a branch with a stack of handled exceptions of its own, that of a generator.

    A branch may end between two instructions at the end of a handler, where the
    interpreter does not take off what was handled: the program would see it as
    `sys.exc_info()` and as the context of what it raises.
    """
    session.run_aside(run)
    yield


def enter_trial(
    session: Session, trial: TrialBranch, frame: FrameType, flow: Flow
) -> Observe:
    """Return what observes the outermost frame of a trial branch."""
    parent = session.current
    assert parent is not None, "a trial branch belongs to an observed frame"
    table = session.tables.table(flow.code)
    observer = parent.fork_for(frame, table.rows)
    observer.code = flow.code
    observer.began = parent.began
    observer.anchor = parent.anchor
    trial.observer = observer
    shift = trial.shift

    def observe(frame: FrameType, offset: int) -> None:
        if offset >= shift:
            observer.observe(frame, offset - shift)

    session.admit(frame, observer)
    return observe


def state_at_end(
    session: Session, join: Join, observer: Observer, row: Row
) -> FrameState:
    """Return what lives at the end of a branch."""
    if not join.returns:
        return read_state(session, observer, row.depth)
    value = row.argval
    if row.opname != "RETURN_CONST":
        value = session.reader.stack(observer.frame, row.depth)[-1]
    return FrameState((), (value,), observer.noted(row.depth))
