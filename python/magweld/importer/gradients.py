"""Owns the operators of backward graphs as ATen operators that are generated.

Products and convolutions have backward operators in terms of themselves or run through
torch; here are those of what lies between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table as _torch_table
from torch._ops import OpOverload

from magweld.importer.dtypes import generated_floats_only
from magweld.importer.normalization import (
    batch_norm_training,
    running_statistics,
)

aten = torch.ops.aten

# Torch's decompositions of these are exact in the types that are generated.
_FROM_TORCH: tuple[OpOverload, ...] = (
    aten.elu_backward.default,
    aten.glu_backward.default,
    aten.hardsigmoid_backward.default,
    aten.hardswish_backward.default,
    aten.hardtanh_backward.default,
    aten.huber_loss_backward.default,
    aten.leaky_relu_backward.default,
    aten.log_sigmoid_backward.default,
    aten.mish_backward.default,
    aten.mse_loss_backward.default,
    aten.native_group_norm_backward.default,
    aten.select_backward.default,
    aten.silu_backward.default,
    aten.slice_backward.default,
    aten.smooth_l1_loss_backward.default,
    aten.softplus_backward.default,
)


def _threshold_backward(gradient: Tensor, x: Tensor, threshold: Any) -> Tensor:
    zero = torch.scalar_tensor(0.0, dtype=gradient.dtype)
    return torch.where(x <= threshold, zero, gradient)


def _tanh_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return gradient * (1.0 - y * y)


def _sigmoid_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return gradient * (1.0 - y) * y


def _gelu_backward(gradient: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        # 0.5 * (1 + tanh(z)) is sigmoid(2 * z).
        factor = 2.0 * math.sqrt(2.0 / math.pi)
        square = x * x
        gate = torch.sigmoid(x * (square * (factor * 0.044715) + factor))
        slope = square * (3.0 * factor * 0.044715) + factor
        return gradient * (gate + x * gate * (1.0 - gate) * slope)
    below = torch.erf(x * math.sqrt(0.5)) * 0.5 + 0.5
    density = torch.exp(x * x * -0.5) * math.sqrt(0.5 / math.pi)
    return gradient * (below + x * density)


def _softmax_backward(gradient: Tensor, y: Tensor, dim: int, dtype: Any) -> Any:
    if y.dim() == 0 or dtype is not gradient.dtype:
        return NotImplemented
    weighted = gradient * y
    return weighted - y * weighted.sum(dim).unsqueeze(dim)


def _log_softmax_backward(gradient: Tensor, y: Tensor, dim: int, dtype: Any) -> Any:
    if y.dim() == 0 or dtype is not gradient.dtype:
        return NotImplemented
    return gradient - torch.exp(y) * gradient.sum(dim).unsqueeze(dim)


def _layer_norm_backward(
    gradient: Tensor,
    x: Tensor,
    shape: Sequence[int],
    mean: Tensor,
    inverse: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    wanted: Sequence[bool],
) -> Any:
    outer = list(range(x.dim() - len(shape)))
    inner = list(range(len(outer), x.dim()))
    if not outer or x.numel() == 0:
        return NotImplemented
    normal = (x - mean) * inverse
    to_x = None
    if wanted[0]:
        scaled = gradient if weight is None else gradient * weight
        both = _kept_mean(scaled, inner), _kept_mean(scaled * normal, inner)
        to_x = (scaled - both[0] - normal * both[1]) * inverse
    to_weight = (gradient * normal).sum(outer) if wanted[1] else None
    return to_x, to_weight, gradient.sum(outer) if wanted[2] else None


def _kept_mean(x: Tensor, dims: Sequence[int]) -> Tensor:
    shape = [1 if axis in dims else extent for axis, extent in enumerate(x.shape)]
    return x.mean(list(dims)).view(shape)


def _batch_norm_backward(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_inverse: Tensor | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> Any:
    # Statistics that it does not read are empty.
    used = (save_mean, save_inverse) if training else (running_mean, running_var)
    if used[0] is None or used[1] is None:
        return NotImplemented
    return _of_statistics(gradient, x, weight, *used, training, eps, wanted)


@generated_floats_only
def _of_statistics(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor | None,
    mean: Tensor,
    spread: Tensor,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> Any:
    inverse = spread if training else torch.rsqrt(spread + eps)
    dims = [0, *range(2, x.dim())]
    channel = [-1, *[1] * (x.dim() - 2)]
    centred = x - mean.view(channel)
    total = gradient.sum(dims)
    product = (gradient * centred).sum(dims) * inverse
    factor = inverse if weight is None else inverse * weight
    to_x = gradient
    if training:
        count = x.numel() // x.shape[1]
        slope = product * inverse / count
        to_x = gradient - (total / count).view(channel) - centred * slope.view(channel)
    return (
        to_x * factor.view(channel) if wanted[0] else None,
        product if wanted[1] else None,
        total if wanted[2] else None,
    )


def _functional_batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    count = x.numel() // max(1, x.shape[1])
    if not training or count < 2:
        return NotImplemented
    result, mean, variance = batch_norm_training(x, weight, bias, eps)
    running = running_statistics(
        (mean, variance), (running_mean, running_var), momentum, count
    )
    return result, mean, torch.rsqrt(variance + eps), *running


_OURS: dict[OpOverload, Callable[..., Any]] = {
    aten._log_softmax_backward_data.default: _log_softmax_backward,
    aten._native_batch_norm_legit_functional.default: _functional_batch_norm,
    aten._softmax_backward_data.default: _softmax_backward,
    aten.gelu_backward.default: _gelu_backward,
    aten.native_layer_norm_backward.default: _layer_norm_backward,
    aten.sigmoid_backward.default: _sigmoid_backward,
    aten.tanh_backward.default: _tanh_backward,
    aten.threshold_backward.default: _threshold_backward,
}

GRADIENTS: dict[OpOverload, Callable[..., Any]] = {
    **{op: generated_floats_only(_torch_table[op]) for op in _FROM_TORCH},
    **{op: generated_floats_only(function) for op, function in _OURS.items()},
    aten.native_batch_norm_backward.default: _batch_norm_backward,
}
"""Decompositions of backward operators, and of forward ones that only training has."""
