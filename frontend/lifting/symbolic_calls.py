"""Owns calls of torch on symbolic sizes that torch itself would fix or cannot run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import EllipsisType
from typing import Any, Final

import torch
from torch import SymInt, Tensor, fx

from magweld.frontend.lifting.symbols import NotSymbolicError

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


def run_at_place(node: fx.Node, *args: Any) -> Any:
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


# Recurrent operators.


def _lstm(source: Any, state: Any, weights: Any, *options: Any) -> tuple[Any, ...]:
    hidden, cell = state
    output = _output(source, hidden, weights, *options)
    return output, torch.empty_like(hidden), torch.empty_like(cell)


def _rnn(source: Any, state: Any, weights: Any, *options: Any) -> tuple[Any, ...]:
    output = _output(source, state, weights, *options)
    return output, torch.empty_like(state)


def _output(
    source: Any,
    hidden: Any,
    weights: Any,
    has_biases: Any,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> Any:
    if isinstance(has_biases, (list, tuple)) or source.dim() != 3:
        raise NotSymbolicError("a packed sequence")
    first, second = source.shape[:2]
    batch, steps = (first, second) if batch_first else (second, first)
    # These become guards.
    if not (hidden.shape[1] == batch and steps > 0 and batch > 0):
        raise NotSymbolicError("sizes of a recurrent operator")
    # The last layer projects if the first state is narrower than the cell.
    width = hidden.shape[2] * (2 if bidirectional else 1)
    output = source.new_empty((steps, batch, width))
    return output.transpose(0, 1) if batch_first else output


def _lstm_cell(source: Any, state: Any, _: Any, recurrent: Any, *biases: Any) -> Any:
    hidden, cell = state
    return _next(source, hidden, recurrent), _next(source, cell, recurrent)


def _gru_cell(source: Any, state: Any, _: Any, recurrent: Any, *biases: Any) -> Any:
    return _next(source, state, recurrent)


def _next(source: Any, state: Any, recurrent: Any) -> Any:
    if source.dim() != 2 or state.dim() != 2:
        raise NotSymbolicError("a cell without a batch")
    # This becomes a guard.
    if state.shape[0] != source.shape[0]:
        raise NotSymbolicError("sizes of a recurrent cell")
    return source.new_empty((source.shape[0], recurrent.shape[1]))


# Operators by name; each gives its results for arguments with symbolic sizes.
RECURRENT: Final[dict[str, Callable[..., Any]]] = {
    "lstm": _lstm,
    "gru": _rnn,
    "rnn_tanh": _rnn,
    "rnn_relu": _rnn,
    "lstm_cell": _lstm_cell,
    "gru_cell": _gru_cell,
}
