"""Owns bounds of lifted numbers, and which functions of them raise nothing.

What a hit computes it computes for other numbers than the recorded run. Where that may
raise, as a division by a number that may be 0, the hit has to compute it, whether or
not the result is used. A function that is not listed may raise, or give another type
for other numbers of the same types, as `min` does.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Final

Bounds = tuple[float, float]
"""The least and the largest value of a number; both are finite."""

SIZES: Final[Bounds] = (0.0, 2.0**63)
NUMBERS_OF_LOOPS: Final[Bounds] = (-(2.0**63), 2.0**63)
# A sum or product of such numbers is still a float, rounded or not.
_LARGEST: Final = 1e150
_EXACT: Final = 2.0**53
_MOST_SHIFTED: Final = 256.0

_TESTS: Final = frozenset(
    {
        *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        *(operator.truth, operator.not_, bool),
    }
)
_SIGNS: Final = frozenset({operator.neg, operator.pos, operator.abs, abs})
_SUMS: Final = frozenset({operator.add, operator.sub, operator.mul})
_ON_INTEGERS: Final = frozenset(
    {
        *(operator.and_, operator.or_, operator.xor, operator.invert, operator.inv),
        *(operator.index, int, round, math.floor, math.ceil, math.trunc),
    }
)
_ROUNDED: Final = frozenset({int, round, math.floor, math.ceil, math.trunc})
_DIVISIONS: Final = frozenset({operator.truediv, operator.floordiv, operator.mod})
_SHIFTS: Final = frozenset({operator.lshift, operator.rshift})


def bounds_of(value: Any) -> Bounds | None:
    """Return the bounds of a number that is the same on every call."""
    if type(value) not in (bool, int, float):
        return None
    within = -_LARGEST <= value <= _LARGEST
    return _checked((float(value), float(value))) if within else None


def bounds_of_result(
    function: Callable[..., Any], operands: Sequence[Bounds | None]
) -> Bounds | None:
    """Return the bounds of a function of numbers, None if they are not known."""
    known = [bounds for bounds in operands if bounds is not None]
    if len(known) < len(operands) or not known:
        return None
    if function in _SIGNS and len(known) == 1:
        largest = max(map(abs, known[0]))
        return _checked((-largest, largest))
    if function in _SUMS and len(known) == 2:
        corners = [function(one, other) for one, other in product(*known)]
        return _checked((min(corners), max(corners)))
    if function in _DIVISIONS and len(known) == 2 and _excludes_zero(known[1]):
        return _quotient(function, *known)
    if function in _ROUNDED | {float} and len(known) == 1:
        (low, high) = known[0]
        return _checked((low - 1.0, high + 1.0))
    return None


def _quotient(
    function: Callable[..., Any], dividend: Bounds, divisor: Bounds
) -> Bounds | None:
    if function is operator.mod:
        return min(divisor[0], 0.0), max(divisor[1], 0.0)
    corners = [one / other for one, other in product(dividend, divisor)]
    return _checked((min(corners) - 1.0, max(corners)))


def _checked(bounds: Bounds) -> Bounds | None:
    """Return bounds that hold for integers as well, None if they are too large."""
    low, high = bounds
    if not (-_LARGEST <= low and high <= _LARGEST):
        return None
    # Larger integers have been rounded to floats; what has not been is exact.
    if abs(low) >= _EXACT:
        low = math.nextafter(low, -math.inf)
    if abs(high) >= _EXACT:
        high = math.nextafter(high, math.inf)
    return low, high


def _excludes_zero(bounds: Bounds) -> bool:
    return bounds[0] > 0 or bounds[1] < 0


def is_total(
    function: Callable[..., Any],
    operands: Sequence[Any],
    bounds: Sequence[Bounds | None],
) -> bool:
    """Return whether a function has one type and never raises, by types and bounds.

    Args:
        function: The function.
        operands: What the recorded run has called it with.
        bounds: Those of each operand, None where they are not known.
    """
    if function in _TESTS or (function in _SIGNS and len(operands) == 1):
        return True
    integers = all(type(operand) in (bool, int) for operand in operands)
    # An integer may be too large for a float.
    fit = all(
        type(operand) is float or known is not None
        for operand, known in zip(operands, bounds, strict=True)
    )
    if function in _SUMS:
        return integers or fit
    if function in _ON_INTEGERS and integers and len(operands) <= 2:
        return True
    if function is float:
        return fit
    if function in _ROUNDED:
        return len(operands) == 1 and bounds[0] is not None
    if len(operands) != 2 or bounds[1] is None:
        return False
    if function in _DIVISIONS:
        whole = integers and function is not operator.truediv
        return _excludes_zero(bounds[1]) and (whole or fit)
    if function in _SHIFTS and integers:
        return 0 <= bounds[1][0] and bounds[1][1] <= _MOST_SHIFTED
    return False
