"""Owns `while` on a tensor: one iteration on trial, all that run compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import torch
from torch import fx

from magweld.frontend.control.comparison import DifferenceError, are_isomorphic, form_of
from magweld.frontend.control.flow import FlowGraph, Join
from magweld.frontend.control.frame_state import FrameState, read_state
from magweld.frontend.control.pieces import Piece, effects_of, origin_of
from magweld.frontend.control.regions import LoopForm, why_not_function
from magweld.frontend.control.scopes import Scope
from magweld.frontend.control.trials import Trials
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.operators.torch_state import operator_state
from magweld.graphs.control_operators import WhileOperator


def _changed_slots(
    before: FrameState, after: FrameState, slots: frozenset[int]
) -> tuple[int, ...]:
    """Return the slots whose tensors an iteration has replaced.

    Raises:
        DifferenceError: Something else changes, or in a way that no loop can have.
    """
    # The tested tensor on top is none of it.
    stack = zip(before.stack, after.stack[:-1], strict=False)
    if any(mine is not other for mine, other in stack):
        raise DifferenceError("the value stack changes in an iteration")
    between = after.stack[len(before.stack) : -1]
    if any(item is not NULL and item is not bool for item in between):
        raise DifferenceError("the test is another one")
    if not isinstance(after.stack[-1], torch.Tensor):
        raise DifferenceError("the test is no longer one of a tensor")
    changed = tuple(slot for slot in sorted(slots) if after.differs(before, slot))
    for slot in changed:
        mine, other = after.slots[slot], before.slots[slot]
        if not isinstance(mine, torch.Tensor) or not isinstance(other, torch.Tensor):
            raise DifferenceError("a value that is no tensor changes in a loop")
        if form_of(mine) != form_of(other):
            raise DifferenceError("a tensor changes its type or shape in a loop")
    return changed


@dataclass
class _Step:
    """One iteration as a graph.

    Attributes:
        piece: Its operators.
        carried: Slots whose tensors change from iteration to iteration.
        inputs: Nodes of these tensors before the iteration.
        outputs: Nodes of these tensors after it, then of the tensor to be tested.
        stands: Which of its operators stands for one of another iteration.
    """

    piece: Piece
    carried: tuple[int, ...]
    inputs: list[fx.Node]
    outputs: list[fx.Node]
    stands: dict[fx.Node, fx.Node] = field(default_factory=dict)

    @property
    def rest(self) -> list[fx.Node]:
        """All other nodes that it needs."""
        return [n for n in self.piece.used(self.outputs) if n not in self.inputs]

    def agrees(
        self,
        operators: Sequence[fx.Node],
        starts: Sequence[fx.Node],
        ends: Sequence[fx.Node],
        own: Mapping[fx.Node, fx.Node],
    ) -> bool:
        """Return whether another iteration computes the same from other tensors.

        Args:
            operators: Operators of the other one.
            starts: Nodes in the place of `inputs`; they may be equal.
            ends: Nodes in the place of `outputs`.
            own: What stands for a node among the operators, if it is not the node.
        """
        renamed = dict(zip(self.inputs, starts, strict=True))

        def other(node: fx.Node) -> fx.Node:
            node = renamed.get(node, node)
            return own.get(node, node)

        copy = self.piece.copy_of
        names = {copy(node): other(node) for node in self.piece.operands}
        if not are_isomorphic(self.piece.copies, operators, names):
            return False
        for mine in self.piece.nodes:
            self.stands[origin_of(names[copy(mine)])] = mine
        pairs = zip(self.outputs, ends, strict=True)
        return all(
            (names[copy(mine)] if self.piece.holds(mine) else other(mine))
            is own.get(end, end)
            for mine, end in pairs
        )


class WhileScope(Scope):
    """A loop whose only way out is the test of a tensor, while it runs.

    Two iterations run on trial. The second starts from what the first has left: tensors
    that are one object before a loop, as in `y = x`, are two when it has changed one.
    """

    def __init__(
        self,
        trials: Trials,
        flow: FlowGraph,
        row: Row,
        form: LoopForm,
        observer: Observer,
        tensor: torch.Tensor,
    ) -> None:
        """Begin a loop at its first test.

        Raises:
            DifferenceError: It cannot be an operator.
        """
        region = flow.between((form.stay,), form.tests)
        reason = why_not_function(flow, region, row.depth)
        if reason:
            raise DifferenceError(reason)
        self._trials = trials
        self._flow = flow
        self._form = form
        start = self._with_nodes(read_state(trials.session, observer, row.depth - 1))
        moment = trials.session.graph.next_moment()
        super().__init__(observer, Join(form.leaves, False), row, moment, form.tests)
        self._condition = trials.recorder.tensors.node(tensor)
        self._modes = operator_state()
        # Those that matter in it or behind it.
        self._slots = flow.live(flow.real_offset(form.stay)).union(
            *(flow.live(at) for at in form.leaves)
        )
        # The values before the first iteration and after those on trial.
        self._states = [start]
        self._step = self._try(start)
        # The values before the first iteration, and after each; the last operators.
        self._snapshots = [start]
        self._marks = [trials.recorder.mark()]

    def _with_nodes(self, state: FrameState) -> FrameState:
        """Return values of the running frame with the nodes of now."""
        known = self._trials.recorder.tensors.known_node
        found = {id(tensor): known(tensor) for tensor in state.tensors}
        return replace(state, nodes={key: node for key, node in found.items() if node})

    def _try(self, start: FrameState) -> _Step:
        """Run two iterations on trial; return one as a graph.

        Raises:
            DifferenceError: There is none, or the two are not the same.
        """
        slots = self._slots
        before, first = self._run(start, {})
        carried = _changed_slots(start, first, slots)
        graph = self._trials.recorder.graph
        stand_ins = {slot: graph.call_function(_left_by_iteration) for slot in carried}
        try:
            second = self._second(start, first, stand_ins)
            piece, last = self._run(second, second.nodes)
        finally:
            for node in stand_ins.values():
                graph.erase_node(node)
        extra = set(_changed_slots(second, last, slots)) - set(carried)
        if extra or form_of(first.stack[-1]) != form_of(last.stack[-1]):
            raise DifferenceError("the iterations of a loop differ")
        step = _Step(piece, carried, list(stand_ins.values()), last.ends(carried))
        own = {node: before.copy_of(node) for node in before.all_nodes}
        starts = [start.node(slot) for slot in carried]
        if not step.agrees(before.copies, starts, first.ends(carried), own):
            raise DifferenceError("the iterations of a loop differ")
        is_open = self._trials.recorder.tensors.shapes.is_open
        if any(map(is_open, step.outputs)):
            raise DifferenceError("tensors whose shape follows from values")
        return step

    def _run(
        self, before: FrameState, nodes: Mapping[int, fx.Node]
    ) -> tuple[Piece, FrameState]:
        """Run one iteration on trial; return operators and values at its end."""
        trials, stay = self._trials, self._form.stay
        within = self._form.within
        trial = trials.new_trial(self.row, Join(self.tests - within, False, within))
        trial.nodes = nodes
        piece = trials.run(trial, self._flow, stay, before, self.observer)
        state = trial.state
        if state is None:
            raise DifferenceError(trial.failure)
        self._states.append(state)
        tensors = trials.recorder.tensors
        found = {id(t): trial.node(tensors, t) for t in state.tensors}
        return piece, replace(state, nodes=found)

    def _second(
        self, start: FrameState, first: FrameState, stand_ins: dict[int, fx.Node]
    ) -> FrameState:
        """Return the values before the second iteration on trial."""
        state = FrameState(first.slots, start.stack)
        tensors = {slot: state.slots[slot] for slot in stand_ins}
        rest = [state.slots[slot] for slot in self._slots - stand_ins.keys()]
        self._check_apart(list(tensors.values()), [*rest, *state.stack])
        for node in stand_ins.values():
            node.meta["effect"] = True  # no guard can be computed from it
        nodes = {id(tensors[slot]): node for slot, node in stand_ins.items()}
        return replace(state, nodes={**first.nodes, **nodes})

    def _check_apart(self, tensors: Sequence[object], held: list[object]) -> None:
        """Refuse carried tensors that are one, or that something else holds.

        Raises:
            DifferenceError: There are such.
        """
        wanted = frozenset(map(id, tensors))
        if len(wanted) < len(tensors):
            raise DifferenceError("one tensor in the place of two")
        older = self._trials.session.graph.older(self.start, wanted)
        self._trials.check_escape(older, held)

    def iterate(self, state: FrameState) -> None:
        self._snapshots.append(self._with_nodes(state))
        self._marks.append(self._trials.recorder.mark())

    def close(self, state: FrameState, row: Row) -> None:
        if operator_state() != self._modes:
            raise DifferenceError("a mode of torch was changed")
        self._check_iterations()
        slots, carried = self._slots, self._step.carried
        finals = [state.slots[slot] for slot in carried]
        rest = [state.slots[slot] for slot in slots - set(carried)]
        self._check_apart(finals, [*rest, *state.stack])
        held_by = [(slot, state.slots[slot], state.slots[slot]) for slot in slots]
        for other in (*self._states, *self._snapshots[1:]):
            self.observer.join(row, other.noted, held_by)
        self._make_operator(finals)

    def _check_iterations(self) -> None:
        """Compare all iterations that ran with the one that was run on trial.

        Raises:
            DifferenceError: One of them is different.
        """
        step, carried = self._step, self._step.carried
        ends = zip(pairwise(self._snapshots), pairwise(self._marks), strict=True)
        for (before, after), marks in ends:
            operators = self._trials.recorder.between(*marks)
            starts = [before.node(slot) for slot in carried]
            same = step.agrees(operators, starts, after.ends(carried), {})
            extra = set(_changed_slots(before, after, self._slots)) - set(carried)
            if not same or extra:
                raise DifferenceError("the iterations of a loop differ")

    def _make_operator(self, finals: list[torch.Tensor]) -> None:
        recorder, step, start = self._trials.recorder, self._step, self._snapshots[0]
        first = [start.node(slot) for slot in step.carried]
        live = Piece(recorder.since(self._marks[0]))
        recorder.tensors.forget(live.nodes)
        effects = effects_of((*step.piece.nodes, *live.nodes))
        if not finals and not effects:
            return
        module = step.piece.module([*step.inputs, *step.rest], step.outputs)
        target = WhileOperator(module, len(step.carried), self._form.while_true)
        operands = (self._condition, *first, *step.rest)
        node = recorder.graph.call_function(target, operands)
        node.meta.update(effects, where=recorder.where_text())
        node.meta["branches"] = [(step.piece, step.outputs)]
        node.meta["starts"], node.meta["stands"] = step.inputs, step.stands
        starts = [start.slots[slot] for slot in step.carried]
        self._trials.take_results(node, zip(finals, starts, strict=True))


def _left_by_iteration() -> None:
    """Target of the nodes that stand for what the iteration before has computed."""
