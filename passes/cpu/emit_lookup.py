"""Owns math functions by polynomials whose coefficients a register looks up.

An instruction of AVX-512 picks one of sixteen numbers of a register for each lane. The
range of a function is cut into as many parts, each with a short polynomial.
The error of erf is at most 2.5 units in the last place, that of tanh 1.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from magweld.bindings import arith, ir, llvm, math
from magweld.passes.cpu import polynomials
from magweld.passes.cpu.emit_math import ROUNDER, Lanes
from magweld.passes.cpu.emit_vectors import (
    broadcast,
    lane,
    lanes_of,
    shuffle,
    table,
)

LANES = 16
# Takes the lowest bits of an integer for the place of a number.
_PICK = "llvm.x86.avx512.permvar.sf.512"


def emit_erf(x: ir.Value) -> ir.Value:
    """Error function, as the product of |x| and a quotient, with the sign of x."""
    return by_registers(x, _erf)


def _erf(x: ir.Value) -> ir.Value:
    of = Lanes(x)
    size = of.at_most(math.AbsFOp(x).result, polynomials.ERF_END)
    scale = of.real(polynomials.ERF_PARTS_PER_UNIT)
    shifted = of.fma(size, scale, of.real(ROUNDER))
    quotient = _of_part(of, size, scale, shifted, polynomials.erf_parts())
    result = of.at_most(of.mul(size, quotient), 1.0)
    return math.CopySignOp(result, x).result


def emit_tanh(x: ir.Value) -> ir.Value:
    """Hyperbolic tangent of |x|, with the sign of x."""
    return by_registers(x, _tanh)


def _tanh(x: ir.Value) -> ir.Value:
    of = Lanes(x)
    size = of.at_most(math.AbsFOp(x).result, polynomials.TANH_END)
    scale = of.real(polynomials.TANH_PARTS_PER_UNIT)
    shifted = of.fma(size, scale, of.real(ROUNDER))
    shifted = of.at_most(shifted, ROUNDER + polynomials.TANH_LAST_PART)
    # The rest is exact, as the scale is a power of two.
    result = _of_part(of, size, scale, shifted, polynomials.tanh_parts())
    return math.CopySignOp(of.at_most(result, 1.0), x).result


def _of_part(
    of: Lanes,
    size: ir.Value,
    scale: ir.Value,
    shifted: ir.Value,
    parts: Sequence[Sequence[float]],
) -> ir.Value:
    """Evaluate the polynomial of the part that a number lies in.

    Args:
        of: The lanes.
        size: The number.
        scale: How many parts there are in a unit.
        shifted: The scaled number plus `ROUNDER`: the nearest middle of a part is a
            number in the lowest bits.
        parts: Coefficients of each part, of the distance from its middle.
    """
    middle = of.sub(shifted, of.real(ROUNDER))
    rest = of.fma(size, scale, arith.NegFOp(middle).result)
    return _polynomial(of, rest, of.bits(shifted), parts)


def _polynomial(
    of: Lanes, x: ir.Value, part: ir.Value, parts: Sequence[Sequence[float]]
) -> ir.Value:
    """Evaluate one of sixteen polynomials for each lane by Horner's rule."""
    total: ir.Value | None = None
    for row in reversed(list(zip(*parts, strict=True))):
        numbers = table(of.float, row)
        call = llvm.CallIntrinsicOp(of.float, _PICK, [numbers, part], [], [])
        picked: ir.Value = call.results_
        total = picked if total is None else of.fma(total, x, picked)
    assert total is not None, "a polynomial has a coefficient"
    return total


def by_registers(
    x: ir.Value, emit: Callable[[ir.Value], ir.Value], fewest: int = LANES
) -> ir.Value:
    """Emit a function of up to sixteen lanes for any power of two of them.

    Args:
        x: The argument.
        emit: Makes the function.
        fewest: How many lanes that needs.
    """
    lanes = lanes_of(x)
    if fewest <= lanes <= LANES:
        return emit(x)
    if lanes == 1:
        return lane(emit(broadcast(x, fewest)), 0)
    if lanes < fewest:
        wide = shuffle(x, x, [k % lanes for k in range(fewest)])
        result = emit(wide)
        return shuffle(result, result, range(lanes))
    half = lanes // 2
    low, high = (shuffle(x, x, range(k, k + half)) for k in (0, half))
    first, second = (by_registers(part, emit, fewest) for part in (low, high))
    return shuffle(first, second, range(lanes))
