"""Values at the ends of element types, and operators to try on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Unary = Callable[[Tensor], Any]
Binary = Callable[[Tensor, Tensor], Any]

INFINITY, NAN = float("inf"), float("nan")
_FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, INFINITY, -INFINITY, NAN),
    *(88.0, -88.0, 1e-30, 1e30, 16777217.0, 3.0, -3.0, 1e-10, -1e-5, -0.3, 1e-7),
    *(1e10, -1e10, 7.0, 0.999999, 1.000001),
)  # fmt: skip
_INTEGERS = (
    *(0, 1, -1, 2, -2, 3, 5, -7, 127, 128, -128, 255, 256, 32767, -32768, 65535),
    *(16777215, 16777216, 16777217, -16777217, 123456789, -123456789),
    *(2**30, 2**30 + 1, -(2**30) - 1, 100, 1000, 46341),
)  # fmt: skip
COUNT = 32


def extremes(dtype: torch.dtype) -> Tensor:
    """Return 32 values: signed zeros, nan, infinities, limits, beyond 2^24 and 2^53."""
    if dtype is torch.bool:
        return torch.tensor([True, False, False, True] * (COUNT // 4))
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        ends: tuple[Any, ...] = (limits.max, limits.min, limits.tiny, -limits.tiny)
        return torch.tensor([*_FLOATS, *ends], dtype=dtype)
    whole = torch.iinfo(dtype)
    ends = (whole.max, whole.min, whole.max - 1, whole.min + 1)
    return torch.tensor([*_INTEGERS, *ends], dtype=dtype)


def second(values: Tensor) -> Tensor:
    """Return a second operand: the values in another order."""
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(0))
    return values[order]


def rows(x: Tensor) -> Tensor:
    """Return the values as a matrix."""
    return x.view(4, 8)


UNARY: dict[str, Unary] = {
    "abs": torch.abs,
    "all": lambda x: rows(x).all(1),
    "amax": lambda x: rows(x).amax(1),
    "amin": lambda x: rows(x).amin(0),
    "any": torch.any,
    "any-rows": lambda x: rows(x).any(0),
    "bitwise_not": torch.bitwise_not,
    "ceil": torch.ceil,
    "celu": F.celu,
    "clamp": lambda x: x.clamp(-2, 3),
    "clamp-fraction": lambda x: x.clamp(-0.5, 2.5),
    "clamp-max": lambda x: x.clamp(max=1),
    "clamp-min": lambda x: x.clamp(min=1),
    "clamp-nan": lambda x: x.clamp(min=NAN),
    "clamp-zero": lambda x: x.clamp(min=0),
    "cos": lambda x: torch.cos(x * 1e-9),
    "cumsum": lambda x: x.cumsum(0),
    "divide": lambda x: x / 3,
    "elu": lambda x: F.elu(x.clamp(min=1e-30)),
    "equal": lambda x: x == 1,
    "erf": torch.erf,
    "exp": torch.exp,
    "expand": lambda x: x[:, None].expand(COUNT, 2) + 0,
    "flip": lambda x: x.flip(0),
    "floor": torch.floor,
    "floor-divide": lambda x: x // 3,
    "fmod": lambda x: torch.fmod(x, 3),
    "frac": torch.frac,
    "full_like": lambda x: torch.full_like(x, 1),
    "greater": lambda x: x > 16777216,
    "hardshrink": F.hardshrink,
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "hardtanh": F.hardtanh,
    "isfinite": torch.isfinite,
    "isinf": torch.isinf,
    "isnan": torch.isnan,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "less": lambda x: x < 2,
    "log": torch.log,
    "log10": torch.log10,
    "log2": torch.log2,
    "logical_not": torch.logical_not,
    "max_pool": lambda x: F.max_pool1d(x.view(1, 1, -1), 2),
    "minus": lambda x: 5 - x,
    "modulo": lambda x: x % 3,
    "multiply": lambda x: x * 3,
    "multiply-fraction": lambda x: x * 1.5,
    "nan_to_num": torch.nan_to_num,
    "neg": torch.neg,
    "not-equal": lambda x: x != 1,
    "pad": lambda x: F.pad(x, (1, 2)),
    "plus": lambda x: x + 16777217,
    "pow-2": lambda x: x**2,
    "pow-3": lambda x: x**3,
    "pow-half": lambda x: x**0.5,
    "prod-of-pairs": lambda x: torch.stack([x, second(x)], -1).prod(-1),
    "reciprocal": torch.reciprocal,
    "relu": F.relu,
    "relu6": F.relu6,
    "remainder": lambda x: torch.remainder(x, -3),
    "repeat": lambda x: x.repeat(2),
    "round": torch.round,
    "rsqrt": torch.rsqrt,
    "select": lambda x: rows(x)[1] * 2,
    "shift-left": lambda x: x << 1,
    "shift-right": lambda x: x >> 1,
    "sigmoid": torch.sigmoid,
    "sign": torch.sign,
    "sgn": torch.sgn,
    "signbit": torch.signbit,
    "silu": F.silu,
    "sin": lambda x: torch.sin(x * 1e-9),
    "softplus": lambda x: F.softplus(x.clamp(min=-20)),
    "softshrink": F.softshrink,
    "softsign": F.softsign,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "sum-of-integers": lambda x: (rows(x) > 1).sum(1) + (x > 0).sum(),
    "tanh": torch.tanh,
    "threshold": lambda x: F.threshold(x, 0.2, 3),
    "to-bool": lambda x: x.bool(),
    "to-double": lambda x: x.double(),
    "to-float": lambda x: x.float(),
    "to-long": lambda x: x.nan_to_num(0, 1, -1).clamp(-1e6, 1e6).long(),
    "transpose": lambda x: rows(x).t() + 0,
    "trunc": torch.trunc,
    "where": lambda x: torch.where(x > 1, x, -x),
}

BINARY: dict[str, Binary] = {
    "add": torch.add,
    "add-scaled": lambda x, y: torch.add(x, y, alpha=3),
    "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or,
    "bitwise_xor": torch.bitwise_xor,
    "cat": lambda x, y: torch.cat([x, y]),
    "clamp-tensors": lambda x, y: x.clamp(y, y),
    "compare-and-multiply": lambda x, y: (x > y) * x,
    "copysign": torch.copysign,
    "div": torch.div,
    "div-trunc": lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="trunc"),
    "eq": torch.eq,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "ge": torch.ge,
    "gt": torch.gt,
    "le": torch.le,
    "logical_and": torch.logical_and,
    "logical_or": torch.logical_or,
    "logical_xor": torch.logical_xor,
    "lt": torch.lt,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": torch.mul,
    "ne": torch.ne,
    "outer": lambda x, y: x[:, None] * y[None],
    "sub": lambda x, y: x - y,
    "where": lambda x, y: torch.where(x < y, x, y),
}
