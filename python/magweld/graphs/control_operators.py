"""Owns control flow as operators of a graph: an if, a while, their sub-graphs."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Final, Self

import torch
from torch import fx

from magweld.graphs.checkpoints import checkpointed

# A graph, or what a compiler made of it.
Body = Any
# Functions of numbers that a sub-graph may compute.
NUMBER_FUNCTIONS: Final = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.truediv),
        *(operator.floordiv, operator.mod, operator.neg, operator.pos),
        *(operator.pow, min, max, abs, float, int),
    }
)


class ControlOperator:
    """An operator with sub-graphs; the target of a node of the graph.

    It runs as Python does: the test is the truth of a tensor, and only the sub-graph
    that is due runs, so that gradients, random numbers, writes and aliases are those
    of the program.

    Attributes:
        bodies: The sub-graphs.
        carried: How many operands behind the test the results stand for in turn.
        settings: What else decides about its meaning.
        leading: How many operands the sub-graphs do not take; the test, if there is
            one.
    """

    leading = 1

    def __init__(
        self, name: str, bodies: Sequence[Body], carried: int, *settings: object
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.bodies = tuple(bodies)
        self.carried = carried
        self.settings = (carried, *settings)

    def over(self, bodies: Sequence[Body]) -> Self:
        """Return the same operator over other forms of its sub-graphs."""
        made = copy.copy(self)
        made.bodies = tuple(bodies)
        return made

    @property
    def step(self) -> Body:
        """The sub-graph of a loop."""
        return self.bodies[0]

    def __call__(self, *operands: torch.Tensor) -> Any:
        """Return a tuple of tensors."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.__name__


class IfOperator(ControlOperator):
    """Runs one of two sub-graphs on the same operands.

    Args:
        on_true: Runs when the predicate is true; returns a tuple of tensors.
        on_false: Runs when it is false; its results have the same form.
    """

    def __init__(self, on_true: Body, on_false: Body) -> None:
        super().__init__("if_operator", (on_true, on_false), 0)

    def __call__(self, *operands: torch.Tensor) -> Any:
        """Return the results of the sub-graph that is due; the test comes first."""
        predicate, *rest = operands
        return _run(self.bodies[0 if predicate else 1], rest)


class WhileOperator(ControlOperator):
    """Runs a sub-graph as long as a predicate is true.

    It takes the carried tensors and the invariant ones, and returns the next carried
    tensors and the next predicate.

    Attributes:
        while_true: Whether the loop goes on on true.
    """

    def __init__(self, step: Body, carried: int, while_true: bool) -> None:
        super().__init__("while_operator", (step,), carried, while_true)
        self.while_true = while_true

    def __call__(self, *operands: torch.Tensor) -> Any:
        """Return the carried tensors in the end; the first test comes first."""
        predicate, *rest = operands
        carried, invariant = rest[: self.carried], rest[self.carried :]
        while bool(predicate) is self.while_true:
            *carried, predicate = _run(self.step, (*carried, *invariant))
        return tuple(carried)


class ForOperator(ControlOperator):
    """Runs a sub-graph for each number of a range, once at least.

    It takes the number, the carried tensors and the invariant operands, and returns the
    next carried tensors, then tensors of which the last ones are results, then tensors
    that are collected.

    Attributes:
        last: Number of tensors of which the last ones are results.
    """

    def __init__(self, step: Body, carried: int, last: int) -> None:
        super().__init__("for_operator", (step,), carried, last)
        self.last = last

    def __call__(self, *operands: Any) -> Any:
        """Return the carried tensors, the last ones, and a list of each collected.

        Args:
            operands: Start, stop and step of the range, then what a step takes.
        """
        start, stop, step = operands[:3]
        operands = operands[3:]
        carried, invariant = operands[: self.carried], operands[self.carried :]
        single = self.carried + self.last
        values: tuple[Any, ...] = ()
        rows: list[tuple[Any, ...]] = []
        for number in range(start, stop, step):
            values = _run(self.step, (number, *carried, *invariant))
            carried = values[: self.carried]
            rows.append(values[single:])
        return (*values[:single], *map(list, zip(*rows, strict=True)))


class CountedOperator(ControlOperator):
    """Runs a sub-graph for each number of a fixed range, which is a tensor to it.

    It takes the number, the carried tensors and the invariant ones, and returns the
    next carried tensors.

    Attributes:
        numbers: The range.
    """

    leading = 0

    def __init__(self, step: Body, carried: int, numbers: range) -> None:
        super().__init__("counted_operator", (step,), carried, numbers)
        self.numbers = numbers

    def __call__(self, *operands: torch.Tensor) -> Any:
        """Return the carried tensors in the end; the first number comes first."""
        carried = operands[1 : 1 + self.carried]
        invariant = operands[1 + self.carried :]
        for number in self.numbers:
            operands = (torch.tensor(number), *carried, *invariant)
            carried = _run(self.step, operands)
        return tuple(carried)


def _run(body: Body, operands: Sequence[Any]) -> Any:
    """Run a sub-graph.

    A call of the module would run the hooks that the process has for all modules, and
    would show on the stream of errors what an operator raises.
    """
    function = body.forward if isinstance(body, fx.GraphModule) else body
    return function(*operands)


def joined(*parts: Any) -> list[Any]:
    """Return a list of tensors; parts are tensors and lists that a loop collected."""
    result: list[Any] = []
    for part in parts:
        result += part if isinstance(part, list) else (part,)
    return result


def all_nodes(graph: fx.GraphModule) -> Iterator[fx.Node]:
    """Yield the nodes of a graph and of all sub-graphs in it."""
    for node in graph.graph.nodes:
        yield node
        for body in (*bodies_of(node), *checkpointed(node)):
            yield from all_nodes(body)


def bodies_of(node: fx.Node) -> tuple[Body, ...]:
    """Return the sub-graphs of a node, none for an ordinary operator."""
    target: object = node.target
    return target.bodies if isinstance(target, ControlOperator) else ()
