"""Owns the functions of gates on vectors of floats: exp, sigmoid and tanh.

Errors are a few units in the last place of a number between 0 and 1; of a tanh near
zero that is more of its own last place.
"""

from __future__ import annotations

from math import factorial, log
from typing import Any, Final

from llvmlite import ir

from magweld.codegen.emitter import INT, Emitter

# Beyond these exp is no normal number.
_LEAST: Final = -87.0
_MOST: Final = 88.0
# A sum with this is rounded to an integer, which its last bits are.
_ROUNDER: Final = 12582912.0
# ln 2, in a part whose multiples by integers are exact, and the rest.
_HIGH: Final = 0.693359375
_LOW: Final = log(2) - _HIGH
# exp of at most ln 2 / 2 to within 1e-8 of itself.
_TERMS: Final = 8
_EXPONENT_BITS: Final = 23


def exp(code: Emitter, value: Any) -> Any:
    """Return e to the power of a vector; the least and most float beyond its range."""
    builder = code.builder
    x = _limited(code, value)
    rounder = code.spread(_ROUNDER)
    rounded = code.fma(x, code.spread(1 / log(2)), rounder)
    count = builder.fsub(rounded, rounder)
    rest = code.fma(count, code.spread(-_HIGH), x)
    rest = code.fma(count, code.spread(-_LOW), rest)
    result = code.spread(1 / factorial(_TERMS - 1))
    for power in reversed(range(_TERMS - 1)):
        result = code.fma(result, rest, code.spread(1 / factorial(power)))
    words = ir.VectorType(INT, code.lanes)
    shift = ir.Constant(words, [_EXPONENT_BITS] * code.lanes)
    exponent = builder.shl(builder.bitcast(rounded, words), shift)
    scaled = builder.bitcast(
        builder.add(builder.bitcast(result, words), exponent), code.vector
    )
    is_none = builder.fcmp_unordered("uno", value, value)
    return builder.select(is_none, value, scaled)


def _limited(code: Emitter, value: Any) -> Any:
    builder = code.builder
    least, most = code.spread(_LEAST), code.spread(_MOST)
    value = builder.select(builder.fcmp_ordered("<", value, least), least, value)
    return builder.select(builder.fcmp_ordered(">", value, most), most, value)


def sigmoid(code: Emitter, value: Any) -> Any:
    """Return 1 / (1 + exp(-value))."""
    one = code.spread(1.0)
    opposite = code.builder.fsub(code.spread(-0.0), value)
    return code.builder.fdiv(one, code.builder.fadd(one, exp(code, opposite)))


def tanh(code: Emitter, value: Any) -> Any:
    """Return 1 - 2 / (1 + exp(2 value))."""
    one, two = code.spread(1.0), code.spread(2.0)
    power = exp(code, code.builder.fmul(value, two))
    part = code.builder.fdiv(two, code.builder.fadd(one, power))
    return code.builder.fsub(one, part)
