"""Owns `while` on a tensor: one iteration on trial, all that run compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import fx

from magweld.frontend.control.flow import Flow, Join
from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.merge import DifferenceError
from magweld.frontend.control.pieces import Piece, effects_of
from magweld.frontend.control.regions import LoopForm, why_not_function
from magweld.frontend.control.scopes import Loop, TrialBranch
from magweld.frontend.control.steps import Step, changed_slots, same_test
from magweld.frontend.control.trial import read_state
from magweld.frontend.control.trials import Trials
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.recorder import OperatorRecorder
from magweld.frontend.operators.torch_state import operator_state
from magweld.graphs.control_operators import WhileOperator


def with_nodes(recorder: OperatorRecorder, state: FrameState) -> FrameState:
    """Return values of the running frame with the nodes of now."""
    known = recorder.tensors.known_node
    found = {id(tensor): known(tensor) for tensor in state.tensors}
    return replace(state, nodes={key: node for key, node in found.items() if node})


def open_loop(
    trials: Trials,
    flow: Flow,
    row: Row,
    form: LoopForm,
    observer: Observer,
    tensor: torch.Tensor,
) -> Loop:
    """Begin a loop at its first test.

    Raises:
        DifferenceError: It cannot be an operator.
    """
    recorder = trials.recorder
    reason = why_not_function(flow, flow.between((form.stay,), form.tests), row.depth)
    if reason:
        raise DifferenceError(reason)
    start = with_nodes(recorder, read_state(trials.session, observer, row.depth - 1))
    moment = trials.session.graph.next_moment()
    condition = recorder.tensors.node(tensor)
    modes = operator_state()
    slots = flow.live(flow.real_offset(form.stay)).union(
        *(flow.live(at) for at in form.leaves)
    )
    iterations = _Iterations(trials, flow, row, form, observer, start)
    return Loop(
        observer=observer,
        join=Join(form.leaves, False),
        row=row,
        tests=form.tests,
        while_true=form.while_true,
        condition=condition,
        start=moment,
        slots=slots,
        step=iterations.step(slots),
        snapshots=[start],
        marks=[recorder.mark()],
        modes=modes,
        states=[start, *iterations.states],
    )


class _Iterations:
    """Two iterations on trial.

    The second starts from what the first has left: tensors that are one object before
    a loop, as in `y = x`, are two when it has changed one of them.

    Attributes:
        states: The values at their ends.
    """

    def __init__(
        self,
        trials: Trials,
        flow: Flow,
        row: Row,
        form: LoopForm,
        observer: Observer,
        start: FrameState,
    ) -> None:
        self._trials = trials
        self._flow = flow
        self._row = row
        self._form = form
        self._observer = observer
        self._start = start
        self._moment = trials.session.graph.next_moment()
        self.states: list[FrameState] = []

    def step(self, slots: frozenset[int]) -> Step:
        """Return one iteration as a graph.

        Raises:
            DifferenceError: There is none, or the two are not the same.
        """
        start = self._start
        before, first = self._run(start, {})
        carried = changed_slots(start, first, slots)
        graph = self._trials.recorder.graph
        stand_ins = {slot: graph.call_function(_left_by_iteration) for slot in carried}
        try:
            second = self._second(first, stand_ins, slots)
            piece, last = self._run(second, second.nodes)
        finally:
            for node in stand_ins.values():
                graph.erase_node(node)
        extra = set(changed_slots(second, last, slots)) - set(carried)
        if extra or not same_test(first, last):
            raise DifferenceError("the iterations of a loop differ")
        step = Step(piece, carried, list(stand_ins.values()), last.ends(carried))
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
        trial = self._trials.new_trial(self._row, Join(self._form.tests, False))
        trial.nodes = nodes
        stay = self._form.stay
        piece = self._trials.run(trial, self._flow, stay, before, self._observer)
        if trial.state is None:
            raise DifferenceError(trial.failure)
        self.states.append(trial.state)
        return piece, _at_end(trial, trial.state, self._trials.recorder)

    def _second(
        self, first: FrameState, stand_ins: dict[int, fx.Node], slots: frozenset[int]
    ) -> FrameState:
        state = FrameState(first.slots, self._start.stack)
        tensors = {slot: state.slots[slot] for slot in stand_ins}
        wanted = frozenset(map(id, tensors.values()))
        rest = [state.slots[slot] for slot in slots - stand_ins.keys()]
        if len(wanted) < len(tensors):
            raise DifferenceError("one tensor in the place of two")
        older = self._trials.session.graph.older(self._moment, wanted)
        self._trials.check_escape(older, [*rest, *state.stack])
        for node in stand_ins.values():
            node.meta["effect"] = True  # no guard can be computed from it
        nodes = {id(tensors[slot]): node for slot, node in stand_ins.items()}
        return replace(state, nodes={**first.nodes, **nodes})


def _at_end(
    trial: TrialBranch, state: FrameState, recorder: OperatorRecorder
) -> FrameState:
    nodes = {id(t): trial.node(recorder.tensors, t) for t in state.tensors}
    return replace(state, nodes=nodes)


def _left_by_iteration() -> None:
    """Target of the nodes that stand for what the iteration before has computed."""


def check_iterations(recorder: OperatorRecorder, loop: Loop) -> None:
    """Compare all iterations that ran with the one that was run on trial.

    Raises:
        DifferenceError: One of them is different.
    """
    step, carried = loop.step, loop.step.carried
    for index, after in enumerate(loop.snapshots[1:]):
        before = loop.snapshots[index]
        operators = recorder.between(loop.marks[index], loop.marks[index + 1])
        starts = [before.node(slot) for slot in carried]
        same = step.agrees(operators, starts, after.ends(carried), {})
        if not same or set(changed_slots(before, after, loop.slots)) - set(carried):
            raise DifferenceError("the iterations of a loop differ")


def close_loop(trials: Trials, loop: Loop, state: FrameState, row: Row) -> None:
    """Make an operator of a loop that the program has left.

    Raises:
        DifferenceError: It cannot be one.
    """
    if operator_state() != loop.modes:
        raise DifferenceError("a mode of torch was changed")
    check_iterations(trials.recorder, loop)
    carried = loop.step.carried
    finals = [state.slots[slot] for slot in carried]
    wanted = frozenset(map(id, finals))
    if len(wanted) < len(finals):
        raise DifferenceError("one tensor in the place of two")
    held = [*(state.slots[slot] for slot in loop.slots - set(carried)), *state.stack]
    older = trials.session.graph.older(loop.start, wanted)
    trials.check_escape(older, held)
    held_by = [(slot, state.slots[slot], state.slots[slot]) for slot in loop.slots]
    for other in (*loop.states, *loop.snapshots[1:]):
        loop.observer.join(row, other.noted, held_by)
    _make_operator(trials, loop, finals)


def _make_operator(trials: Trials, loop: Loop, finals: list[torch.Tensor]) -> None:
    recorder, tensors, step = trials.recorder, trials.recorder.tensors, loop.step
    start = loop.snapshots[0]
    first = [start.node(slot) for slot in step.carried]
    live = Piece(recorder.since(loop.marks[0]))
    tensors.forget(live.nodes)
    effects = effects_of((*step.piece.nodes, *live.nodes))
    if not finals and not effects:
        return
    module = step.piece.module([*step.inputs, *step.rest], step.outputs)
    target = WhileOperator(module, len(step.carried), loop.while_true)
    operands = (loop.condition, *first, *step.rest)
    node = recorder.graph.call_function(target, operands)
    node.meta.update(effects, where=recorder.where_text())
    node.meta["branches"] = [(step.piece, step.outputs)]
    node.meta["starts"], node.meta["stands"] = step.inputs, step.stands
    starts = [start.slots[slot] for slot in step.carried]
    trials.take_results(node, zip(finals, starts, strict=True))
