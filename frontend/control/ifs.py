"""Owns `if` on a tensor: both branches recorded, one operator made of them."""

from __future__ import annotations

from functools import partial

import torch

from magweld.frontend.control.flow import Flow
from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.merge import DifferenceError, Pairs
from magweld.frontend.control.pieces import Piece, effects_of
from magweld.frontend.control.regions import ways_of, why_not
from magweld.frontend.control.scopes import Branch
from magweld.frontend.control.trial import read_state
from magweld.frontend.control.trials import Trials
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.torch_state import operator_state
from magweld.graphs.control_operators import IfOperator


def open_branch(
    trials: Trials,
    flow: Flow,
    row: Row,
    observer: Observer,
    tensor: torch.Tensor,
    outcome: bool,
) -> Branch:
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
    condition = trials.recorder.tensors.node(tensor)
    other = ways_of(row, outcome)[1]
    state = read_state(trials.session, observer, row.depth - 1)
    trial = trials.new_trial(row, join)
    modes = operator_state()
    if flow.real_offset(other) in join.ends and not join.returns:
        trial.state, piece = state, Piece(())
        trial.nodes = trials.recorder.tensors.overlay({})
    else:
        piece = trials.run(trial, flow, other, state, observer)
    if trial.state is None:
        raise DifferenceError(trial.failure)
    return Branch(
        observer=observer,
        flow=flow,
        join=join,
        row=row,
        condition=condition,
        outcome=outcome,
        start=trial.start,
        mark=trials.recorder.mark(),
        other=piece,
        trial=trial,
        modes=modes,
    )


def close_branch(trials: Trials, branch: Branch, state: FrameState, row: Row) -> None:
    """Make an operator of a branch whose sides have met.

    Args:
        state: The values after the branch that the program took.
        row: The instruction where the branches meet.

    Raises:
        DifferenceError: It cannot be one.
    """
    if operator_state() != branch.modes:
        raise DifferenceError("a mode of torch was changed")
    pairs = _pairs(trials, branch, state, row)
    _make_operator(trials, branch, list(pairs.pairs.values()))


def _pairs(trials: Trials, branch: Branch, state: FrameState, row: Row) -> Pairs:
    other = branch.trial.state
    assert other is not None, "the other branch came to its end"
    stack = zip(state.stack, other.stack, strict=True)
    slots = [(-1, mine, theirs) for mine, theirs in stack]
    if not branch.join.returns:
        live = branch.flow.live(row.offset)
        slots += [(i, state.slots[i], other.slots[i]) for i in sorted(live)]
    tensors = trials.recorder.tensors
    pairs = Pairs(
        partial(trials.session.graph.older, branch.start),
        lambda tensor: (tensors.node(tensor), branch.trial.node(tensors, tensor)),
    )
    for _, mine, theirs in slots:
        pairs.add(mine, theirs)
    for mine, theirs in pairs.pairs.values():
        nodes = (tensors.node(mine), branch.trial.node(tensors, theirs))
        if any(map(tensors.shapes.is_open, nodes)):
            raise DifferenceError("tensors whose shape follows from values")
    trials.check_escape(pairs.passed_through(), pairs.same)
    branch.observer.join(row, other.noted, slots, branch.join.returns)
    return pairs


def _make_operator(
    trials: Trials, branch: Branch, pairs: list[tuple[torch.Tensor, torch.Tensor]]
) -> None:
    recorder, tensors = trials.recorder, trials.recorder.tensors
    mine = [tensors.node(pair[0]) for pair in pairs]
    others = [branch.trial.node(tensors, pair[1]) for pair in pairs]
    taken = Piece(recorder.since(branch.mark))
    branches = [(taken, mine), (branch.other, others)]
    if not branch.outcome:
        branches.reverse()
    tensors.forget(taken.nodes)
    acting = [node for piece, outputs in branches for node in piece.needed(outputs)]
    if not pairs and not effects_of(acting):
        return
    operands = list(
        dict.fromkeys(
            node for piece, outputs in branches for node in piece.used(outputs)
        )
    )
    modules = [piece.module(operands, outputs) for piece, outputs in branches]
    target = IfOperator(*modules)
    node = recorder.graph.call_function(target, (branch.condition, *operands))
    node.meta.update(effects_of(acting), where=recorder.where_text(), branches=branches)
    trials.take_results(node, pairs)
