"""Owns one iteration of a loop as a graph: what it carries, what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from magweld.frontend.control.frame_state import FrameState
from magweld.frontend.control.isomorphism import are_isomorphic
from magweld.frontend.control.merge import DifferenceError, form_of
from magweld.frontend.control.pieces import Piece, origin_of
from magweld.frontend.monitor.stack import NULL


def changed_slots(
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
