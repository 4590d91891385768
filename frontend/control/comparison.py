"""Owns comparisons: values after two branches, forms of tensors, pieces of graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx

from magweld.frontend.monitor.stack import NULL
from magweld.frontend.operators.tensors import PLAIN_TENSORS
from magweld.frontend.state.values import is_scalar, same_scalar
from magweld.graphs.control_operators import ControlOperator

_SEQUENCES: Final = (tuple, list)


class DifferenceError(Exception):
    """Two sides of a branch end with values that no operator can choose between."""


@dataclass
class Pairs:
    """Tensors that differ between two branches, and what is the same.

    Attributes:
        older: Returns those of some ids whose objects are from before the branch.
        nodes: Gives the nodes of a tensor after the taken branch and after the other.
        pairs: The tensor of the taken branch and that of the other, by the first's id.
        same: Objects that both branches have left where they were.
    """

    older: Callable[[Iterable[int]], frozenset[int]]
    nodes: Callable[[torch.Tensor], tuple[fx.Node, fx.Node]]
    pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    same: list[Any] = field(default_factory=list)

    def add(self, mine: Any, other: Any) -> None:
        """Compare what one slot holds after either branch.

        Raises:
            DifferenceError: It is neither the same nor two tensors of one form.
        """
        if self._is_same(mine, other):
            self.same.append(mine)
        elif mine is NULL or other is NULL:
            raise DifferenceError("a variable that only one branch has set")
        elif isinstance(mine, torch.Tensor) and isinstance(other, torch.Tensor):
            self._add_tensors(mine, other)
        elif type(mine) in _SEQUENCES and self._alike(mine, other):
            for left, right in zip(mine, other, strict=True):
                self.add(left, right)
        elif type(mine) is dict and self._alike(mine, other):
            if list(mine) != list(other):
                raise DifferenceError("dicts with different keys")
            for key in mine:
                self.add(mine[key], other[key])
        else:
            raise DifferenceError(_name(mine, other))

    def _is_same(self, mine: Any, other: Any) -> bool:
        if mine is other:
            # One object may stand for two tensors, if a branch within has chosen it.
            first, second = (
                self.nodes(mine) if isinstance(mine, torch.Tensor) else (None, None)
            )
            return first is second
        return is_scalar(mine) and same_scalar(mine, other)

    def _alike(self, mine: Any, other: Any) -> bool:
        # Only containers that the branches themselves have made may be two objects.
        if type(mine) is not type(other) or len(mine) != len(other):
            return False
        return not self.older((id(mine), id(other)))

    def _add_tensors(self, mine: torch.Tensor, other: torch.Tensor) -> None:
        if form_of(mine) != form_of(other):
            raise DifferenceError("tensors of different type or shape")
        before = self.pairs.setdefault(id(mine), (mine, other))
        if before[1] is not other:
            raise DifferenceError("one tensor in the place of two")

    def passed_through(self) -> frozenset[int]:
        """Return the ids of tensors from before that stand for a result."""
        return self.older(self.pairs)


def _name(mine: Any, other: Any) -> str:
    kinds = sorted({type(mine).__qualname__, type(other).__qualname__})
    return f"values of {' and '.join(kinds)}"


def form_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return all that a program can learn of a tensor without its elements.

    Raises:
        DifferenceError: It is of a kind that has more to it.
    """
    if type(tensor) not in PLAIN_TENSORS or tensor.layout is not torch.strided:
        raise DifferenceError(f"a {type(tensor).__qualname__}")
    return (
        type(tensor),
        tensor.shape,
        tensor.stride(),
        tensor.storage_offset(),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.is_conj(),
        tensor.is_neg(),
        tensor.is_inference(),
    )


def are_isomorphic(
    left: Iterable[fx.Node], right: Iterable[fx.Node], names: dict[fx.Node, fx.Node]
) -> bool:
    """Return whether two sequences of operators agree one by one.

    Args:
        names: Which node of the right stands for which of the left; is completed.
    """
    lefts, rights = list(left), list(right)
    if len(lefts) != len(rights):
        return False
    for mine, other in zip(lefts, rights, strict=True):
        if not _same_node(mine, other, names):
            return False
        names[mine] = other
    return True


def _same_node(mine: fx.Node, other: fx.Node, names: dict[fx.Node, fx.Node]) -> bool:
    left: object = mine.target
    right: object = other.target
    if isinstance(left, ControlOperator):
        if not isinstance(right, ControlOperator) or type(left) is not type(right):
            return False
        return _same_control(left, right, mine.args, other.args, names)
    return (
        mine.op == other.op
        and bool(left == right)
        and _same(mine.args, other.args, names)
        and _same(dict(mine.kwargs), dict(other.kwargs), names)
    )


def _same_control(
    left: ControlOperator,
    right: ControlOperator,
    mine: tuple[Any, ...],
    other: tuple[Any, ...],
    names: dict[fx.Node, fx.Node],
) -> bool:
    # What is one operand of an iteration may be two of another one.
    fixed = 1 + left.carried
    if left.settings != right.settings:
        return False
    if not _same(mine[:fixed], other[:fixed], names):
        return False
    places = list(range(fixed - 1))
    for operand in mine[fixed:]:
        found = names.get(operand, operand)
        if found not in other[fixed:]:
            return False
        places.append(other.index(found, fixed) - 1)
    return all(
        _same_body(first, second, places)
        for first, second in zip(left.bodies, right.bodies, strict=True)
    )


def _same_body(left: fx.GraphModule, right: fx.GraphModule, places: list[int]) -> bool:
    mine, operators = _split(left)
    inputs, others = _split(right)
    names = {node: inputs[place] for node, place in zip(mine, places, strict=True)}
    return are_isomorphic(operators, others, names)


def _split(body: fx.GraphModule) -> tuple[list[fx.Node], list[fx.Node]]:
    nodes = list(body.graph.nodes)
    inputs = [node for node in nodes if node.op == "placeholder"]
    return inputs, nodes[len(inputs) :]


def _same(left: Any, right: Any, names: dict[fx.Node, fx.Node]) -> bool:
    if isinstance(left, fx.Node):
        return isinstance(right, fx.Node) and names.get(left, left) is right
    if isinstance(left, (tuple, list)):
        return (
            isinstance(right, type(left))
            and len(left) == len(right)
            and all(_same(a, b, names) for a, b in zip(left, right, strict=True))
        )
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(
            _same(left[key], right[key], names) for key in left
        )
    if isinstance(left, slice):
        return isinstance(right, slice) and _same(
            (left.start, left.stop, left.step),
            (right.start, right.stop, right.step),
            names,
        )
    if is_scalar(left):
        return same_scalar(left, right)
    return left is right
