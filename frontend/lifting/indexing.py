"""Owns shapes of parts of tensors at symbolic places, which torch would fix."""

from __future__ import annotations

import operator
from types import EllipsisType
from typing import Any, Final

import torch
from torch import SymInt, Tensor, fx

_PLAIN: Final = (int, SymInt, slice, EllipsisType, type(None))


def is_at_place(node: fx.Node, args: Any) -> bool:
    """Whether a call of a graph reads or writes a tensor at symbolic integers.

    Args:
        node: The call.
        args: Its arguments, with fake tensors and symbolic numbers.
    """
    indexes = node.target in (operator.getitem, operator.setitem)
    if not indexes or not isinstance(args[0], Tensor):
        return False
    indices = _indices(args)
    return any(isinstance(one, SymInt) for one in indices) and all(
        isinstance(one, _PLAIN) and type(one) is not bool for one in indices
    )


def run_at_place(node: fx.Node, args: Any) -> Any:
    """Run a call for which `is_at_place` holds.

    Tensor indexing of torch takes an integer among indices for its value. `select`
    does not: it demands that the place is in the tensor.
    """
    part = _part(args[0], _indices(args))
    if node.target is operator.getitem:
        return part
    _write(part, args[2])
    return None


def _indices(args: Any) -> tuple[Any, ...]:
    return args[1] if isinstance(args[1], tuple) else (args[1],)


def _part(tensor: Tensor, indices: tuple[Any, ...]) -> Tensor:
    """Return the view that plain indices take, one of them an integer at least."""
    named = sum(one is not None and one is not Ellipsis for one in indices)
    part, dim = tensor, 0
    for one in indices:
        if one is Ellipsis:
            dim += tensor.dim() - named
        elif one is None:
            part, dim = part.unsqueeze(dim), dim + 1
        elif isinstance(one, slice):
            part, dim = part[(slice(None),) * dim + (one,)], dim + 1
        else:
            part = torch.select(part, dim, one)
    return part


def _write(part: Tensor, value: Any) -> None:
    if not isinstance(value, Tensor):
        part.fill_(value)
        return
    while value.dim() > part.dim() and value.shape[0] == 1:
        value = value[0]
    part.copy_(value)
