"""Owns control flow as operators of a graph: an if, a while, their sub-graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx


class ControlOperator:
    """An operator with sub-graphs; the target of a node of the graph.

    It runs as Python does: the test is the truth of a tensor, and only the sub-graph
    that is due runs, so that gradients, random numbers, writes and aliases are those
    of the program.
    """

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    @property
    def bodies(self) -> tuple[fx.GraphModule, ...]:
        """The sub-graphs."""
        raise NotImplementedError

    @property
    def settings(self) -> tuple[object, ...]:
        """What else decides about its meaning."""
        return ()

    def __repr__(self) -> str:
        return self.__name__


class IfOperator(ControlOperator):
    """Runs one of two sub-graphs on the same operands.

    Attributes:
        on_true: Runs when the predicate is true; returns a tuple of tensors.
        on_false: Runs when it is false; its results have the same form.
    """

    def __init__(self, on_true: fx.GraphModule, on_false: fx.GraphModule) -> None:
        super().__init__("if_operator")
        self.on_true = on_true
        self.on_false = on_false

    @property
    def bodies(self) -> tuple[fx.GraphModule, ...]:
        """See `ControlOperator.bodies`."""
        return (self.on_true, self.on_false)

    def __call__(self, predicate: torch.Tensor, *operands: torch.Tensor) -> Any:
        """Return the results of the sub-graph that is due."""
        return (self.on_true if predicate else self.on_false)(*operands)


class WhileOperator(ControlOperator):
    """Runs a sub-graph as long as a predicate is true.

    Attributes:
        step: Takes the carried tensors and the invariant ones; returns the next
            carried tensors and the next predicate.
        carried: Number of carried tensors.
        while_true: Whether the loop goes on on true.
    """

    def __init__(self, step: fx.GraphModule, carried: int, while_true: bool) -> None:
        super().__init__("while_operator")
        self.step = step
        self.carried = carried
        self.while_true = while_true

    @property
    def bodies(self) -> tuple[fx.GraphModule, ...]:
        """See `ControlOperator.bodies`."""
        return (self.step,)

    @property
    def settings(self) -> tuple[object, ...]:
        """See `ControlOperator.settings`."""
        return (self.carried, self.while_true)

    def __call__(self, predicate: torch.Tensor, *operands: torch.Tensor) -> Any:
        """Return the carried tensors after the last iteration."""
        carried, invariant = operands[: self.carried], operands[self.carried :]
        while bool(predicate) is self.while_true:
            *carried, predicate = self.step(*carried, *invariant)
        return tuple(carried)


def bodies_of(node: fx.Node) -> tuple[fx.GraphModule, ...]:
    """Return the sub-graphs of a node, none for an ordinary operator."""
    target: object = node.target
    return target.bodies if isinstance(target, ControlOperator) else ()
