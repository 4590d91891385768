"""Owns shapes of recurrent operators, which torch cannot run on symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from magweld.frontend.lifting.symbols import NotSymbolicError


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
