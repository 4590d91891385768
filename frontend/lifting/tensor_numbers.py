"""Owns lifted numbers of which the program has made tensors, and what becomes of these.

`torch.tensor(n) * 2` holds `n * 2` as long as that is an integer of 64 bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import torch
from torch import fx

from magweld.frontend.expressions.expressions import (
    Expression,
    Leaf,
    Literal,
    SizeSource,
)
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.operators.kinds import operator_of
from magweld.frontend.operators.predicates import MAX_OPERATORS
from magweld.frontend.operators.tensors import TensorMap

LARGEST: Final = (1 << 63) - 1  # the largest integer in a tensor
# Operators on integers, by name.
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "__rsub__": operator.sub,
        "add": operator.add,
        "mul": operator.mul,
        "neg": operator.neg,
        "rsub": operator.sub,
        "sub": operator.sub,
    }
)
# Those whose first operand is the second of the function.
_REFLECTED: Final = ("__rsub__", "rsub")


class TensorNumber(NamedTuple):
    """The number in a tensor.

    Attributes:
        expression: What it is.
        integers: What must fit into a tensor on the way there.
    """

    expression: Expression
    integers: tuple[Expression, ...]


def number_in(
    lifting: Lifting, tensors: TensorMap, read: fx.Node, needed: set[fx.Node]
) -> TensorNumber | None:
    """Return the number that a node reads from a tensor, None if it is not followed.

    Args:
        read: The node, which has the tensor for its only argument.
        needed: What the number depends on, writes to memory included.
    """
    if len(needed) > MAX_OPERATORS:
        return None
    follower = _Follower(lifting, tensors, {read})
    expression = follower.find(read.args[0])
    if expression is None or not needed <= follower.nodes:
        return None
    return TensorNumber(expression, tuple(follower.integers))


@dataclass
class _Follower:
    """Follows integers through tensors of one element.

    Attributes:
        nodes: Nodes that were followed.
        integers: What they hold.
    """

    lifting: Lifting
    tensors: TensorMap
    nodes: set[fx.Node]
    integers: list[Expression] = field(default_factory=list)

    def find(self, arg: Any) -> Expression | None:
        """Return what an argument is, None if it is no integer that is followed."""
        if not isinstance(arg, fx.Node):
            return Literal(arg) if type(arg) is int else None
        self.nodes.add(arg)
        expression = self.lifting.scalars.expressions.get(arg)
        if expression is None:
            expression = self._held(arg)
        if expression is None or type(expression.value) is not int:
            return None
        if abs(expression.value) > LARGEST:
            return None
        self.integers.append(expression)
        return expression

    def _held(self, node: fx.Node) -> Expression | None:
        """Return the integer in the tensor that a node has made."""
        tensor = self.tensors.tensor(node)
        if tensor is None or tensor.dtype is not torch.int64 or tensor.dim():
            return None
        if node.target is torch.tensor:
            plain = len(node.args) == 1 and node.kwargs.keys() <= {"dtype", "device"}
            return self.find(node.args[0]) if plain else None
        name = operator_of(node)
        function = _FUNCTIONS.get(name)
        if function is None or node.kwargs:
            return None
        operands = [self.find(arg) for arg in node.args]
        known = [operand for operand in operands if operand is not None]
        if len(known) < len(operands):
            return None
        if name in _REFLECTED:
            known.reverse()
        value = function(*(operand.value for operand in known))
        return self.lifting.make.apply(function, known, value)


def require_integers(lifting: Lifting, expressions: Iterable[Expression]) -> None:
    """Demand that integers fit into a tensor, where that is not known."""
    make = lifting.make
    for expression in expressions:
        if isinstance(expression, Literal):
            continue
        if isinstance(expression, Leaf) and isinstance(expression.source, SizeSource):
            continue
        size = make.apply(abs, (expression,), abs(expression.value))
        lifting.require(make.apply(operator.le, (size, Literal(LARGEST)), True))
