"""Owns what is open in a run: trials, branches and loops, and where they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import torch
from torch import fx

from magweld.frontend.control.flow import Join
from magweld.frontend.control.frame_state import FrameState
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


@dataclass(eq=False)
class Scope:
    """A part of the program that becomes an operator when it is left.

    Attributes:
        observer: Observer of the frame that it belongs to.
        join: Where it ends.
        row: The jump that the program came to first.
        start: Moment of the run at which it began.
        tests: Offsets of the instructions that tell whether a loop goes on.
        test: The instruction that tested first: the jump, or one in front of it.
        predicates: Guards for the outcomes so far, which make it unnecessary; None
            where there is none.
        require: Has hits with another outcome fail instead; None if that cannot be.
    """

    observer: Observer
    join: Join
    row: Row
    start: int
    tests: frozenset[int] = frozenset()
    test: Row | None = None
    predicates: list[Predicate | None] = field(default_factory=list)
    require: Callable[[], None] | None = None

    def iterate(self, state: FrameState) -> None:
        """Take note of the values before one of the tests."""
        raise NotImplementedError

    def close(self, state: FrameState, row: Row) -> None:
        """Make an operator of it.

        Args:
            state: The values at its end, in the branch that the program took.
            row: The instruction there.

        Raises:
            DifferenceError: It cannot be one.
        """
        raise NotImplementedError
