"""Owns element-wise operators whose own lowering treats nan, or rounds, unlike torch.

A comparison with nan is false: where one decides, the branch that is taken then must
be the one that torch takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch._ops import OpOverload

from magweld.importer.dtypes import HALVES, arranged_only, generated_floats_only
from magweld.importer.halves import is_on_gpu, nearest_half

aten = torch.ops.aten

_VECTOR_BYTES: Final = {"AVX512": 64, "AVX2": 32}
"""Bytes of a vector of torch's kernels, by what they were chosen for."""


def _number(value: Any, dtype: torch.dtype) -> Tensor:
    return torch.scalar_tensor(value, dtype=dtype)


def _is_short(*tensors: Tensor) -> bool:
    """Tell whether torch computes all elements one by one: they fill no vector.

    The last elements of a tensor, which do not either, count as the others do here.
    """
    width = _VECTOR_BYTES.get(torch.backends.cpu.get_cpu_capability(), 0)
    if is_on_gpu(*tensors) or len({t.shape for t in tensors if t.dim()}) > 1:
        return False
    return all(t.numel() * t.element_size() < width for t in tensors)


def _compared(operator: OpOverload) -> Callable[..., Any]:
    """Compare with a number in the promoted type, e.g. 0.1 as f32 with an f32."""

    def compare(x: Tensor, number: Any) -> Any:
        dtype = torch.result_type(x, number)
        number = _wrapped(number, dtype)
        # Whether torch rounds the number first is not known for equality on GPUs.
        if dtype in HALVES and is_on_gpu(x) and nearest_half(number, dtype) != number:
            return NotImplemented
        return operator(x.to(dtype), _number(number, dtype))

    return compare


def _ordered(operator: OpOverload) -> Callable[..., Any]:
    """Compare booleans with numbers as numbers: their lowering would have no sign."""

    def compare(x: Tensor, y: Tensor) -> Any:
        if x.dtype is y.dtype or torch.bool not in (x.dtype, y.dtype):
            return NotImplemented
        dtype = torch.result_type(x, y)
        return operator(x.to(dtype), y.to(dtype))

    return compare


def _wrapped(number: Any, dtype: torch.dtype) -> Any:
    """Return a number as torch has it in a type: beyond the range of integers less."""
    if dtype.is_floating_point or dtype is torch.bool:
        return number
    limits = torch.iinfo(dtype)
    return (int(number) - limits.min) % (1 << limits.bits) + limits.min


def _equal(x: Tensor, y: Tensor) -> Any:
    if not (x.is_floating_point() or y.is_floating_point()):
        return NotImplemented
    # Equality of a value with itself would be folded to true, nan or not.
    return torch.logical_not(aten.ne.Tensor(x, y))


def _is_nan(x: Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    return torch.logical_not(aten.le.Tensor(x, _number(math.inf, x.dtype)))


def _is_infinite(value: float) -> Callable[..., Any]:
    def compare(x: Tensor) -> Any:
        if not x.is_floating_point():
            return NotImplemented
        return aten.eq.Tensor(x, _number(value, x.dtype))

    return compare


def _clamp(x: Tensor, low: Any = None, high: Any = None) -> Any:
    dtype = torch.result_type(x, low if high is None else high)
    if low is not None and high is not None:
        dtype = torch.promote_types(dtype, torch.result_type(x, low))
    if not dtype.is_floating_point:
        return _clamp_whole(x, low, high, dtype)
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        return torch.full_like(x, math.nan, dtype=dtype)
    x = x.to(dtype)
    if low is not None:
        bound = _number(low, dtype)
        x = torch.where(aten.lt.Tensor(x, bound), bound, x)
    if high is not None:
        bound = _number(high, dtype)
        x = torch.where(aten.gt.Tensor(x, bound), bound, x)
    return x


def _clamp_whole(x: Tensor, low: Any, high: Any, dtype: torch.dtype) -> Any:
    """Make truths numbers, of which alone the lowering knows."""
    kinds = {type(low), type(high)}
    if dtype is torch.bool or (x.dtype is dtype and bool not in kinds):
        return NotImplemented
    bounds = (bound if bound is None else int(bound) for bound in (low, high))
    return aten.clamp.default(x.to(dtype), *bounds)


def _clamp_max(x: Tensor, high: Any) -> Any:
    return _clamp(x, None, high)


def _extreme(exceeds: OpOverload) -> Callable[..., Any]:
    """Return the greater or lesser of two, nan if one of them is."""

    def choose(x: Tensor, y: Tensor) -> Any:
        dtype = torch.result_type(x, y)
        if not dtype.is_floating_point:
            return NotImplemented
        x, y = x.to(dtype), y.to(dtype)
        # Of zeros of two signs torch takes the second in vectors, else the first.
        if _is_short(x, y):
            x, y = y, x
        chosen = torch.where(exceeds(x, y), x, y)
        return torch.where(aten.ne.Tensor(x, x), x, chosen)

    return choose


def _gelu(x: Tensor, *, approximate: str = "none") -> Any:
    if approximate != "tanh":
        return NotImplemented
    # 0.5 * (1 + tanh(y)) is sigmoid(2 * y), without the cancellation.
    factor = 2.0 * math.sqrt(2.0 / math.pi)
    doubled = x * (x * x * (factor * 0.044715) + factor)
    return x * torch.sigmoid(doubled)


def _multiply(x: Tensor, y: Any) -> Any:
    # A number comes as it is.
    kinds = {x.dtype, y.dtype if isinstance(y, Tensor) else type(y)}
    if kinds <= {torch.bool, bool}:
        y = y if isinstance(y, Tensor) else _number(y, torch.bool)
        return torch.logical_and(x, y)
    return NotImplemented


def _power(x: Tensor, exponent: Any) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    if exponent in _POWERS:
        return _POWERS[exponent](x)
    if not float(exponent).is_integer() or abs(exponent) > _MAX_SQUARED_EXPONENT:
        return NotImplemented
    product = _by_squaring(x, abs(int(exponent)))
    return product if exponent > 0 else torch.reciprocal(product)


def _by_squaring(x: Tensor, exponent: int) -> Tensor:
    if exponent == 1:
        return x
    half = _by_squaring(x, exponent // 2)
    return half * half if exponent % 2 == 0 else half * half * x


def _negative(x: Tensor) -> Any:
    # The lowering of integers goes through f32.
    return NotImplemented if x.is_floating_point() else x * -1


def _trunc(x: Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    # Either keeps the sign of what becomes zero.
    below = aten.lt.Tensor(x, _number(0.0, x.dtype))
    return torch.where(below, torch.ceil(x), torch.floor(x))


def _softshrink(x: Tensor, lambd: Any = 0.5) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    width = _number(lambd, x.dtype)
    zero = _number(0.0, x.dtype)
    # In vectors torch loses the sign of what becomes zero.
    inside = x * zero if _is_short(x) else torch.where(aten.ne.Tensor(x, x), x, zero)
    shrunk = torch.where(aten.lt.Tensor(x, -width), x + width, inside)
    return torch.where(aten.gt.Tensor(x, width), x - width, shrunk)


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Any:
    if x.dtype is y.dtype:
        return NotImplemented
    dtype = torch.result_type(x, y)
    return torch.where(condition, x.to(dtype), y.to(dtype))


def _reciprocal(x: Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    return _number(1.0, x.dtype) / x


# Beyond it the roundings of the products add up to more than those of a power.
_MAX_SQUARED_EXPONENT = 16

# Exponents that have an operator of their own, as torch has it.
_POWERS: dict[float, Callable[[Tensor], Tensor]] = {
    0.0: torch.ones_like,
    0.5: torch.sqrt,
    1.0: torch.clone,
    -0.5: torch.rsqrt,
}

_OURS: dict[OpOverload, Callable[..., Any]] = {
    aten.clamp.default: _clamp,
    aten.clamp_max.default: _clamp_max,
    aten.clamp_min.default: _clamp,
    aten.eq.Scalar: _compared(aten.eq.Tensor),
    aten.eq.Tensor: _equal,
    aten.ge.Scalar: _compared(aten.ge.Tensor),
    aten.ge.Tensor: _ordered(aten.ge.Tensor),
    aten.gelu.default: _gelu,
    aten.gt.Scalar: _compared(aten.gt.Tensor),
    aten.gt.Tensor: _ordered(aten.gt.Tensor),
    aten.isnan.default: _is_nan,
    aten.isneginf.default: _is_infinite(-math.inf),
    aten.isposinf.default: _is_infinite(math.inf),
    aten.le.Scalar: _compared(aten.le.Tensor),
    aten.le.Tensor: _ordered(aten.le.Tensor),
    aten.lt.Scalar: _compared(aten.lt.Tensor),
    aten.lt.Tensor: _ordered(aten.lt.Tensor),
    aten.maximum.default: _extreme(aten.gt.Tensor),
    aten.minimum.default: _extreme(aten.lt.Tensor),
    aten.mul.Tensor: _multiply,
    aten.ne.Scalar: _compared(aten.ne.Tensor),
    aten.neg.default: _negative,
    aten.pow.Tensor_Scalar: _power,
    aten.reciprocal.default: _reciprocal,
    aten.softshrink.default: _softshrink,
    aten.trunc.default: _trunc,
    aten.where.self: _where,
}

# They choose between numbers, and round those that they are given.
_CHOICES: frozenset[OpOverload] = frozenset(
    {
        aten.clamp.default,
        aten.clamp_max.default,
        aten.clamp_min.default,
        aten.eq.Scalar,
        aten.ge.Scalar,
        aten.gt.Scalar,
        aten.isnan.default,
        aten.isneginf.default,
        aten.isposinf.default,
        aten.le.Scalar,
        aten.lt.Scalar,
        aten.ne.Scalar,
        aten.where.self,
    }
)

POINTWISE: dict[OpOverload, Callable[..., Any]] = {
    operator: (arranged_only if operator in _CHOICES else generated_floats_only)(
        function
    )
    for operator, function in _OURS.items()
}
"""Decompositions of element-wise operators."""
