"""Owns one iteration of a loop as a graph: what it carries, what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.isomorphism import are_isomorphic
from magweld.frontend.control.merge import DifferenceError, form_of
from magweld.frontend.control.pieces import Piece, origin_of
from magweld.frontend.monitor.stack import NULL
from magweld.frontend.state.values import is_scalar, same_scalar


@dataclass(frozen=True)
class Snapshot:
    """The values in a frame between two iterations.

    Attributes:
        state: The values; after an iteration with the tested tensor on the stack.
        nodes: Nodes of the tensors among them, by id. One object may stand for
            several nodes in turn.
    """

    state: FrameState
    nodes: Mapping[int, fx.Node]

    def node(self, slot: int) -> fx.Node:
        """Return the node of the tensor in a slot."""
        return self.nodes[id(self.state.slots[slot])]

    def ends(self, carried: Sequence[int]) -> list[fx.Node]:
        """Return the nodes of carried tensors and of the one to be tested."""
        tested = self.nodes[id(self.state.stack[-1])]
        return [*(self.node(slot) for slot in carried), tested]

    def differs(self, before: Snapshot, slot: int) -> bool:
        """Return whether a slot holds something else than it did before."""
        mine, other = self.state.slots[slot], before.state.slots[slot]
        if isinstance(mine, torch.Tensor):
            return mine is not other or self.node(slot) is not before.node(slot)
        return mine is not other and not (is_scalar(mine) and same_scalar(mine, other))


def changed_slots(
    before: Snapshot, after: Snapshot, slots: frozenset[int]
) -> tuple[int, ...]:
    """Return the slots whose tensors an iteration has replaced.

    Raises:
        DifferenceError: Something else changes, or in a way that no loop can have.
    """
    # The tested tensor on top is none of it.
    stack = zip(before.state.stack, after.state.stack[:-1], strict=False)
    if any(mine is not other for mine, other in stack):
        raise DifferenceError("the value stack changes in an iteration")
    between = after.state.stack[len(before.state.stack) : -1]
    if any(item is not NULL and item is not bool for item in between):
        raise DifferenceError("the test is another one")
    if not isinstance(after.state.stack[-1], torch.Tensor):
        raise DifferenceError("the test is no longer one of a tensor")
    changed = tuple(slot for slot in sorted(slots) if after.differs(before, slot))
    for slot in changed:
        mine, other = after.state.slots[slot], before.state.slots[slot]
        if not isinstance(mine, torch.Tensor) or not isinstance(other, torch.Tensor):
            raise DifferenceError("a value that is no tensor changes in a loop")
        if form_of(mine) != form_of(other):
            raise DifferenceError("a tensor changes its type or shape in a loop")
    return changed


@dataclass
class Step:
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


def same_test(first: FrameState, second: FrameState) -> bool:
    """Return whether the tested tensors of two iterations have one form."""
    return form_of(first.stack[-1]) == form_of(second.stack[-1])


def tensors_in(state: FrameState) -> list[Any]:
    """Return the tensors in the slots and on top of the stack."""
    values = (*state.slots, *state.stack[-1:])
    return [value for value in values if isinstance(value, torch.Tensor)]
