"""Owns the torch functions that are replaced before they reach ATen.

Below them torch would choose a kernel that writes to tensors unseen, or splits one
formula into more passes than it needs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from magweld.importer import refusals
from magweld.importer.attention import AttentionOptions, attention
from magweld.importer.dtypes import (
    GENERATED_FLOATS,
    HALVES,
    arranged_only,
    generated_floats_only,
    widened,
)
from magweld.importer.halves import is_on_gpu
from magweld.importer.native_attention import native_attention
from magweld.importer.normalization import (
    batch_norm_training,
    running_statistics,
)
from magweld.importer.randomness import bernoulli
from magweld.importer.recurrent import (
    gru_cell,
    lstm_cell,
    rnn_relu_cell,
    rnn_tanh_cell,
)


@arranged_only
def _scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    dtype = query.dtype
    kept = slice(-3) if enable_gqa else slice(-2)
    batches = {tensor.shape[kept] for tensor in (query, key, value)}
    # Torch's function for CPUs is known by its halves, see `halves.py`.
    on_gpu = query.dtype in HALVES and is_on_gpu(query)
    if len(batches) != 1 or not (on_gpu or query.dtype in GENERATED_FLOATS):
        return NotImplemented
    if on_gpu:
        attn_mask = widened(attn_mask)
    # Torch multiplies halves there: weights are rounded, scores are not.
    rounded = dtype if on_gpu else None
    options = AttentionOptions(attn_mask, is_causal, scale, dropout_p, rounded)
    return attention(query, key, value, options)[0].to(dtype)


@generated_floats_only
def _functional_batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if not training or running_mean is None or running_var is None:
        return NotImplemented
    result, mean, variance = batch_norm_training(input, weight, bias, eps)
    new_mean, new_variance = running_statistics(
        (mean, variance),
        (running_mean, running_var),
        momentum,
        math.prod(input.shape) // input.shape[1],
    )
    running_mean.copy_(new_mean)
    running_var.copy_(new_variance)
    return result


def _torch_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    return _functional_batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )


def _dropout(input: Tensor, p: float = 0.5, train: bool = True) -> Any:
    if not train or not 0 < p < 1 or input.numel() == 0:
        return NotImplemented
    return input * (bernoulli(input, 1 - p) / (1 - p))


def _functional_dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    return NotImplemented if inplace else _dropout(input, p, training)


def _in_logical_order(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    # Torch's composite would draw in this order here and in memory's order eagerly.
    if input.is_contiguous():
        return NotImplemented
    raise refusals.RANDOM_ORDER.at("a random operator")


# Autocast casts nothing for these.
UNCAST: dict[Any, Callable[..., Any]] = {
    F.alpha_dropout: _in_logical_order,
    F.batch_norm: _functional_batch_norm,
    F.dropout: _functional_dropout,
    F.feature_alpha_dropout: _in_logical_order,
    torch.Tensor.bernoulli_: _in_logical_order,
    torch.alpha_dropout: _in_logical_order,
    torch.batch_norm: _torch_batch_norm,
    torch.dropout: _dropout,
    torch.feature_alpha_dropout: _in_logical_order,
    torch.ops.aten.batch_norm.default: _torch_batch_norm,
    torch.ops.aten.dropout.default: _dropout,
}
_CAST: dict[Any, Callable[..., Any]] = {
    F.scaled_dot_product_attention: _scaled_dot_product_attention,
    torch._native_multi_head_attention: native_attention,
    torch.gru_cell: gru_cell,
    torch.lstm_cell: lstm_cell,
    torch.rnn_relu_cell: rnn_relu_cell,
    torch.rnn_tanh_cell: rnn_tanh_cell,
    torch.ops.aten._native_multi_head_attention.default: native_attention,
    torch.ops.aten.scaled_dot_product_attention.default: _scaled_dot_product_attention,
}


def _without_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function decline in autocast, which casts what torch's own one takes."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return NotImplemented
        return function(*args, **kwargs)

    return guarded


SUBSTITUTIONS: dict[Any, Callable[..., Any]] = {
    **UNCAST,
    **{key: _without_autocast(function) for key, function in _CAST.items()},
}
"""Torch function to its replacement, which may return `NotImplemented`."""
