"""Owns the question whether two pieces of a graph are the same but for names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from magweld.frontend.state.values import is_scalar, same_scalar
from magweld.graphs.control_operators import ControlOperator


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
