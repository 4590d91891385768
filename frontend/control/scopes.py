"""Owns the open trials and branches of a run, and what may not happen in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch import fx

from magweld.frontend.control.flow import Flow, Join
from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.pieces import Piece
from magweld.frontend.control.steps import Step
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.operators.predicates import Predicate
from magweld.frontend.operators.tensors import TensorMap


class TrialEndedError(BaseException):
    """Leaves the frames of a trial branch; no program catches it."""


@dataclass
class TrialBranch:
    """A branch that the program does not take, run on trial.

    Attributes:
        join: Where it ends.
        row: The jump that leads into it.
        start: Moment of the run at which it began.
        observer: Observer of its outermost frame.
        state: The values at its end; None until it got there.
        failure: Why it did not get there.
        instructions: How many have run so far.
        nodes: Nodes of tensors by id: those to begin with, then those at its end.
        modes: Modes of torch at its end.
    """

    join: Join
    row: Row
    start: int
    code: CodeType | None = None
    shift: int = 0
    observer: Observer | None = None
    state: FrameState | None = None
    failure: str = ""
    instructions: int = 0
    nodes: Mapping[int, fx.Node] = field(default_factory=dict)
    modes: tuple[Any, ...] = ()

    def node(self, tensors: TensorMap, tensor: torch.Tensor) -> fx.Node:
        """Return the node of a tensor as it was at the end of the branch."""
        known = self.nodes.get(id(tensor))
        # One without a node at that time was an input that nothing had used yet.
        return tensors.first_node(tensor) if known is None else known


@dataclass
class Branch:
    """A conditional jump on a tensor whose taken branch is running.

    Attributes:
        observer: Observer of the frame of the jump.
        flow: Flow of its code.
        join: Where both branches end.
        row: The jump.
        condition: Node of the tensor that decided.
        outcome: Whether it was true.
        start: Moment of the run at the jump.
        mark: Last operator before the taken branch.
        other: Operators of the other branch.
        trial: The other branch.
        modes: Modes of torch at the jump.
        predicate: Guard that makes the branch unnecessary, None if there is none.
    """

    observer: Observer
    flow: Flow
    join: Join
    row: Row
    condition: fx.Node
    outcome: bool
    start: int
    mark: fx.Node
    other: Piece
    trial: TrialBranch
    modes: tuple[Any, ...]
    predicate: Predicate | None = None


@dataclass
class Loop:
    """A loop whose only way out is the test of a tensor, while it runs.

    Attributes:
        observer: Observer of the frame of the loop.
        join: Where the program goes on behind it.
        row: The jump that the program came to first.
        tests: Offsets of the jumps that end an iteration.
        while_true: Whether an iteration follows when the tensor is true.
        condition: Node of the first tensor that was tested.
        start: Moment of the run before the loop.
        slots: Slots that matter in it or behind it.
        step: One iteration.
        snapshots: The values before the first iteration, and after each.
        marks: Last operator before the first iteration, and of each one.
        modes: Modes of torch before the loop.
        states: The values before the first iteration and after those on trial.
        predicates: Guards for the outcomes so far; None where there is none.
    """

    observer: Observer
    join: Join
    row: Row
    tests: frozenset[int]
    while_true: bool
    condition: fx.Node
    start: int
    slots: frozenset[int]
    step: Step
    snapshots: list[FrameState]
    marks: list[fx.Node]
    modes: tuple[Any, ...]
    states: list[FrameState] = field(default_factory=list)
    predicates: list[Predicate | None] = field(default_factory=list)
