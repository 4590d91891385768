"""Owns the table of ATen operators that are traced as other ATen operators.

Ours keep f32 in f32 and give one pass for each term of the formula; torch's own serve
where they do so already. Operators that use random numbers are in neither: taking
one apart would change the order in which numbers are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table as _torch_table
from torch._ops import OpOverload

from magweld.importer.attention import AttentionOptions, attention
from magweld.importer.dtypes import arranged_only, generated_floats_only
from magweld.importer.gradients import GRADIENTS
from magweld.importer.normalization import (
    batch_norm_inference,
    batch_norm_training,
    group_norm,
    layer_norm,
)
from magweld.importer.pointwise import POINTWISE
from magweld.importer.reductions import REDUCTIONS
from magweld.importer.structure import STRUCTURE

aten = torch.ops.aten

# Torch's decompositions of these are exact in the types that are generated.
_FROM_TORCH: tuple[OpOverload, ...] = (
    aten.addcdiv.default,
    aten.addcmul.default,
    aten.addmv.default,
    aten.addr.default,
    aten.celu.default,
    aten.dot.default,
    aten.elu.default,
    aten.frac.default,
    aten.glu.default,
    aten.hardsigmoid.default,
    aten.hardswish.default,
    aten.heaviside.default,
    aten.huber_loss.default,
    aten.leaky_relu.default,
    aten.lerp.Scalar,
    aten.lerp.Tensor,
    aten.linalg_vector_norm.default,
    aten.log_sigmoid_forward.default,
    aten.logaddexp.default,
    aten.logsumexp.default,
    aten.mish.default,
    aten.mse_loss.default,
    aten.mv.default,
    aten.rsub.Scalar,
    aten.rsub.Tensor,
    aten.sgn.default,
    aten.silu.default,
    aten.smooth_l1_loss.default,
    aten.softplus.default,
    aten.trace.default,
    aten.xlogy.Tensor,
)

# These round nothing: they hold for halves as well.
_ARRANGING_FROM_TORCH: tuple[OpOverload, ...] = (
    aten.expand_copy.default,
    aten.hardshrink.default,
    aten.hardtanh.default,
    aten.masked_fill.Scalar,
    aten.masked_fill.Tensor,
    aten.nan_to_num.default,
    aten.new_full.default,
    aten.new_ones.default,
    aten.new_zeros.default,
    aten.ones.default,
    aten.ones_like.default,
    aten.pixel_shuffle.default,
    aten.pixel_unshuffle.default,
    aten.select_scatter.default,
    aten.stack.default,
    aten.threshold.default,
    aten.tril.default,
    aten.triu.default,
    aten.zero.default,
    aten.zeros.default,
    aten.zeros_like.default,
)


def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    if x.dim() == 0:
        return NotImplemented
    exponentials = torch.exp(x - x.amax(dim).unsqueeze(dim))
    total = exponentials.sum(dim)
    return exponentials * torch.reciprocal(total).unsqueeze(dim)


def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    if x.dim() == 0:
        return NotImplemented
    shifted = x - x.amax(dim).unsqueeze(dim)
    return shifted - torch.log(torch.exp(shifted).sum(dim)).unsqueeze(dim)


def _addmm(
    bias: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    return _scaled_sum(bias, torch.mm(left, right), beta, alpha)


def _baddbmm(
    bias: Tensor, left: Tensor, right: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    return _scaled_sum(bias, torch.bmm(left, right), beta, alpha)


def _scaled_sum(bias: Tensor, product: Tensor, beta: Any, alpha: Any) -> Any:
    if not product.is_floating_point():
        return NotImplemented
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        # Not a product with zero: infinities in the bias must not show.
        return product
    return product + (bias if beta == 1 else bias * beta)


def _native_layer_norm(
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Any:
    return layer_norm(x, shape, weight, bias, eps)


def _native_batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    if training:
        if running_mean is not None:
            return NotImplemented
        result, mean, variance = batch_norm_training(x, weight, bias, eps)
        return result, mean, torch.rsqrt(variance + eps)
    if running_mean is None or running_var is None:
        return NotImplemented
    nothing = x.new_empty((0,))
    result = batch_norm_inference(x, weight, bias, running_mean, running_var, eps)
    return result, nothing, nothing


def _batch_norm_no_training(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> Any:
    return _native_batch_norm(
        x, weight, bias, running_mean, running_var, False, momentum, eps
    )


def _flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    if dropout_p:
        return NotImplemented
    options = AttentionOptions(attn_mask, is_causal, scale)
    return attention(query, key, value, options)


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Split the bias off: it becomes one more term of what follows the products."""
    if bias is None:
        return NotImplemented
    products = aten.convolution.default(
        x,
        weight,
        None,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
    )
    return products + bias.view(-1, *[1] * (weight.dim() - 2))


def _of_one_image(pool: OpOverload) -> Callable[..., Any]:
    """Return what gives an image without a batch one of its own: lowering wants it."""

    def pool_batch(x: Tensor, *arguments: Any) -> Any:
        if x.dim() != 3:
            return NotImplemented
        return pool(x.unsqueeze(0), *arguments).squeeze(0)

    return pool_batch


_OURS: dict[OpOverload, Callable[..., Any]] = {
    aten._adaptive_avg_pool2d.default: _of_one_image(aten._adaptive_avg_pool2d.default),
    aten._log_softmax.default: _log_softmax,
    aten._native_batch_norm_legit.no_stats: (
        lambda x, weight, bias, training, momentum, eps: _native_batch_norm(
            x, weight, bias, None, None, training, momentum, eps
        )
    ),
    aten._native_batch_norm_legit_no_training.default: _batch_norm_no_training,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _flash_attention_for_cpu,
    aten._softmax.default: _softmax,
    aten.addmm.default: _addmm,
    aten.avg_pool2d.default: _of_one_image(aten.avg_pool2d.default),
    aten.baddbmm.default: _baddbmm,
    aten.convolution.default: convolution,
    aten.native_batch_norm.default: _native_batch_norm,
    aten.native_group_norm.default: group_norm,
    aten.native_layer_norm.default: _native_layer_norm,
}

DECOMPOSITIONS: dict[OpOverload, Callable[..., Any]] = {
    **{op: generated_floats_only(_torch_table[op]) for op in _FROM_TORCH},
    **{op: arranged_only(_torch_table[op]) for op in _ARRANGING_FROM_TORCH},
    **{op: generated_floats_only(function) for op, function in _OURS.items()},
    **GRADIENTS,
    **POINTWISE,
    **REDUCTIONS,
    **STRUCTURE,
}
"""ATen operator to a function that traces its replacement, or `NotImplemented`."""
