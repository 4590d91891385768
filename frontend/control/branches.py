"""Owns branches on tensors in a run: both sides recorded, made into one operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.control.comparison import DifferenceError
from magweld.frontend.control.flow import FlowGraph, flow_of
from magweld.frontend.control.frame_state import FrameState, read_state, state_at_end
from magweld.frontend.control.ifs import IfScope
from magweld.frontend.control.regions import (
    branches_of,
    check_handlers,
    jump_behind,
    loop_form,
    with_tests,
)
from magweld.frontend.control.scopes import Scope, TrialBranch, TrialEndedError
from magweld.frontend.control.trials import Trials
from magweld.frontend.control.whiles import WhileScope
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import RESULT, Observer
from magweld.frontend.operators.predicates import Predicate
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import operator_state
from magweld.frontend.state.nodes import Node

if TYPE_CHECKING:
    from magweld.frontend.session.session import Session

# Branches within branches multiply; branches behind each other only add up.
MAX_NESTING: Final = 4
MAX_BRANCHES: Final = 512
# A branch that the program does not take need not come to an end.
MAX_INSTRUCTIONS: Final = 200_000


class Branches(Trials):
    """Makes operators of branches; receives what the observers see.

    Attributes:
        unguarded: Frame and test of a branch that the run is in and no record tells.
    """

    def __init__(
        self,
        session: Session,
        recorder: OperatorRecorder,
        preferred: bool,
        assumes: bool,
    ) -> None:
        super().__init__(session, recorder)
        self.unguarded: tuple[Observer, Row] | None = None
        self._preferred = preferred
        self._assumes = assumes
        self._count = 0
        self._refused: dict[tuple[int, int], str] = {}

    def attach(self) -> None:
        """Let the run and its recorder ask here, until `release`."""
        self.session.control = self
        self.session.graph.choices.check_write = self.check_write
        self.recorder.consider, self.recorder.trial = self.consider, self.is_trial

    def consider(
        self, tensor: torch.Tensor | None, outcome: Any, predicate: Predicate | None
    ) -> bool:
        """Take the truth test of a tensor for a branch or a check of the graph.

        Args:
            tensor: What is tested, None if it is no truth test.
            predicate: Guard that would fix the outcome instead, None if there is none.

        Returns:
            Whether it has become one, so that the outcome needs no guard.

        Raises:
            StopRecordingError: It has not, and there is no guard for the outcome.
        """
        observer = self.session.current
        if tensor is None or observer is None or not self._is_tested(observer, tensor):
            return False
        observer.testing = None
        row = observer.previous
        assert row is not None, "a test belongs to an instruction"
        scope = self.scopes[-1] if self.scopes else None
        if scope is not None and scope.observer is observer and row.tests_result:
            self._arrive_within(scope, observer, row, tensor)
        if isinstance(scope, Scope) and scope.observer is observer:
            if row.offset in scope.tests:
                scope.predicates.append(predicate)
                return True
        flow = flow_of(self.session.tables.table(observer.code))
        jump = jump_behind(flow, row)
        if self._is_required(flow, jump, tensor, outcome, predicate):
            return True
        if jump is None or not self._is_better(predicate):
            return self._no_branch("bool", tensor, outcome, predicate)
        site = (id(observer.code), jump.offset)
        if site not in self._refused:
            try:
                self._open(observer, jump, tensor, outcome, predicate)
                return True
            except DifferenceError as difference:
                self._refused[site] = str(difference)
        return self._no_branch(self._refused[site], tensor, outcome, predicate)

    def _is_required(
        self,
        flow: FlowGraph,
        jump: Row | None,
        tensor: torch.Tensor,
        outcome: bool,
        predicate: Predicate | None,
    ) -> bool:
        """Return whether a truth becomes a check: the other branch only raises."""
        if jump is None:
            return False
        varies = predicate is None or bool(predicate.placeholders)
        raises = flow.only_raises(branches_of(jump, outcome)[1])
        return varies and raises and self.recorder.require(tensor, outcome)

    def _is_tested(self, observer: Observer, tensor: torch.Tensor) -> bool:
        """Return whether the truth of a tensor is what an instruction is about."""
        if observer.testing is not RESULT:
            return observer.testing is tensor
        row = observer.previous
        compares = row is not None and row.tests_result
        made = self.recorder.tensors.known_node(tensor)
        return compares and made is self.recorder.mark()

    def _arrive_within(
        self,
        scope: TrialBranch | Scope,
        observer: Observer,
        row: Row,
        tensor: torch.Tensor,
    ) -> None:
        """Take note that an iteration may end where a comparison tests its result.

        Raises:
            TrialEndedError: It was on trial.
        """
        state = read_state(self.session, observer, row.depth - row.taken)
        state = replace(state, stack=(*state.stack, tensor))
        if isinstance(scope, Scope) and row.offset in scope.tests:
            scope.iterate(state)
        elif isinstance(scope, TrialBranch) and row.offset in scope.join.tests:
            # The comparison is done, and nothing comes of the rest of the instruction.
            observer.awaits_operator, observer.after = "", None
            self._end_trial(scope, state)

    def _end_trial(self, trial: TrialBranch, state: FrameState) -> NoReturn:
        trial.state, trial.modes = state, operator_state()
        raise TrialEndedError

    def _no_branch(
        self,
        reason: str,
        tensor: torch.Tensor,
        outcome: bool,
        predicate: Predicate | None,
    ) -> bool:
        """Return whether a truth that is no operator needs no guard.

        Raises:
            StopRecordingError: It needs one, and there is none.
        """
        if predicate is not None:
            return False
        if not self._assume(self.recorder.requires(tensor, outcome)):
            raise StopRecordingError("tensor-value", reason)
        return True

    def _assume(self, require: Callable[[], None] | None) -> bool:
        """Take a truth for that of all calls, if hits can find out; return whether."""
        if require is None or self.scopes or not self._assumes:
            return False
        lifting = self.session.graph.lifting
        if lifting is not None and lifting.loops is not None:
            lifting.loops.note_branch()
        require()
        self.recorder.assumes = True
        return True

    def _is_better(self, predicate: Predicate | None) -> bool:
        """Return whether a branch of the graph is better than a guard, if any."""
        if predicate is None:
            return True
        # A number that it takes would have to stay as it is, unless it is a size.
        fixes = predicate.copies or bool(predicate.numbers)
        return self._preferred or fixes

    def arrive(self, observer: Observer, row: Row) -> None:
        """Take note of the instruction that comes next, when a scope is open.

        Raises:
            TrialEndedError: A branch on trial is at its end.
            StopRecordingError: A branch has become no operator and has no guard.
        """
        while self.scopes:
            scope = self.scopes[-1]
            if scope.observer is not observer:
                break
            if isinstance(scope, Scope) and row.offset in scope.tests:
                if not row.tests_result:
                    scope.iterate(read_state(self.session, observer, row.depth))
                break
            if row.offset not in scope.join.ends:
                break
            state = state_at_end(self.session, scope.join, observer, row)
            if isinstance(scope, TrialBranch):
                self._end_trial(scope, state)
            self.scopes.pop()
            with torch._C.DisableTorchFunction():
                self._close(scope, state, row)
        trial = self.trial()
        if trial is not None:
            trial.instructions += 1
            if trial.instructions > MAX_INSTRUCTIONS:
                raise StopRecordingError("tensor-value", "the other branch is too long")
            check_handlers(trial, observer, row)

    def leave(self, observer: Observer) -> None:
        """Take note that a frame is left, perhaps before its branches have joined.

        Raises:
            StopRecordingError: One of them cannot be guarded either.
        """
        while self.scopes and self.scopes[-1].observer is observer:
            scope = self.scopes[-1]
            if isinstance(scope, TrialBranch):
                return
            self.scopes.pop()
            self._give_up(scope, "a branch that leaves the function")

    def stopping(self, reason: str) -> None:
        """Take note that the recording ends.

        Raises:
            TrialEndedError: Not the recording ends but a branch on trial.
        """
        trial = self.trial()
        if trial is not None:
            trial.failure = trial.failure or reason
            raise TrialEndedError
        scopes, self.scopes = self.scopes, []
        for scope in scopes:
            assert not isinstance(scope, TrialBranch), "no branch is on trial"
            self._guard(scope)

    def release(self) -> None:
        """Forget the run."""
        self.scopes.clear()
        self.session.control = None
        self.session.graph.choices.check_write = None
        self.recorder.consider, self.recorder.trial = None, bool
        self._functions.clear()

    def check_write(self, node: Node) -> None:
        """Refuse a change of state from before an open scope.

        Raises:
            StopRecordingError: It happens in a branch on trial, or in one that has
                no guard.
        """
        graph = self.session.graph
        born = -1 if node.external else graph.births.get(id(node.obj), -1)
        loops = None if graph.lifting is None else graph.lifting.loops
        try:
            self._check_age(born)
        except StopRecordingError:
            if loops is not None:
                loops.forget_change()
            raise
        if loops is not None:
            loops.note_change(node)

    def resumed(self, observer: Observer) -> None:
        """Take note that a suspended frame goes on, whose state changes by that.

        Raises:
            StopRecordingError: See `check_write`.
        """
        self._check_age(observer.began)

    def _check_age(self, born: int) -> None:
        while self.scopes:
            scope = self.scopes[-1]
            if born >= scope.start:
                return
            if isinstance(scope, TrialBranch):
                raise StopRecordingError("tensor-value", "state is written in a branch")
            self.scopes.pop()
            self._give_up(scope, "state is written in a branch")

    def _open(
        self,
        observer: Observer,
        row: Row,
        tensor: torch.Tensor,
        outcome: bool,
        predicate: Predicate | None,
    ) -> None:
        """Begin a branch or a loop.

        Raises:
            DifferenceError: It cannot be an operator.
        """
        lifting = self.session.graph.lifting
        if lifting is not None and lifting.loops is not None:
            lifting.loops.note_branch()
        flow = flow_of(self.session.tables.table(observer.code))
        nested = sum(isinstance(scope, TrialBranch) for scope in self.scopes)
        if nested >= MAX_NESTING or self._count >= MAX_BRANCHES:
            raise DifferenceError("too many branches")
        self._count += 1
        form = loop_form(flow, row)
        test = observer.previous
        if form is not None and test is not None and test is not row:
            form = with_tests(flow, form, test)
        scope: Scope
        if form is None:
            scope = IfScope(self, flow, row, observer, tensor, outcome)
        else:
            scope = WhileScope(self, flow, row, form, observer, tensor)
        scope.test = test
        scope.predicates.append(predicate)
        self.scopes.append(scope)

    def _close(self, scope: Scope, state: FrameState, row: Row) -> None:
        try:
            scope.close(state, row)
        except DifferenceError as difference:
            self._give_up(scope, str(difference))

    def _give_up(self, scope: Scope, reason: str) -> None:
        site = (id(scope.observer.code), scope.row.offset)
        self._refused.setdefault(site, reason)
        if not self._guard(scope) and not self._assume(scope.require):
            # What the run is in is in no record: it must not be split here.
            self.unguarded = (scope.observer, scope.test or scope.row)
            raise StopRecordingError("tensor-value", reason)

    def _guard(self, scope: Scope) -> bool:
        """Guard the outcomes of a scope instead; False if there is no such guard."""
        found = [predicate for predicate in scope.predicates if predicate is not None]
        if len(found) < len(scope.predicates):
            return False
        for predicate in found:
            self.recorder.rely_on(predicate)
        return True
