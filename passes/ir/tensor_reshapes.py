"""Owns the building of reshapes whose result type follows from the operand."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from magweld.bindings import ir, tensor

Groups = Sequence[Sequence[int]]


def collapse(value: Any, groups: Groups) -> Any:
    """Return a tensor with the dimensions of each group joined.

    Dimensions of extent one are dropped by no groups at all.
    """
    type_ = ir.RankedTensorType(value.type)
    shape = [prod(type_.shape[dim] for dim in group) for group in groups]
    result = ir.RankedTensorType.get(shape, type_.element_type)
    return tensor.collapse_shape(result, value, groups)


def expand(value: Any, shape: Sequence[int], groups: Groups) -> Any:
    """Return a tensor with each dimension split into the group that it has."""
    element = ir.RankedTensorType(value.type).element_type
    result = ir.RankedTensorType.get(list(shape), element)
    return tensor.expand_shape(result, value, groups, [], list(shape))
