"""Owns operators on f16 and bf16 as operators on f32 between explicit roundings.

Within one operator torch's kernels compute in f32 and round once, so each operator here
becomes conversions of its operands, itself on f32, and a conversion of its results.
Generated code converts in registers; memory holds the narrow elements. What numbers are
rounded to before depends on the device, as it does in torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from magweld import env
from magweld.codegen.unfolded_windows import FILTERED_CHANNELS, UnfoldedWindows
from magweld.importer.attention import AttentionOptions, attention
from magweld.importer.dtypes import GENERATED, HALVES, is_arranged, is_half, widened

aten = torch.ops.aten

Part = Callable[..., Any]


@dataclass(frozen=True)
class _Done:
    """What an operator gives, of which nothing is left to compute."""

    result: Any


# Rows of a product that take less time than the other operand takes from memory.
# 768 x 768 weights of bf16 and one row: 63 us in a kernel, 116 by a call of torch.
_FEW_ROWS: Final = 4
# Elements of the smaller factor up to which those of a pair need not be neighbours in
# one of them: tiles of larger products copy the same elements again. Transposed factors
# of 3072 x 1024 x 768 take 1.2 times as long as the library, 64 x 512 x 577 0.9 times.
_MOST_APART: Final = 1 << 17
# Of a batch of images.
_IMAGE_DIMS: Final = 4
# Scores of one head from which the library's products outweigh that attention is one
# kernel, where generated code multiplies no pairs: with 128 x 128 of bf16 it takes 0.6
# and 0.9 ms, with 1024 x 1024 47 and 35 ms.
_MANY_SCORES: Final = 256 * 256


def parts_in_single_precision(
    operator: OpOverload, args: Any, kwargs: Mapping[str, Any]
) -> Part | None:
    """Return how an operator on halves is one on f32, None where it is left as it is.

    Args:
        operator: The operator of a call.
        args: The call's positional arguments, tensors without data.
        kwargs: The call's named arguments.

    Returns:
        A function that is called with the same arguments under the tracer. It may
        return `NotImplemented`.
    """
    if operator is aten._to_copy.default:
        return _conversion_in_steps(*args, **kwargs)
    prepare = _WIDENED.get(operator)
    if prepare is None or not _computes_halves(args, kwargs):
        return None
    expected = operator(*args, **kwargs)

    def parts(*args: Any, **kwargs: Any) -> Any:
        prepared = prepare(*args, **kwargs)
        if isinstance(prepared, _Done):
            return pytree.tree_map(_like, prepared.result, expected)
        if prepared is NotImplemented or isinstance(prepared, Tensor):
            return prepared
        if isinstance(expected, Tensor) and is_half(expected):
            prepared = pytree.tree_map(_promoted_to(expected.dtype), prepared)
        args, kwargs = pytree.tree_map(_widened, prepared)
        return pytree.tree_map(_like, operator(*args, **kwargs), expected)

    return parts


def _computes_halves(args: Any, kwargs: Mapping[str, Any]) -> bool:
    leaves = pytree.tree_leaves((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    plain = all(is_arranged(tensor) and tensor.numel() for tensor in tensors)
    return plain and any(map(is_half, tensors))


def _conversion_in_steps(x: Tensor, **options: Any) -> Part | None:
    """Convert to and from halves by f32, as torch does: that may round twice."""
    dtype = options.get("dtype") or x.dtype
    kinds = {x.dtype, dtype}
    if not kinds & HALVES or torch.float32 in kinds or len(kinds) == 1:
        return None
    if not {*kinds - HALVES} <= GENERATED or not x.numel():
        return None
    return lambda x, **options: x.to(torch.float32).to(dtype)


def _promoted_to(dtype: torch.dtype) -> Part:
    """Return what rounds integer tensors to halves, as torch does before it computes.

    Tensors without dimensions are numbers, which stay as they are but on GPUs.
    """

    def promote(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dtype in HALVES:
            return value
        counts = value.dim() and not value.is_floating_point()
        return value.to(dtype) if counts or is_on_gpu(value) else value

    return promote


def _widened(value: Any) -> Any:
    is_narrow = isinstance(value, torch.dtype) and value in HALVES
    return torch.float32 if is_narrow else widened(value)


def _like(result: Any, expected: Any) -> Any:
    return result.to(expected.dtype) if isinstance(result, Tensor) else result


# ---- what happens to operands before -------------------------------------------------


def _as_they_are(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


def is_on_gpu(*values: Any) -> bool:
    """Tell whether some of the operands are tensors for torch's kernels of a GPU."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    return any(tensor.device.type != "cpu" for tensor in tensors)


def _rounded(value: Any, dtype: torch.dtype) -> Any:
    """Return a number, or a tensor without dimensions, that a half can hold."""
    return value.to(dtype) if isinstance(value, Tensor) else nearest_half(value, dtype)


def nearest_half(number: float, dtype: torch.dtype) -> float:
    """Return the half nearest to what f32 makes of a number, ties to even."""
    with np.errstate(over="ignore"):
        single = np.float32(number)
        if dtype is torch.float16:
            return float(single.astype(np.float16))
    if np.isnan(single):
        return math.nan
    bits = int(single.view(np.uint32))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return float(np.uint32(bits).view(np.float32))


def _sum_of_two(x: Any, y: Any, **options: Any) -> Any:
    """Round a number to the type of the sum; a factor other than one is left alone.

    On GPUs numbers take part as f32.
    """
    if options.pop("alpha", 1) != 1:
        return NotImplemented
    dtype = torch.result_type(x, y)
    if dtype in HALVES and not is_on_gpu(x, y):
        x, y = _rounded(x, dtype), _rounded(y, dtype)
    return (x, y), options


def _difference_from(x: Any, y: Any, alpha: Any = 1) -> Any:
    return _sum_of_two(x, y, alpha=alpha)


def _power_of_tensor(x: Tensor, exponent: Any) -> Any:
    """Round the exponent; torch makes some powers of several roundings.

    On the CPU these are powers of bf16, on GPUs of both types.
    """
    exponent = _rounded(exponent, x.dtype)
    in_steps = x.dtype is torch.bfloat16 or is_on_gpu(x)
    if in_steps and exponent == 3.0:
        return x * x * x
    if in_steps and exponent == -2.0:
        return torch.reciprocal(x * x)
    # Of minus infinity torch takes roots in f32, and on the CPU powers in f16.
    is_root = not in_steps and abs(exponent) == 0.5
    return ((x, exponent), {}) if not is_root else NotImplemented


def _shrunk(x: Tensor, bound: Any = 0.5) -> Any:
    return (x, _rounded(bound, x.dtype) if is_on_gpu(x) else bound), {}


def _grouped(x: Tensor, *args: Any) -> Any:
    """Leave groups on GPUs to torch, which rounds their mean and deviation."""
    return NotImplemented if is_on_gpu(x) else ((x, *args), {})


def _multiplies_bfloat(*operands: Any) -> bool:
    """Whether torch's library for CPUs has instructions for the products of tensors."""
    if is_on_gpu(*operands):
        return False
    narrow = any(
        isinstance(tensor, Tensor) and tensor.dtype is torch.bfloat16
        for tensor in operands
    )
    return narrow and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _generates_pairs() -> bool:
    """Whether generated products of bf16 are as fast as those of torch's library.

    Both multiply pairs then; the library has still other instructions where there are
    registers for tiles of matrices.
    """
    limited = env.CPU_CAPABILITY.get() == "avx2"
    tiles = torch.cpu._is_amx_tile_supported()
    return torch.cpu._is_avx512_bf16_supported() and not tiles and not limited


def _product(left: Tensor, right: Tensor) -> Any:
    """Leave products of bf16 to torch's library where generated ones are slower.

    Those of few rows wait for memory, whoever computes them.
    """
    rows = left.shape[-2] if left.dim() > 1 and right.dim() > 1 else 1
    if rows <= _FEW_ROWS or not _multiplies_bfloat(left, right):
        return (left, right), {}
    together = 1 in (left.stride(-1), right.stride(-2))
    fewest = min(left.shape[-2:].numel(), right.shape[-2:].numel())
    pairs = (together or fewest <= _MOST_APART) and _generates_pairs()
    return ((left, right), {}) if pairs else NotImplemented


def _sum_and_product(start: Tensor, left: Tensor, right: Tensor, **factors: Any) -> Any:
    kept = _product(left, right)
    return kept if kept is NotImplemented else ((start, left, right), factors)


def _convolution(x: Tensor, weight: Tensor, *args: Any) -> Any:
    """Leave windows of bf16 to torch's library where generated ones are slower."""
    library = _multiplies_bfloat(x) and not _is_cheap(x, weight, *args)
    return NotImplemented if library else ((x, weight, *args), {})


def _is_cheap(
    x: Tensor,
    weight: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *rest: Any,
) -> bool:
    """Whether a convolution takes as little time as the library's of bf16.

    Windows of one channel wait for memory, those of one point are products of pairs,
    as are others side by side, and a few channels of 3 x 3 take fewer products
    (Winograd).
    """
    groups = rest[-1]
    filters, channels, *window = weight.shape
    if transposed or len(window) > 2:
        return False
    if groups > 1:
        return bool(channels == 1)
    if {*window} == {1}:
        return _generates_pairs()
    plain = window == [3, 3] and {*stride, *dilation} == {1} and filters % 16 == 0
    if plain and 16 <= channels <= FILTERED_CHANNELS:
        return True
    return _unfolds(x, weight, stride, padding, dilation) and _generates_pairs()


def _unfolds(
    x: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any
) -> bool:
    """Whether the windows of an image are put side by side (`unfold-windows`)."""
    if weight.dim() != _IMAGE_DIMS or x.dim() != _IMAGE_DIMS:
        return False
    pixels = [
        (size + 2 * border - step * (points - 1) - 1) // distance + 1
        for size, border, step, points, distance in zip(
            x.shape[2:], padding, dilation, weight.shape[2:], stride, strict=True
        )
    ]
    result = (x.shape[0], weight.shape[0], *pixels)
    bits = 8 * weight.element_size()
    return UnfoldedWindows(bits, weight.shape, result, stride).pays


def _attention(query: Tensor, key: Tensor, *args: Any, **options: Any) -> Any:
    if is_on_gpu(query) and is_half(query):
        return _rounded_attention(query, key, *args, **options)
    many = query.shape[-2] * key.shape[-2] > _MANY_SCORES
    if many and _multiplies_bfloat(query) and not _generates_pairs():
        return NotImplemented
    return (query, key, *args), options


def _rounded_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Any:
    """Round weights as well, as torch's kernels for GPUs do, which multiply halves."""
    if dropout_p:
        return NotImplemented
    mask = _widened(attn_mask)
    options = AttentionOptions(mask, is_causal, scale, rounded=query.dtype)
    return _Done(attention(query, key, value, options))


def _interpolated(x: Tensor, *args: Any) -> Any:
    """Leave images on the CPU to torch: its kernels there round on the way."""
    return ((x, *args), {}) if is_on_gpu(x) else NotImplemented


def _given_statistics(*args: Any, **kwargs: Any) -> Any:
    training = args[5]
    return NotImplemented if training else (args, kwargs)


def _power_of_number(number: Any, exponent: Tensor) -> Any:
    return (_rounded(number, exponent.dtype), exponent), {}


def _extremes(x: Tensor, y: Tensor) -> Any:
    dtype = torch.result_type(x, y)
    return (x.to(dtype), y.to(dtype)), {}


_PREPARED: dict[OpOverload, Part] = {
    aten.add.Tensor: _sum_of_two,
    aten.add.Scalar: _sum_of_two,
    aten.sub.Tensor: _sum_of_two,
    aten.sub.Scalar: _sum_of_two,
    aten.rsub.Scalar: _difference_from,
    aten.rsub.Tensor: _sum_of_two,
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten.addmm.default: _sum_and_product,
    aten.addmv.default: _sum_and_product,
    aten.baddbmm.default: _sum_and_product,
    aten.bmm.default: _product,
    aten.convolution.default: _convolution,
    aten.dot.default: _product,
    aten.eq.Tensor: _extremes,
    aten.ge.Tensor: _extremes,
    aten.gt.Tensor: _extremes,
    aten.le.Tensor: _extremes,
    aten.lt.Tensor: _extremes,
    aten.maximum.default: _extremes,
    aten.mm.default: _product,
    aten.mv.default: _product,
    aten.minimum.default: _extremes,
    aten.native_batch_norm.default: _given_statistics,
    aten.native_group_norm.default: _grouped,
    aten.ne.Tensor: _extremes,
    aten.pow.Scalar: _power_of_number,
    aten.pow.Tensor_Scalar: _power_of_tensor,
    aten.softshrink.default: _shrunk,
    aten.upsample_bilinear2d.default: _interpolated,
}

_WIDENED: Final[Mapping[OpOverload, Part]] = {
    **dict.fromkeys(
        (
            aten._adaptive_avg_pool2d.default,
            aten._log_softmax.default,
            aten._log_softmax_backward_data.default,
            aten._native_batch_norm_legit_no_training.default,
            aten._softmax.default,
            aten._softmax_backward_data.default,
            aten.abs.default,
            aten.addcdiv.default,
            aten.addcmul.default,
            aten.amax.default,
            aten.amin.default,
            aten.avg_pool2d.default,
            aten.ceil.default,
            aten.celu.default,
            aten.cos.default,
            aten.div.Scalar,
            aten.div.Tensor,
            aten.elu.default,
            aten.erf.default,
            aten.exp.default,
            aten.expm1.default,
            aten.floor.default,
            aten.frac.default,
            aten.gelu.default,
            aten.gelu_backward.default,
            aten.glu.default,
            aten.hardsigmoid.default,
            aten.hardswish.default,
            aten.leaky_relu.default,
            aten.lerp.Scalar,
            aten.lerp.Tensor,
            aten.linalg_vector_norm.default,
            aten.log.default,
            aten.log10.default,
            aten.log1p.default,
            aten.log2.default,
            aten.log_sigmoid_forward.default,
            aten.logaddexp.default,
            aten.max.default,
            aten.mean.default,
            aten.mean.dim,
            aten.min.default,
            aten.mish.default,
            aten.mul.Scalar,
            aten.mul.Tensor,
            aten.native_layer_norm.default,
            aten.neg.default,
            aten.pow.Tensor_Tensor,
            aten.reciprocal.default,
            aten.relu.default,
            aten.round.default,
            aten.rsqrt.default,
            aten.sgn.default,
            aten.sigmoid.default,
            aten.sign.default,
            aten.silu.default,
            aten.sin.default,
            aten.softplus.default,
            aten.sqrt.default,
            aten.std.correction,
            aten.sum.default,
            aten.sum.dim_IntList,
            aten.tanh.default,
            aten.tanh_backward.default,
            aten.trunc.default,
            aten.var.correction,
            aten.var_mean.correction,
            aten.min.dim,
            aten.max.dim,
            aten.max_pool2d_with_indices.default,
            aten.logical_xor.default,
            aten.logical_or.default,
            aten.logical_not.default,
            aten.logical_and.default,
        ),
        _as_they_are,
    ),
    **_PREPARED,
}
"""Operator to what makes its arguments on halves those that are widened."""
