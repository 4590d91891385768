"""Owns powers in single precision: what few exponents stand for, and all others.

Bound of the error of `emit_pow` over all of single precision: 1 unit in the last place,
which tests/gpu/test_math.py measures. Special operands give what IEEE 754 says of pow.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from magweld.bindings import arith, ir, math, vector
from magweld.passes.cpu.emit_math import Lanes
from magweld.passes.cpu.emit_vectors import splat

_DOUBLE_BITS = 52
_DOUBLE_BIAS = 1023
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
    of = Lanes(base)
    size = math.AbsFOp(base).result
    exponent = arith.MulFOp(_wide(power), _log2(size)).result
    value = arith.TruncFOp(of.float, _exp2(exponent)).result
    one, zero = of.real(1.0), of.real(0.0)
    # The logarithm of 1 is 0, and 0 times infinity no number.
    value = of.pick(of.test("OEQ", size, one), one, value)
    whole = of.test("OEQ", math.FloorOp(power).result, power)
    half = of.mul(power, of.real(0.5))
    odd = of.test("ONE", math.FloorOp(half).result, half)
    odd = arith.AndIOp(odd, whole).result
    value = of.pick(odd, math.CopySignOp(value, base).result, value)
    finite = of.test("OLT", size, of.real(float("inf")))
    negative = arith.AndIOp(of.test("OLT", base, zero), finite).result
    fraction = arith.CmpFOp(arith.CmpFPredicate.UNE, math.FloorOp(power).result, power)
    nowhere = arith.AndIOp(negative, fraction.result).result
    nan = of.real(float("nan"))
    value = of.pick(nowhere, nan, value)
    known = of.test("ORD", base, power)
    value = of.pick(known, value, nan)
    trivial = of.test("OEQ", power, zero)
    trivial = arith.OrIOp(trivial, of.test("OEQ", base, one)).result
    return of.pick(trivial, one, value)


def _log2(size: ir.Value) -> ir.Value:
    """The binary logarithm of a number that is not negative, as a double."""
    x = _wide(size)
    root = _bits(_real(0.5**0.5))
    # Bits counted from those of sqrt(1/2): the exponent field is then e.
    above = arith.SubIOp(_bits(x), root).result
    count = arith.ShRSIOp(above, _long(_DOUBLE_BITS)).result
    field = arith.ShLIOp(count, _long(_DOUBLE_BITS)).result
    mantissa = _from_bits(arith.SubIOp(_bits(x), field).result)
    one = _real(1.0)
    above_one = arith.SubFOp(mantissa, one).result
    ratio = arith.DivFOp(above_one, arith.AddFOp(mantissa, one).result).result
    square = arith.MulFOp(ratio, ratio).result
    # log2 m = 2/ln 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1).
    series = [2 / numbers.log(2) / (2 * k + 1) for k in range(_LOG_TERMS)]
    tail = arith.MulFOp(ratio, _polynomial(square, series)).result
    exponent = arith.SIToFPOp(ir.F64Type.get(), count).result
    value = arith.AddFOp(exponent, tail).result
    infinity = _real(float("inf"))
    value = _pick("OEQ", x, infinity, infinity, value)
    return _pick("OEQ", x, _real(0.0), _real(-float("inf")), value)


def _exp2(t: ir.Value) -> ir.Value:
    """2^t as a double, in the range of single precision; NaN gives any number."""
    t = _pick("OGT", t, _real(_HIGH), _real(_HIGH), t)
    t = _pick("OLT", t, _real(_LOW), _real(_LOW), t)
    rounder = _real(_ROUNDER)
    shifted = arith.AddFOp(t, rounder).result
    count = arith.SubIOp(_bits(shifted), _bits(rounder)).result
    rest = arith.SubFOp(t, arith.SubFOp(shifted, rounder).result).result
    series = [numbers.log(2) ** k / numbers.factorial(k) for k in range(_EXP_TERMS)]
    biased = arith.AddIOp(count, _long(_DOUBLE_BIAS)).result
    power = _from_bits(arith.ShLIOp(biased, _long(_DOUBLE_BITS)).result)
    return arith.MulFOp(_polynomial(rest, series), power).result


def _polynomial(x: ir.Value, coefficients: list[float]) -> ir.Value:
    total = _real(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = math.FmaOp(total, x, _real(coefficient)).result
    return total


def _pick(
    predicate: str, a: ir.Value, b: ir.Value, yes: ir.Value, no: ir.Value
) -> ir.Value:
    test = arith.CmpFOp(arith.CmpFPredicate[predicate], a, b).result
    return arith.SelectOp(test, yes, no).result


def _wide(value: ir.Value) -> ir.Value:
    return arith.ExtFOp(ir.F64Type.get(), value).result


def _real(number: float) -> ir.Value:
    return splat(ir.F64Type.get(), ir.FloatAttr.get_f64(number))


def _long(number: int) -> ir.Value:
    kind = ir.IntegerType.get_signless(64)
    return splat(kind, ir.IntegerAttr.get(kind, number))


def _bits(value: ir.Value) -> ir.Value:
    return arith.BitcastOp(ir.IntegerType.get_signless(64), value).result


def _from_bits(value: ir.Value) -> ir.Value:
    return arith.BitcastOp(ir.F64Type.get(), value).result


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
