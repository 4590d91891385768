"""Owns functions of f64 that lose accuracy near zero when they are put together.

Upstream lowers `expm1` to e^x - 1 and `log1p` to ln(1 + x), whose roundings are all
that is left near zero. Multiplied by x / ln(e^x), and by x / ((1 + x) - 1), they cancel
(Kahan; Higham, Accuracy and Stability of Numerical Algorithms, section 1.14.1).
"""

from __future__ import annotations

from collections.abc import Callable

from magweld.bindings import arith, ir, math
from magweld.passes.cpu.emit_vectors import splat

_INFINITY = float("inf")


def emit_double_expm1(x: ir.Value) -> ir.Value:
    """e^x - 1."""
    power = math.ExpOp(x).result
    less = arith.SubFOp(power, _real(x, 1.0)).result
    scaled = arith.MulFOp(less, x).result
    result = arith.DivFOp(scaled, math.LogOp(power).result).result
    result = _pick(less, -1.0, less, result)
    result = _pick(power, _INFINITY, power, result)
    return _pick(power, 1.0, x, result)


def emit_double_log1p(x: ir.Value) -> ir.Value:
    """ln(1 + x)."""
    more = arith.AddFOp(x, _real(x, 1.0)).result
    scaled = arith.MulFOp(math.LogOp(more).result, x).result
    kept = arith.SubFOp(more, _real(x, 1.0)).result
    result = arith.DivFOp(scaled, kept).result
    result = _pick(x, _INFINITY, x, result)
    return _pick(more, 1.0, x, result)


def _real(like: ir.Value, number: float) -> ir.Value:
    return splat(like.type, ir.FloatAttr.get_f64(number))


def _pick(
    tested: ir.Value, number: float, value: ir.Value, other: ir.Value
) -> ir.Value:
    """Return one value where another is a number, and a third elsewhere."""
    equal = arith.CmpFOp(arith.CmpFPredicate.OEQ, tested, _real(tested, number)).result
    return arith.SelectOp(equal, value, other).result


DOUBLE_EXPANSIONS: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.expm1": emit_double_expm1,
    "math.log1p": emit_double_log1p,
}
