"""Owns shapes of parts of tensors at symbolic places, which torch would fix."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any, Final

import torch
from torch import SymInt, Tensor, fx

from magweld.frontend.operators.kinds import name_of

_GET: Final = frozenset(("getitem", "__getitem__"))
_SET: Final = frozenset(("setitem", "__setitem__"))
_PLAIN: Final = (int, SymInt, slice, EllipsisType, type(None))


def run_at_place(node: fx.Node, args: Any) -> Callable[[], Any] | None:
    """Return what reads or writes a part of a tensor, if an index is symbolic.

    Tensor indexing of torch takes an integer among indices for its value. `select`
    does not: it demands that the place is in the tensor.

    Args:
        node: A call of the graph.
        args: Its arguments, with fake tensors and symbolic numbers.
    """
    name = str(node.target) if node.op == "call_method" else name_of(node.target)
    if name not in _GET | _SET or not isinstance(args[0], Tensor):
        return None
    tensor, index, *values = args
    indices = index if isinstance(index, tuple) else (index,)
    if not any(isinstance(one, SymInt) for one in indices):
        return None
    if not all(isinstance(one, _PLAIN) and type(one) is not bool for one in indices):
        return None
    if name in _GET:
        return lambda: _part(tensor, indices)
    return lambda: _write(_part(tensor, indices), values[0])


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
