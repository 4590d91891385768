"""Owns powers in single precision: what few exponents stand for, and all others.

Bound of the error of `emit_pow` over all of single precision: 1 unit in the last place,
which tests/gpu/test_math.py measures. Special operands give what IEEE 754 says of pow.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from magweld.bindings import arith, ir, math, vector
from magweld.passes.cpu.emit_math import DOUBLE_MANTISSA_BITS, Lanes

# Adding it leaves the integer part, to the nearest, in the low bits of the significand.
_ROUNDER = 1.5 * 2.0**52
# 2^t is 0 or infinity in single precision behind these.
_LOW, _HIGH = -160.0, 130.0
# Terms of the series of log2 and of 2^r: errors are below 2^-34.
_LOG_TERMS = 7
_EXP_TERMS = 10


def expand_constant_power(op: math.PowFOp) -> bool:
    """Replace a power whose exponent is one of few constants; tell whether it was."""
    base, power = op.operation.operands
    expansion = _POWERS.get(_constant(power))
    if expansion is None:
        return False
    with ir.InsertionPoint(op), op.location:
        op.result.replace_all_uses_with(expansion(base))
    op.operation.erase()
    return True


def emit_pow(base: ir.Value, power: ir.Value) -> ir.Value:
    """base^power of scalars, as 2^(power * log2 |base|) in double precision."""
    of, wide = Lanes(base), Lanes(base, width=64)
    size = math.AbsFOp(base).result
    logarithm = _log2(wide, arith.ExtFOp(wide.float, size).result)
    exponent = wide.mul(arith.ExtFOp(wide.float, power).result, logarithm)
    value = arith.TruncFOp(of.float, _exp2(wide, exponent)).result
    one, zero = of.real(1.0), of.real(0.0)
    # The logarithm of 1 is 0, and 0 times infinity no number.
    value = of.pick(of.test("OEQ", size, one), one, value)
    floor = math.FloorOp(power).result
    whole = of.test("OEQ", floor, power)
    half = of.mul(power, of.real(0.5))
    odd = of.test("ONE", math.FloorOp(half).result, half)
    odd = arith.AndIOp(odd, whole).result
    value = of.pick(odd, math.CopySignOp(value, base).result, value)
    finite = of.test("OLT", size, of.real(float("inf")))
    negative = arith.AndIOp(of.test("OLT", base, zero), finite).result
    fraction = of.test("UNE", floor, power)
    nowhere = arith.AndIOp(negative, fraction).result
    nan = of.real(float("nan"))
    value = of.pick(nowhere, nan, value)
    known = of.test("ORD", base, power)
    value = of.pick(known, value, nan)
    trivial = of.test("OEQ", power, zero)
    trivial = arith.OrIOp(trivial, of.test("OEQ", base, one)).result
    return of.pick(trivial, one, value)


def _log2(of: Lanes, x: ir.Value) -> ir.Value:
    """The binary logarithm of a double that is not negative."""
    root = of.bits(of.real(0.5**0.5))
    # Bits counted from those of sqrt(1/2): the exponent field is then e.
    above = arith.SubIOp(of.bits(x), root).result
    count = arith.ShRSIOp(above, of.whole(DOUBLE_MANTISSA_BITS)).result
    field = arith.ShLIOp(count, of.whole(DOUBLE_MANTISSA_BITS)).result
    mantissa = of.from_bits(arith.SubIOp(of.bits(x), field).result)
    one = of.real(1.0)
    ratio = of.div(of.sub(mantissa, one), of.add(mantissa, one))
    # log2 m = 2/ln 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1).
    series = [2 / numbers.log(2) / (2 * k + 1) for k in range(_LOG_TERMS)]
    tail = of.mul(ratio, of.polynomial(of.mul(ratio, ratio), series))
    value = of.add(arith.SIToFPOp(of.float, count).result, tail)
    infinity = of.real(float("inf"))
    value = of.pick(of.test("OEQ", x, infinity), infinity, value)
    return of.pick(of.test("OEQ", x, of.real(0.0)), of.real(-float("inf")), value)


def _exp2(of: Lanes, t: ir.Value) -> ir.Value:
    """2^t as a double, in the range of single precision; NaN gives any number."""
    t = of.at_least(of.at_most(t, _HIGH), _LOW)
    rounder = of.real(_ROUNDER)
    shifted = of.add(t, rounder)
    count = arith.SubIOp(of.bits(shifted), of.bits(rounder)).result
    rest = of.sub(t, of.sub(shifted, rounder))
    series = [numbers.log(2) ** k / numbers.factorial(k) for k in range(_EXP_TERMS)]
    return of.mul(of.polynomial(rest, series), of.power_of_two(count))


def _constant(value: ir.Value) -> float | None:
    """Return the number that a scalar or all lanes of a vector are known to be."""
    if isinstance(value, ir.BlockArgument):
        return None
    owner = value.owner.opview
    if isinstance(owner, vector.BroadcastOp):
        return _constant(owner.operation.operands[0])
    if not isinstance(owner, arith.ConstantOp):
        return None
    number = owner.value
    if isinstance(number, ir.DenseElementsAttr):
        number = number.get_splat_value() if number.is_splat else None
    return number.value if isinstance(number, ir.FloatAttr) else None


def _multiply(a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.MulFOp(a, b).result


def _square(base: ir.Value) -> ir.Value:
    return _multiply(base, base)


# What torch computes for these exponents; others are left to pow.
_POWERS: dict[float | None, Callable[[ir.Value], ir.Value]] = {
    0.5: lambda base: math.SqrtOp(base).result,
    1.0: lambda base: base,
    2.0: _square,
    3.0: lambda base: _multiply(_square(base), base),
    4.0: lambda base: _square(_square(base)),
}
