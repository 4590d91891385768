"""Owns math functions in single precision as straight arithmetic on any lanes.

Bounds of the error over all of single precision, in units in the last place, which
tests/cpu/test_math_functions.py measures against double precision: exp 1.5, exp2 1,
expm1 2, log 1, log2 1.5, log1p 2, erf 4, tanh 2, rsqrt 1.5. Infinities, NaN,
signed zeros and subnormal numbers are those of IEEE 754.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import arith, ir, math
from magweld.passes.cpu import polynomials
from magweld.passes.cpu.emit_vectors import lanes_of, splat, with_lanes

LOG2_E = 1.0 / polynomials.LN2
# Adding it to a number below 2^22 leaves the number's integer part in the low bits
# of the significand, rounded to nearest: a conversion that NaN does not break.
ROUNDER = 1.5 * 2.0**23
MANTISSA_BITS = 23
EXPONENT_BIAS = 127
DOUBLE_MANTISSA_BITS = 52
_FORMATS = {
    32: (MANTISSA_BITS, EXPONENT_BIAS),
    64: (DOUBLE_MANTISSA_BITS, 1023),
}
MIN_NORMAL = 2.0**-126
# e^x is 0 or infinity behind these, and 2^n stays a product of two normal numbers.
EXP_LOW, EXP_HIGH = -104.0, 89.0
EXP2_LOW, EXP2_HIGH = -151.0, 129.0
# -1 is the nearest number to e^x - 1 below this.
EXPM1_LOW = -20.0
# 1 is the nearest number to erf(x) from here on, and to tanh(x).
ERF_HIGH, TANH_HIGH = 4.0, 10.0
TANH_SPLIT = 0.625


class Lanes:
    """Arithmetic on values of one shape: f32 or f64, or a vector of it.

    Args:
        like: A value of the shape, of any element type.
        width: Bits of an element, 32 or 64.
    """

    def __init__(self, like: ir.Value, width: int = 32) -> None:
        lanes = lanes_of(like)
        self._real = ir.F32Type.get() if width == 32 else ir.F64Type.get()
        self._whole = ir.IntegerType.get_signless(width)
        self._mantissa_bits, self._exponent_bias = _FORMATS[width]
        self.float = with_lanes(self._real, lanes)
        self.int = with_lanes(self._whole, lanes)

    def real(self, number: float) -> ir.Value:
        """Return a constant."""
        return splat(self.float, ir.FloatAttr.get(self._real, number))

    def whole(self, number: int) -> ir.Value:
        """Return an integer constant."""
        return splat(self.int, ir.IntegerAttr.get(self._whole, number))

    def fma(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        """Return a * b + c, rounded once."""
        return math.FmaOp(a, b, c).result

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a + b."""
        return arith.AddFOp(a, b).result

    def sub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a - b."""
        return arith.SubFOp(a, b).result

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a * b."""
        return arith.MulFOp(a, b).result

    def div(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return a / b."""
        return arith.DivFOp(a, b).result

    def bits(self, value: ir.Value) -> ir.Value:
        """Return the bits of a float as an integer."""
        return arith.BitcastOp(self.int, value).result

    def from_bits(self, value: ir.Value) -> ir.Value:
        """Return the float with the bits of an integer."""
        return arith.BitcastOp(self.float, value).result

    def test(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Compare floats; ordered predicates are false for NaN."""
        return arith.CmpFOp(arith.CmpFPredicate[predicate], a, b).result

    def pick(self, condition: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
        """Select lane by lane."""
        return arith.SelectOp(condition, yes, no).result

    def at_most(self, value: ir.Value, high: float) -> ir.Value:
        """Clamp from above; NaN stays."""
        bound = self.real(high)
        return self.pick(self.test("OGT", value, bound), bound, value)

    def at_least(self, value: ir.Value, low: float) -> ir.Value:
        """Clamp from below; NaN stays."""
        bound = self.real(low)
        return self.pick(self.test("OLT", value, bound), bound, value)

    def polynomial(self, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
        """Evaluate by Horner's rule, constant term first."""
        total = self.real(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, self.real(coefficient))
        return total

    def power_of_two(self, exponent: ir.Value) -> ir.Value:
        """Return 2^n for an integer n of a normal number."""
        biased = arith.AddIOp(exponent, self.whole(self._exponent_bias)).result
        field = arith.ShLIOp(biased, self.whole(self._mantissa_bits)).result
        return self.from_bits(field)

    def scale(self, value: ir.Value, exponent: ir.Value) -> ir.Value:
        """Return value * 2^n, also where 2^n alone overflows or is subnormal."""
        half = arith.ShRSIOp(exponent, self.whole(1)).result
        rest = arith.SubIOp(exponent, half).result
        scaled = self.mul(value, self.power_of_two(half))
        return self.mul(scaled, self.power_of_two(rest))

    def nearest(self, a: ir.Value, factor: float) -> tuple[ir.Value, ir.Value]:
        """Return a * factor rounded to an integer, as float and as integer."""
        rounder = self.real(ROUNDER)
        shifted = self.fma(a, self.real(factor), rounder)
        number = arith.SubIOp(self.bits(shifted), self.bits(rounder)).result
        return self.sub(shifted, rounder), number

    def reduce_exp(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return n and p with e^x = 2^n * (1 + p)."""
        _, number, p = self.parts_of_exp(x)
        return number, p

    def parts_of_exp(self, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Return n as a float, as an integer, and p with e^x = 2^n * (1 + p)."""
        count, number = self.nearest(x, LOG2_E)
        r = self.fma(count, self.real(-polynomials.LN2_HIGH), x)
        r = self.fma(count, self.real(-polynomials.LN2_LOW), r)
        tail = self.polynomial(r, polynomials.exp_tail())
        return count, number, self.fma(self.mul(r, r), tail, r)


def emit_exp(x: ir.Value) -> ir.Value:
    """e^x."""
    of = Lanes(x)
    number, p = of.reduce_exp(of.at_least(of.at_most(x, EXP_HIGH), EXP_LOW))
    return of.scale(of.add(p, of.real(1.0)), number)


def emit_exp2(x: ir.Value) -> ir.Value:
    """2^x."""
    of = Lanes(x)
    x = of.at_least(of.at_most(x, EXP2_HIGH), EXP2_LOW)
    count, number = of.nearest(x, 1.0)
    r = of.sub(x, count)
    p = of.fma(of.polynomial(r, polynomials.exp2_tail()), r, of.real(1.0))
    return of.scale(p, number)


def emit_expm1(x: ir.Value) -> ir.Value:
    """e^x - 1, accurate near 0."""
    of = Lanes(x)
    number, p = of.reduce_exp(of.at_least(of.at_most(x, EXP_HIGH), EXPM1_LOW))
    # Half of it, since 2^128 is no number: 2^(n-1) p + (2^(n-1) - 1/2).
    power = of.power_of_two(arith.SubIOp(number, of.whole(1)).result)
    half = of.fma(power, p, of.sub(power, of.real(0.5)))
    tiny = of.test("OLT", math.AbsFOp(x).result, of.real(MIN_NORMAL * 2.0**24))
    return of.pick(tiny, x, of.mul(half, of.real(2.0)))


def _split_log(of: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Return e, f and ln(1+f) with x = 2^e (1+f), 1+f near 1, for x > 0."""
    small = of.test("OLT", x, of.real(MIN_NORMAL))
    lifted = of.pick(small, of.mul(x, of.real(2.0**MANTISSA_BITS)), x)
    lost = of.pick(small, of.real(float(-MANTISSA_BITS)), of.real(0.0))
    # Bits counted from those of sqrt(1/2): the exponent field is then e.
    root = of.bits(of.real(0.5**0.5))
    above = arith.SubIOp(of.bits(lifted), root).result
    number = arith.ShRSIOp(above, of.whole(MANTISSA_BITS)).result
    field = arith.ShLIOp(number, of.whole(MANTISSA_BITS)).result
    m = of.from_bits(arith.SubIOp(of.bits(lifted), field).result)
    exponent = of.add(arith.SIToFPOp(of.float, number).result, lost)
    f = of.sub(m, of.real(1.0))
    square = of.mul(f, f)
    tail = of.polynomial(f, polynomials.log1p_tail())
    cube = of.mul(square, f)
    return exponent, f, of.fma(cube, tail, of.mul(square, of.real(-0.5)))


def _log_specials(of: Lanes, x: ir.Value, result: ir.Value) -> ir.Value:
    infinity = of.real(float("inf"))
    result = of.pick(of.test("OEQ", x, infinity), infinity, result)
    result = of.pick(of.test("OEQ", x, of.real(0.0)), of.real(-float("inf")), result)
    # Also false for NaN, which so stays NaN.
    valid = of.test("OGE", x, of.real(0.0))
    return of.pick(valid, result, of.real(float("nan")))


def emit_log(x: ir.Value) -> ir.Value:
    """Natural logarithm."""
    of = Lanes(x)
    exponent, f, tail = _split_log(of, x)
    low = of.fma(exponent, of.real(polynomials.LN2_LOW), tail)
    result = of.fma(exponent, of.real(polynomials.LN2_HIGH), of.add(low, f))
    return _log_specials(of, x, result)


def emit_log2(x: ir.Value) -> ir.Value:
    """Logarithm to base 2."""
    of = Lanes(x)
    exponent, f, tail = _split_log(of, x)
    scaled = of.fma(f, of.real(LOG2_E), of.mul(tail, of.real(LOG2_E)))
    return _log_specials(of, x, of.add(exponent, scaled))


def emit_log1p(x: ir.Value) -> ir.Value:
    """ln(1 + x), accurate near 0."""
    of = Lanes(x)
    one = of.real(1.0)
    u = of.add(one, x)
    # What the sum lost, to first order (Kahan).
    lost = of.div(of.sub(x, of.sub(u, one)), u)
    result = of.add(emit_log(u), lost)
    infinity = of.real(float("inf"))
    result = of.pick(of.test("OEQ", x, infinity), infinity, result)
    pole = of.test("OEQ", x, of.real(-1.0))
    result = of.pick(pole, of.real(-float("inf")), result)
    return of.pick(of.test("OEQ", u, one), x, result)


def emit_erf(x: ir.Value) -> ir.Value:
    """Error function, as 1 - e^-q(|x|) with the sign of x.

    With e^-q = 2^n (1 + p) that is (1 - 2^n) - 2^n p, exact to the last place also
    near 0, where n is 0.
    """
    of = Lanes(x)
    size = of.at_most(math.AbsFOp(x).result, ERF_HIGH)
    slope = of.polynomial(size, [-c for c in polynomials.minus_log_erfc()])
    number, p = of.reduce_exp(of.mul(size, slope))
    power = of.power_of_two(number)
    rest = of.sub(of.real(1.0), power)
    result = of.sub(rest, of.mul(power, p))
    return math.CopySignOp(result, x).result


def emit_tanh(x: ir.Value) -> ir.Value:
    """Hyperbolic tangent: an odd polynomial near 0, 1 - 2 / (e^2x + 1) beyond."""
    of = Lanes(x)
    square = of.mul(x, x)
    tail = of.polynomial(square, polynomials.tanh_tail())
    near = of.fma(of.mul(square, x), tail, x)
    size = math.AbsFOp(x).result
    doubled = of.mul(of.at_most(size, TANH_HIGH), of.real(2.0))
    number, p = of.reduce_exp(doubled)
    power = of.power_of_two(number)
    one = of.real(1.0)
    denominator = of.add(of.fma(power, p, power), one)
    far = of.sub(one, of.div(of.real(2.0), denominator))
    result = of.pick(of.test("OLT", size, of.real(TANH_SPLIT)), near, far)
    return math.CopySignOp(result, x).result


def emit_rsqrt(x: ir.Value) -> ir.Value:
    """1 / sqrt(x), from the exact operations."""
    of = Lanes(x)
    return of.div(of.real(1.0), math.SqrtOp(x).result)


EXPANSIONS: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.erf": emit_erf,
    "math.exp": emit_exp,
    "math.exp2": emit_exp2,
    "math.expm1": emit_expm1,
    "math.log": emit_log,
    "math.log1p": emit_log1p,
    "math.log2": emit_log2,
    "math.rsqrt": emit_rsqrt,
    "math.tanh": emit_tanh,
}
