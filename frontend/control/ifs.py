"""Owns `if` on a tensor: both branches recorded, one operator made of them."""

from __future__ import annotations

from functools import partial

import torch

from magweld.frontend.control.comparison import DifferenceError, Pairs
from magweld.frontend.control.flow import FlowGraph
from magweld.frontend.control.frame_state import FrameState, read_state
from magweld.frontend.control.pieces import Piece, effects_of
from magweld.frontend.control.regions import branches_of, why_not
from magweld.frontend.control.scopes import Scope
from magweld.frontend.control.trials import Trials
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.torch_state import operator_state
from magweld.graphs.control_operators import IfOperator


class IfScope(Scope):
    """A conditional jump on a tensor whose taken branch is running."""

    def __init__(
        self,
        trials: Trials,
        flow: FlowGraph,
        row: Row,
        observer: Observer,
        tensor: torch.Tensor,
        outcome: bool,
    ) -> None:
        """Begin a branch: run the branch that the program does not take.

        Raises:
            DifferenceError: It cannot be an operator.
        """
        join = flow.join(row)
        if join is None:
            raise DifferenceError("the branches do not meet")
        reason = why_not(flow, row, join)
        if join.returns and observer.native_caller:
            reason = "native code sees which branch was taken"
        if reason:
            raise DifferenceError(reason)
        self._trials = trials
        self._flow = flow
        self._outcome = outcome
        self._condition = trials.recorder.tensors.node(tensor)
        state = read_state(trials.session, observer, row.depth - 1)
        self._trial = trials.new_trial(row, join)
        super().__init__(observer, join, row, self._trial.start)
        self._modes = operator_state()
        self._other = self._run_other(branches_of(row, outcome)[1], state)
        if self._trial.state is None:
            raise DifferenceError(self._trial.failure)
        # Last operator before the taken branch.
        self._mark = trials.recorder.mark()
        self.require = trials.recorder.requires(tensor, outcome)

    def _run_other(self, begin: int, state: FrameState) -> Piece:
        """Run the branch that the program does not take; return its operators."""
        trials, trial, join = self._trials, self._trial, self.join
        if self._flow.real_offset(begin) not in join.ends or join.returns:
            return trials.run(trial, self._flow, begin, state, self.observer)
        trial.state, trial.nodes = state, trials.recorder.tensors.overlay({})
        return Piece(())

    def close(self, state: FrameState, row: Row) -> None:
        if operator_state() != self._modes:
            raise DifferenceError("a mode of torch was changed")
        self._make_operator(list(self._pairs(state, row).pairs.values()))

    def _pairs(self, state: FrameState, row: Row) -> Pairs:
        trials, trial, other = self._trials, self._trial, self._trial.state
        assert other is not None, "the other branch came to its end"
        stack = zip(state.stack, other.stack, strict=True)
        slots = [(-1, mine, theirs) for mine, theirs in stack]
        if not self.join.returns:
            live = self._flow.live(row.offset)
            slots += [(i, state.slots[i], other.slots[i]) for i in sorted(live)]
        tensors = trials.recorder.tensors
        pairs = Pairs(
            partial(trials.session.graph.older, self.start),
            lambda tensor: (tensors.node(tensor), trial.node(tensors, tensor)),
        )
        for _, mine, theirs in slots:
            pairs.add(mine, theirs)
        for mine, theirs in pairs.pairs.values():
            nodes = (tensors.node(mine), trial.node(tensors, theirs))
            if any(map(tensors.shapes.is_open, nodes)):
                raise DifferenceError("tensors whose shape follows from values")
        trials.check_escape(pairs.passed_through(), pairs.same)
        self.observer.join(row, other.noted, slots, self.join.returns)
        return pairs

    def _make_operator(self, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        recorder, tensors = self._trials.recorder, self._trials.recorder.tensors
        mine = [tensors.node(pair[0]) for pair in pairs]
        others = [self._trial.node(tensors, pair[1]) for pair in pairs]
        taken = Piece(recorder.since(self._mark))
        branches = [(taken, mine), (self._other, others)]
        if not self._outcome:
            branches.reverse()
        tensors.forget(taken.nodes)
        acting = [node for piece, outputs in branches for node in piece.needed(outputs)]
        effects = effects_of(acting)
        if not pairs and not effects:
            return
        used = (node for piece, outputs in branches for node in piece.used(outputs))
        operands = list(dict.fromkeys(used))
        modules = [piece.module(operands, outputs) for piece, outputs in branches]
        target = IfOperator(*modules)
        node = recorder.graph.call_function(target, (self._condition, *operands))
        node.meta.update(effects, where=recorder.where_text(), branches=branches)
        self._trials.take_results(node, pairs)
