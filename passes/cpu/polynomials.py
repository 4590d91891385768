"""Owns the polynomials behind math functions: computed here, not copied from tables.

Each function is interpolated in double precision at Chebyshev points of its reduced
interval (Trefethen, Approximation Theory and Approximation Practice, chapter 4) and
converted to monomials. The error is within a small factor of the best polynomial's,
far below the rounding of an evaluation in single precision. What is interpolated is
what is left after the leading terms, which must be exact, have been taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

Coefficients = tuple[float, ...]

LN2 = math.log(2.0)
# ln 2 in two parts: products of the first, which has 12 significant bits, with the
# exponents of single precision are exact (Cody and Waite's reduction).
LN2_HIGH = math.floor(LN2 * 2.0**12) / 2.0**12
LN2_LOW = LN2 - LN2_HIGH

# Below this the difference to the leading terms is summed as a series, since
# subtracting them would cancel.
_SERIES_BELOW = 0.1
_SERIES_TERMS = 24


def interpolate(
    function: Callable[[float], float], low: float, high: float, degree: int
) -> Coefficients:
    """Return the coefficients of the interpolating polynomial, constant term first."""

    def on_points(points: np.ndarray) -> np.ndarray:
        return np.array([function(float(x)) for x in points])

    fit = np.polynomial.Chebyshev.interpolate(on_points, degree, domain=[low, high])
    monomials = fit.convert(kind=np.polynomial.Polynomial)
    return tuple(float(c) for c in monomials.coef)


@cache
def exp_tail() -> Coefficients:
    """(e^r - 1 - r) / r^2 on |r| <= ln(2)/2."""

    def tail(r: float) -> float:
        if abs(r) < _SERIES_BELOW:
            terms = range(_SERIES_TERMS)
            return math.fsum(r**k / math.factorial(k + 2) for k in terms)
        return (math.expm1(r) - r) / (r * r)

    return interpolate(tail, -LN2 / 2, LN2 / 2, 4)


@cache
def exp2_tail() -> Coefficients:
    """(2^r - 1) / r on |r| <= 1/2."""

    def tail(r: float) -> float:
        return math.expm1(r * LN2) / r if r else LN2

    return interpolate(tail, -0.5, 0.5, 6)


@cache
def log1p_tail() -> Coefficients:
    """(ln(1+f) - f + f^2/2) / f^3 on sqrt(1/2) <= 1+f <= sqrt(2)."""

    def tail(f: float) -> float:
        if abs(f) < _SERIES_BELOW:
            terms = range(_SERIES_TERMS)
            return math.fsum((-f) ** k / (k + 3) for k in terms)
        return (math.log1p(f) - f + f * f / 2) / f**3

    return interpolate(tail, math.sqrt(0.5) - 1, math.sqrt(2.0) - 1, 9)


@cache
def minus_log_erfc() -> Coefficients:
    """-ln(1 - erf(x)) / x on 0 <= x <= 4."""

    def slope(x: float) -> float:
        if x < _SERIES_BELOW**3:
            # The first two terms of the quotient's series.
            return 2 / math.sqrt(math.pi) + 2 * x / math.pi
        # Near 0, erfc loses what erf has; far from 0 the other way round.
        near = x < 0.5
        return -(math.log1p(-math.erf(x)) if near else math.log(math.erfc(x))) / x

    return interpolate(slope, 0.0, 4.0, 10)


# Sixteen parts of 0 <= x < 4 around the middles 0, 1/3.875, ..., 15/3.875: behind the
# end, 1 is the nearest number to erf(x).
ERF_PARTS_PER_UNIT = 3.875
ERF_END = 4.0 - 2.0**-21


@cache
def erf_parts() -> tuple[Coefficients, ...]:
    """erf(x) / x around sixteen middles, of the distance counted in parts."""

    def around(middle: int) -> Coefficients:
        def quotient(distance: float) -> float:
            x = (middle + distance) / ERF_PARTS_PER_UNIT
            return math.erf(x) / x if x else 2 / math.sqrt(math.pi)

        found = interpolate(quotient, -0.5, 0.5, degree)
        # The quotient is even: what is zero at the end is not told.
        return (*found, *[0.0] * (degree + 1 - len(found)))

    degree = 5
    return tuple(map(around, range(16)))


@cache
def tanh_tail() -> Coefficients:
    """(tanh(x) / x - 1) / x^2 as a polynomial of x^2, on |x| <= 0.625."""

    def tail(square: float) -> float:
        x = math.sqrt(square)
        if x < _SERIES_BELOW:
            # tanh(x) = x - x^3/3 + 2x^5/15 - 17x^7/315 + 62x^9/2835 - ...
            series = (-1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925)
            return math.fsum(c * square**k for k, c in enumerate(series))
        return (math.tanh(x) / x - 1) / square

    return interpolate(tail, 0.0, 0.625**2, 5)


# Sixteen parts of 0 <= x < 9.02, around the multiples of 1/2: all but the last are half
# as wide as that on either side. Behind the end, 1 is the nearest number to tanh(x).
TANH_PARTS_PER_UNIT = 2.0
TANH_LAST_PART = 15.0
TANH_END = 9.02


@cache
def tanh_parts() -> tuple[Coefficients, ...]:
    """tanh(x) around sixteen middles, of the distance counted in parts."""
    degree = 7

    def around(middle: int) -> Coefficients:
        def value(distance: float) -> float:
            return math.tanh((middle + distance) / TANH_PARTS_PER_UNIT)

        is_last = middle == TANH_LAST_PART
        end = TANH_END * TANH_PARTS_PER_UNIT - middle if is_last else 0.5
        return interpolate(value, -0.5, end, degree)

    return (_tanh_around_zero(degree), *map(around, range(1, 16)))


def _tanh_around_zero(degree: int) -> Coefficients:
    """tanh(x) of the first part, exact to the last place also where it is small."""

    def quotient(distance: float) -> float:
        x = distance / TANH_PARTS_PER_UNIT
        return math.tanh(x) / distance if x else 1 / TANH_PARTS_PER_UNIT

    return (0.0, *interpolate(quotient, -0.5, 0.5, degree - 1))


# Wider than a quarter turn: reduced arguments leave it by what the second part of
# 2/pi adds.
_EIGHTH = math.pi / 4 * 1.07


@cache
def sine_tail() -> Coefficients:
    """(sin(r) - r) / r^3 as a polynomial of r^2, on an eighth of a turn."""
    return _alternating_tail(3, 3)


@cache
def cosine_tail() -> Coefficients:
    """(cos(r) - 1 + r^2/2) / r^4 as a polynomial of r^2, on an eighth of a turn."""
    return _alternating_tail(4, 3)


def _alternating_tail(power: int, degree: int) -> Coefficients:
    """The series of the sine or cosine from r^power on, over r^power."""
    sign = -1 if power % 4 in (2, 3) else 1

    def tail(square: float) -> float:
        terms = range(_SERIES_TERMS)
        return math.fsum(
            sign * (-square) ** k / math.factorial(2 * k + power) for k in terms
        )

    return interpolate(tail, 0.0, _EIGHTH**2, degree)


# More than the largest offset, a quotient below four and two doubles.
_PI_BITS = 320


@cache
def _scaled_pi() -> int:
    """The floor of 2^320 pi, by Machin's formula."""
    guard = 32
    one = 1 << (_PI_BITS + guard)

    def arctan_of_inverse(x: int) -> int:
        power, total, k = one // x, 0, 0
        while power:
            total += (-1) ** k * (power // (2 * k + 1))
            power //= x * x
            k += 1
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239)) >> guard


def two_over_pi(offset: int) -> tuple[float, float]:
    """Return 2^offset 2/pi modulo 4 as a sum of two doubles.

    Args:
        offset: From 0 to 100.
    """
    digits = (2 << (2 * _PI_BITS + offset)) // _scaled_pi()
    rest = digits % (4 << _PI_BITS)
    high = rest / (1 << _PI_BITS)
    over, under = high.as_integer_ratio()
    return high, (rest * under - (over << _PI_BITS)) / (under << _PI_BITS)
