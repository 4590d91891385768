"""Owns what operations on numbers compute in interpreted GPU code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def unsigned(value: Any) -> Any:
    """Return integers or truth values as unsigned integers of the same bits."""
    value = np.asarray(value)
    return value.view(np.dtype(f"u{value.dtype.itemsize}"))


def _of_unsigned(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: function(unsigned(a), unsigned(b)).astype(np.asarray(a).dtype)


def _truncated(a: Any, b: Any) -> Any:
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(
        np.result_type(a, b)
    )


def _fma(a: Any, b: Any, c: Any) -> Any:
    wide = np.asarray(a, np.float64) * b + c
    return wide.astype(np.result_type(a))


def _fma_of_doubles(a: Any, b: Any, c: Any) -> Any:
    """a * b + c of doubles, whose product is kept in two parts (Dekker, Knuth)."""
    a, b, c = (np.asarray(value, np.float64) for value in (a, b, c))
    a_high, b_high = (np.float64(2**27 + 1) * value for value in (a, b))
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + (
        a_low * b_low
    )
    total = product + c
    back = total - product
    lost_in_sum = (product - (total - back)) + (c - back)
    return np.where(np.isfinite(total), total + (lost_in_sum + lost), total)


def _exp2(x: Any) -> Any:
    return np.exp2(np.asarray(x, np.float64)).astype(np.result_type(x))


def bf16_bits(value: Any) -> Any:
    """Return the bits of numbers of single precision, rounded to bf16."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(value), 0x7FC0, rounded).astype(np.uint16)


INTEGER_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
    6: lambda a, b: unsigned(a) < unsigned(b),
}
FLOAT_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
    6: lambda a, b: (a < b) | (a > b),
    7: lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    9: lambda a, b: ~(a <= b),
    10: lambda a, b: ~(a < b),
    11: lambda a, b: ~(a >= b),
    12: lambda a, b: ~(a > b),
    13: lambda a, b: a != b,
    14: lambda a, b: np.isnan(a) | np.isnan(b),
}
PURE: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.andi": np.bitwise_and,
    "arith.divf": np.divide,
    "arith.divsi": _truncated,
    "arith.divui": _of_unsigned(np.floor_divide),
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.maxsi": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.minnumf": np.fmin,
    "arith.minsi": np.minimum,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.negf": np.negative,
    "arith.ori": np.bitwise_or,
    "arith.remsi": lambda a, b: a - b * _truncated(a, b),
    "arith.remui": _of_unsigned(np.remainder),
    "arith.select": np.where,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _of_unsigned(np.right_shift),
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
    "arith.xori": np.bitwise_xor,
}
INTRINSICS: dict[str, Callable[..., Any]] = {
    "llvm.copysign.f32": np.copysign,
    "llvm.amdgcn.exp2.f32": _exp2,
    "llvm.exp2.f32": _exp2,
    "llvm.fabs.f32": np.abs,
    "llvm.fabs.f64": np.abs,
    "llvm.floor.f32": np.floor,
    "llvm.fma.f32": _fma,
    "llvm.fma.f64": _fma_of_doubles,
    "llvm.maxnum.f32": np.fmax,
    "llvm.minnum.f32": np.fmin,
    "llvm.nvvm.ex2.approx.ftz.f": _exp2,
    "llvm.sqrt.f32": np.sqrt,
}
