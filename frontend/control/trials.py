"""Owns branches that are on trial, what undoes them, and the scopes that are open."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import FrameType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import fx

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.comparison import DifferenceError
from magweld.frontend.control.escape import may_escape
from magweld.frontend.control.flow import FlowGraph, Join
from magweld.frontend.control.frame_state import FrameState, continue_at
from magweld.frontend.control.pieces import Piece
from magweld.frontend.control.scopes import Scope, TrialBranch, TrialEndedError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.events import Observe
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.put_back import SavedMemory, save_generators
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.operators.watch import OperatorWatch
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
            self._before[0](tensor, args)  # a branch within a branch
        if torch.is_grad_enabled() and any(map(_requires_grad, (tensor, *args))):
            # The write would change the autograd graph, which nothing undoes.
            raise StopRecordingError("tensor-value", "a write with gradients")
        self._saved[storage] = SavedMemory.of(tensor)


def _requires_grad(obj: Any) -> bool:
    if isinstance(obj, (list, tuple)):
        return any(map(_requires_grad, obj))
    return isinstance(obj, torch.Tensor) and obj.requires_grad


class Trials:
    """Runs branches that the program does not take.

    Attributes:
        session: The run.
        recorder: Records its operators.
        scopes: Open branches, loops and branches on trial, the innermost last.
    """

    def __init__(self, session: Session, recorder: OperatorRecorder) -> None:
        self.session = session
        self.recorder = recorder
        self.scopes: list[TrialBranch | Scope] = []
        self._functions: dict[Observer, FunctionType] = {}
        self._entering: tuple[TrialBranch, FlowGraph, FunctionType] | None = None

    def enter(self, frame: FrameType) -> Observe | None:
        """Return what observes a frame that begins a branch, None for any other."""
        if self._entering is None or frame.f_code is not self._entering[0].code:
            return None
        (trial, flow, function), self._entering = self._entering, None
        parent = self.session.current
        assert parent is not None, "a trial branch belongs to an observed frame"
        rows = self.session.tables.table(flow.code).rows
        trial.observer = observer = parent.fork_for(frame, rows)
        observer.code = flow.code
        observer.began = parent.began
        observer.anchor = parent.anchor
        self._functions[observer] = function
        self.session.admit(frame, observer)
        return observer.observe_from(trial.shift, trial.shift)

    def is_trial(self) -> bool:
        """Return whether what runs now will be undone."""
        return self.trial() is not None

    def trial(self) -> TrialBranch | None:
        """Return the innermost branch on trial."""
        for scope in reversed(self.scopes):
            if isinstance(scope, TrialBranch):
                return scope
        return None

    def new_trial(self, row: Row, join: Join) -> TrialBranch:
        """Return a branch that begins at a jump, before it runs."""
        return TrialBranch(join, row, self.session.graph.next_moment())

    def run(
        self,
        trial: TrialBranch,
        flow: FlowGraph,
        start: int,
        state: FrameState,
        observer: Observer,
    ) -> Piece:
        """Run a branch; what became of it is in `trial`.

        Args:
            observer: Of the frame that it belongs to, which is the innermost.

        Returns:
            The operators that ran.
        """
        session = self.session
        original = self._functions.get(observer)
        if original is None:
            original = session.reader.function(observer.frame)
        depth, merged = len(self.scopes), set(session.graph.choices.merged)
        lifting = session.graph.lifting
        known = None if lifting is None else lifting.save()
        before = self.recorder.tensors.overlay(trial.nodes)
        self.scopes.append(trial)
        self._entering = (trial, flow, original)
        try:
            return self._run(trial, start, state, original)
        finally:
            self._entering = None
            del self.scopes[depth:]
            trial.nodes = self.recorder.tensors.restore(before)
            session.graph.choices.merged = merged
            if lifting is not None and known is not None:
                # What was known of places before stays known.
                lifting.restore(known, trial.state is not None)

    def _run(
        self, trial: TrialBranch, start: int, state: FrameState, original: FunctionType
    ) -> Piece:
        """Run a branch on the side, with everything undone at its end."""
        session, recorder = self.session, self.recorder
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
        try:
            with Rollback(recorder.watch), recorder:
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

    def callers(self) -> list[Observer]:
        """Return the observers of the frames below that the program goes back to.

        A branch on trial stands in the place of the frame that it belongs to.
        """
        active = self.session.active()
        return [
            caller
            for caller, called in pairwise(active)
            if called not in self._functions
        ]

    def check_escape(self, wanted: frozenset[int], held: Iterable[Any]) -> None:
        """Refuse that the program may still reach tensors another way.

        Args:
            wanted: Ids of the tensors, all from before the scope that ends.
            held: What the innermost frame holds.

        Raises:
            DifferenceError: It may.
        """
        if may_escape(self.session, wanted, held, self.callers()):
            raise DifferenceError("a tensor that is still in use elsewhere")

    def take_results(
        self, node: fx.Node, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        """Let tensors stand for the results of a branch or loop.

        Args:
            node: The operator.
            pairs: For each result the tensor, and the one that it may be instead.
        """
        recorder = self.recorder
        for index, (tensor, other) in enumerate(pairs):
            part = recorder.graph.call_function(operator.getitem, (node, index))
            recorder.tensors.rebind(tensor, part, other)
            self.session.graph.choices.merged.add(id(tensor))


def _with_own_handlers(session: Session, run: Callable[[], object]) -> Iterator[None]:
    """Run a branch with a stack of handled exceptions of its own, that of a generator.

    A branch may end between two instructions at the end of a handler, where the
    interpreter does not take off what was handled: the program would see it as
    `sys.exc_info()` and as the context of what it raises.
    """
    session.run_aside(run)
    yield
