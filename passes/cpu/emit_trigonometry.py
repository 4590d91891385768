"""Owns sine and cosine in single precision as straight arithmetic on any lanes.

Bound of the error over all of single precision: 1.5 units in the last place, which
tests/cpu/test_math_functions.py measures. Arguments of every size are reduced alike,
in double precision: no lane takes another way than its neighbours.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable

from magweld.bindings import arith, ir, math
from magweld.passes.cpu import polynomials
from magweld.passes.cpu.emit_math import Lanes
from magweld.passes.cpu.emit_vectors import lanes_of, splat, with_lanes

# Adding it leaves the integer part, to the nearest, in the low bits of the significand.
_ROUNDER = 1.5 * 2.0**52
# Sizes of arguments, in powers of two, that share a multiple of 2/pi: their products
# with a number below 4 have an integer part that the rounder leaves room for.
_RANGE = 48
_RANGES = 4
# Between two ranges: arguments are whole multiples of the first one's power of two.
_STEP = 24
# Below this the sine is the argument.
_TINY = 2.0**-13


class _Doubles:
    """Arithmetic on as many doubles as a value has lanes."""

    def __init__(self, like: ir.Value) -> None:
        lanes = lanes_of(like)
        self.float = with_lanes(ir.F64Type.get(), lanes)
        self.long = with_lanes(ir.IntegerType.get_signless(64), lanes)

    def real(self, number: float) -> ir.Value:
        """Return a constant."""
        return splat(self.float, ir.FloatAttr.get_f64(number))

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """Return a * b + c, rounded once: all products here are operands of one."""
        return math.FmaOp(a, b, c).result

    def at_least(self, value: ir.Value, number: float) -> ir.Value:
        """Compare; false for NaN."""
        test = arith.CmpFPredicate.OGE
        return arith.CmpFOp(test, value, self.real(number)).result


def _quarter_turns(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return n and f with x = (n + f) pi/2, |f| about 1/2, n modulo 4."""
    of = _Doubles(x)
    wide = arith.ExtFOp(of.float, x).result
    size = math.AbsFOp(wide).result
    scale, high, low = (of.real(part) for part in (1.0, *polynomials.two_over_pi(0)))
    for number in range(1, _RANGES + 1):
        # 2^offset 2/pi without multiples of four: whole turns, times whole numbers.
        offset = number * _STEP
        reached = of.at_least(size, 2.0 ** (offset - _STEP + _RANGE))
        parts = (2.0**-offset, *polynomials.two_over_pi(offset))
        scale, high, low = (
            arith.SelectOp(reached, of.real(part), before).result
            for part, before in zip(parts, (scale, high, low), strict=True)
        )
    scaled = arith.MulFOp(wide, scale).result
    rounder = of.real(_ROUNDER)
    shifted = of.fma(scaled, high, rounder)
    whole = arith.SubFOp(rounder, shifted).result
    rest = of.fma(scaled, low, of.fma(scaled, high, whole))
    bits = arith.BitcastOp(of.long, shifted).result
    single = Lanes(x)
    turns = arith.TruncIOp(single.int, bits).result
    angle = arith.MulFOp(rest, of.real(numbers.pi / 2)).result
    return turns, arith.TruncFOp(single.float, angle).result


def _wave(x: ir.Value, ahead: int) -> ir.Value:
    """The sine of x and so many quarter turns."""
    of = Lanes(x)
    turns, angle = _quarter_turns(x)
    turns = arith.AddIOp(turns, of.whole(ahead)).result
    square = of.mul(angle, angle)
    cube = of.mul(square, angle)
    sine = of.fma(cube, of.polynomial(square, polynomials.sine_tail()), angle)
    tail = of.polynomial(square, polynomials.cosine_tail())
    bend = of.fma(square, tail, of.real(-0.5))
    cosine = of.fma(square, bend, of.real(1.0))
    odd = arith.AndIOp(turns, of.whole(1)).result
    is_odd = arith.CmpIOp(arith.CmpIPredicate.ne, odd, of.whole(0)).result
    value = of.pick(is_odd, cosine, sine)
    # The second bit of the quarter is the sign.
    half = arith.AndIOp(turns, of.whole(2)).result
    sign = arith.ShLIOp(half, of.whole(30)).result
    return of.from_bits(arith.XOrIOp(of.bits(value), sign).result)


def emit_sin(x: ir.Value) -> ir.Value:
    """Sine."""
    of = Lanes(x)
    tiny = of.test("OLT", math.AbsFOp(x).result, of.real(_TINY))
    return of.pick(tiny, x, _wave(x, 0))


def emit_cos(x: ir.Value) -> ir.Value:
    """Cosine."""
    return _wave(x, 1)


TRIGONOMETRY: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.cos": emit_cos,
    "math.sin": emit_sin,
}
