"""Owns functions of which only what halves can hold is kept: shorter arithmetic."""

from __future__ import annotations

import math as numbers
from functools import cache

from magweld.bindings import arith, ir, llvm, math
from magweld.passes.cpu.emit_math import ERF_HIGH, LOG2_E, Lanes
from magweld.passes.cpu.polynomials import Coefficients, interpolate, minus_log_erfc
from magweld.passes.ir.utils import users_of

# Degree of the exponent over its argument: 2^-16 of erf and of 1 - |erf|.
_DEGREE = 6
# Below this erf is a multiple of its argument, but for 2^-15.6 of it.
_LINEAR = 2.0**-7
_SLOPE_AT_ZERO = 2 / numbers.sqrt(numbers.pi)
_HALF_BITS = 16


def is_rounded_to_halves(value: ir.Value) -> bool:
    """Tell whether a value of `emit_half_erf` is used for numbers of 16 bits alone.

    Products keep its relative error. A sum of the value itself with 1 or -1 keeps that
    of what it leaves; of a multiple of it, or of such a sum, it may leave anything.
    What else is computed with it is not known.
    """
    users = users_of(value)
    return bool(users) and all(
        (_is_sum_with_unit(user) and _is_multiplied(user.result)) or _keeps_error(user)
        for user in users
    )


def _is_multiplied(value: ir.Value) -> bool:
    """Tell whether products of a value are all that is rounded to 16 bits of it."""
    users = users_of(value)
    return bool(users) and all(map(_keeps_error, users))


def _keeps_error(op: ir.OpView) -> bool:
    if isinstance(op, arith.TruncFOp):
        return bool(ir.FloatType(op.out.type).width == _HALF_BITS)
    return isinstance(op, arith.MulFOp) and _is_multiplied(op.result)


def _is_sum_with_unit(op: ir.OpView) -> bool:
    return isinstance(op, arith.AddFOp) and any(map(_is_unit, op.operands))


def _is_unit(value: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument):
        return False
    owner = value.owner.opview
    return isinstance(owner, arith.ConstantOp) and abs(owner.literal_value) == 1.0


@cache
def _exponent() -> Coefficients:
    """log2(1 - erf(x)) / x on 0 <= x <= 4, of few terms."""
    exact = minus_log_erfc()

    def slope(x: float) -> float:
        total = 0.0
        for coefficient in reversed(exact):
            total = total * x + coefficient
        return -LOG2_E * total

    return interpolate(slope, 0.0, ERF_HIGH, _DEGREE)


def emit_half_erf(x: ir.Value) -> ir.Value:
    """Error function, as 1 - 2^q(|x|) by one instruction, with the sign of x.

    Its relative error is 2^-15, and so is that of 1 - |erf(x)| but for the rounding of
    erf to f32.
    """
    of = Lanes(x)
    size = math.AbsFOp(x).result
    bounded = of.at_most(size, ERF_HIGH)
    exponent = of.mul(bounded, of.polynomial(bounded, _exponent()))
    type_ = exponent.type
    power = llvm.CallIntrinsicOp(type_, f"llvm.exp2.{type_}", [exponent], [], [])
    far = of.sub(of.real(1.0), power.results_)
    near = of.mul(size, of.real(_SLOPE_AT_ZERO))
    result = of.pick(of.test("OLT", size, of.real(_LINEAR)), near, far)
    return math.CopySignOp(result, x).result
