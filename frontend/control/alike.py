"""Owns the question whether two pieces of a graph are the same but for names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from magweld.frontend.control.operators import ControlOperator
from magweld.frontend.state.values import is_scalar, same_scalar


def alike(
    left: Iterable[fx.Node], right: Iterable[fx.Node], names: dict[fx.Node, fx.Node]
) -> bool:
    """Return whether two sequences of operators agree one by one.

    Args:
        left: Operators in order.
        right: Operators in order.
        names: Which node of the right stands for which of the left; is completed.
    """
    lefts, rights = list(left), list(right)
    if len(lefts) != len(rights):
        return False
    for mine, other in zip(lefts, rights, strict=True):
        if mine.op != other.op:
            return False
        if mine.op != "placeholder" and not _same_target(mine.target, other.target):
            return False
        if not _same(mine.args, other.args, names):
            return False
        if not _same(dict(mine.kwargs), dict(other.kwargs), names):
            return False
        names[mine] = other
    return True


def _same_target(left: Any, right: Any) -> bool:
    if isinstance(left, ControlOperator) and type(left) is type(right):
        pairs = zip(left.bodies, right.bodies, strict=True)
        return left.settings == right.settings and all(
            alike(a.graph.nodes, b.graph.nodes, {}) for a, b in pairs
        )
    return bool(left == right)


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
