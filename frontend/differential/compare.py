"""Owns the comparison of two descriptions."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from magweld.frontend.differential.describe import (
    Description,
    Difference,
    Item,
    join,
    shown,
)
from magweld.frontend.differential.tensors import TensorData, difference


def compare(
    expected: Description, found: Description, exact: bool = True
) -> Difference | None:
    """Return the first difference, None when there is none.

    Args:
        expected: What eager left.
        found: What the traced callable left.
        exact: Whether tensors must agree bit by bit.
    """
    for left, right in zip(expected.items, found.items, strict=False):
        result = _compare_items(expected, found, left, right, exact)
        if result is not None:
            return result
    return None


def _compare_items(
    expected: Description,
    found: Description,
    left: Item,
    right: Item,
    exact: bool,
) -> Difference | None:
    if left.kind != right.kind:
        return Difference(left.path, f"a {left.kind}", f"a {right.kind}")
    if left.origin != right.origin:
        return Difference(left.path, _origin(left), _origin(right))
    result = _compare_data(left, right, exact)
    if result is not None:
        return result
    for mine, theirs in zip_longest(left.parts, right.parts):
        if mine != theirs:
            return _part_difference(expected, found, left, mine, theirs)
    return None


def _origin(item: Item) -> str:
    if item.origin is None:
        return "a new object"
    return f"object {item.origin} from before the call"


def _compare_data(left: Item, right: Item, exact: bool) -> Difference | None:
    if isinstance(left.data, TensorData) and isinstance(right.data, TensorData):
        result = difference(left.data, right.data, exact)
        if result is None:
            return None
        name, wanted, got = result
        return Difference(join(left.path, name), str(wanted), str(got))
    if left.data != right.data:
        return Difference(left.path, repr(left.data), repr(right.data))
    return None


def _part_difference(
    expected: Description, found: Description, item: Item, mine: Any, theirs: Any
) -> Difference:
    if mine is None or theirs is None or mine[0] != theirs[0]:
        names = [None if part is None else part[0] for part in (mine, theirs)]
        path = join(item.path, "<content>")
        return Difference(path, *[f"{name or 'nothing'}" for name in names])
    path = join(item.path, mine[0])
    return Difference(path, shown(expected, mine[1]), shown(found, theirs[1]))
