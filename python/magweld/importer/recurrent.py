"""Owns one step of recurrent layers as operators on values.

Torch's own composites write to their temporaries below the tracing of writes: each
gate would be written back into all gates, and the graph traced twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.importer.dtypes import generated_floats_only


@generated_floats_only
def lstm_cell(
    source: Tensor,
    state: Sequence[Tensor],
    own: Tensor,
    recurrent: Tensor,
    own_bias: Tensor | None = None,
    recurrent_bias: Tensor | None = None,
) -> Any:
    """Return the next state [batch, hidden] and cell [batch, hidden] of an LSTM.

    `source` is [batch, input] and `own` [4 * hidden, input]; NotImplemented for other
    ranks and sizes, which torch checks.
    """
    hidden, cell = state
    if not _fits(4, source, hidden, own, recurrent) or cell.shape != hidden.shape:
        return NotImplemented
    gates = F.linear(hidden, recurrent, recurrent_bias)
    gates = gates + F.linear(source, own, own_bias)
    taken, kept, new, shown = gates.chunk(4, 1)
    cell = kept.sigmoid() * cell + taken.sigmoid() * new.tanh()
    return shown.sigmoid() * cell.tanh(), cell


@generated_floats_only
def gru_cell(
    source: Tensor,
    hidden: Tensor,
    own: Tensor,
    recurrent: Tensor,
    own_bias: Tensor | None = None,
    recurrent_bias: Tensor | None = None,
) -> Any:
    """Return the next state [batch, hidden] of a gated recurrent unit."""
    if not _fits(3, source, hidden, own, recurrent):
        return NotImplemented
    given = F.linear(source, own, own_bias).chunk(3, 1)
    known = F.linear(hidden, recurrent, recurrent_bias).chunk(3, 1)
    reset = (known[0] + given[0]).sigmoid()
    update = (known[1] + given[1]).sigmoid()
    new = (given[2] + known[2] * reset).tanh()
    return (hidden - new) * update + new


def _plain_cell(activation: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
    @generated_floats_only
    def cell(
        source: Tensor,
        hidden: Tensor,
        own: Tensor,
        recurrent: Tensor,
        own_bias: Tensor | None = None,
        recurrent_bias: Tensor | None = None,
    ) -> Any:
        if not _fits(1, source, hidden, own, recurrent):
            return NotImplemented
        known = F.linear(hidden, recurrent, recurrent_bias)
        return activation(known + F.linear(source, own, own_bias))

    return cell


rnn_tanh_cell = _plain_cell(torch.tanh)
rnn_relu_cell = _plain_cell(torch.relu)


def _fits(
    gates: int, source: Tensor, hidden: Tensor, own: Tensor, recurrent: Tensor
) -> bool:
    """Whether a step's tensors have the shapes of a batch and of the gates."""
    if not source.dim() == hidden.dim() == own.dim() == recurrent.dim() == 2:
        return False
    batch, width = hidden.shape
    shapes = (batch, gates * width, gates * width)
    return shapes == (source.shape[0], own.shape[0], recurrent.shape[0])
