"""Owns what operations on numbers compute in interpreted GPU code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _unsigned(value: Any) -> Any:
    value = np.asarray(value)
    return value.view(np.dtype(f"u{value.dtype.itemsize}"))


def _truncated(a: Any, b: Any) -> Any:
    return (np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(
        np.result_type(a, b)
    )


def _fma(a: Any, b: Any, c: Any) -> Any:
    wide = np.asarray(a, np.float64) * b + c
    return wide.astype(np.result_type(a))


def _exp2(x: Any) -> Any:
    return np.exp2(np.asarray(x, np.float64)).astype(np.result_type(x))


INTEGER_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    0: lambda a, b: a == b,
    1: lambda a, b: a != b,
    2: lambda a, b: a < b,
    3: lambda a, b: a <= b,
    4: lambda a, b: a > b,
    5: lambda a, b: a >= b,
    6: lambda a, b: _unsigned(a) < _unsigned(b),
}
FLOAT_TESTS: dict[int, Callable[[Any, Any], Any]] = {
    1: lambda a, b: a == b,
    2: lambda a, b: a > b,
    3: lambda a, b: a >= b,
    4: lambda a, b: a < b,
    5: lambda a, b: a <= b,
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
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.negf": np.negative,
    "arith.remsi": lambda a, b: a - b * _truncated(a, b),
    "arith.select": np.where,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.subf": np.subtract,
    "arith.subi": np.subtract,
}
INTRINSICS: dict[str, Callable[..., Any]] = {
    "llvm.copysign.f32": np.copysign,
    "llvm.exp2.f32": _exp2,
    "llvm.fabs.f32": np.abs,
    "llvm.floor.f32": np.floor,
    "llvm.fma.f32": _fma,
    "llvm.sqrt.f32": np.sqrt,
}
