"""Owns what native functions make of all numbers in a container or of a generator."""

from __future__ import annotations

import math
import operator
from typing import Any, Final

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    Expression,
    Literal,
    pack,
)
from magweld.frontend.lifting.shadow import Shadow
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.state.nodes import Kind

# They make one number of all, and of two integers at a time.
_PAIRWISE: Final[dict[Any, Any]] = {
    sum: operator.add,
    math.prod: operator.mul,
    min: min,
    max: max,
}
_TESTING: Final = (any, all)
REDUCING: Final[tuple[Any, ...]] = (*_PAIRWISE, *_TESTING, sorted)


def reduce(
    shadow: Shadow,
    stack: list[Any],
    function: Any,
    operands: list[Expression],
    advances: bool,
) -> bool:
    """Follow a function that has run; return whether what it gives is known.

    Args:
        stack: On top what it has given.
        operands: The numbers that it has taken.
        advances: Whether a generator has given them, which stays where it is then.
    """
    lifting, made = shadow.lifting, stack[-1]
    values = tuple(one.value for one in operands)
    if any(type(value) not in NUMBERS for value in values):
        return False
    if advances and function in _TESTING:
        # The generator has run up to here, on a hit it must as well.
        for one in operands:
            lifting.truth(one, bool(one.value))
    elif function is sorted:
        _sort(lifting, operands, values, made)
    elif type(made) in NUMBERS:
        found = _number(lifting, function, operands, made)
        shadow.push(stack, None if isinstance(found, Literal) else found)
    else:
        return False
    return True


def _sort(
    lifting: Lifting,
    operands: list[Expression],
    values: tuple[Any, ...],
    made: list[Any],
) -> None:
    """Have the elements of a new list lie there that a hit sorts."""
    numbers = lifting.make.apply(pack, operands, values)
    # The program may change the list.
    whole = lifting.compute(sorted, (numbers,), [*made])
    for index, value in enumerate(made):
        place = (whole, Literal(index))
        one = lifting.compute(operator.getitem, place, value)
        lifting.place(made, Kind.INDEX, index, one)


def _number(
    lifting: Lifting, function: Any, operands: list[Expression], made: Any
) -> Expression:
    pair, values = _PAIRWISE.get(function), tuple(one.value for one in operands)
    if pair is None or {*map(type, values)} != {int}:
        numbers = lifting.make.apply(pack, operands, values)
        return lifting.compute(function, (numbers,), made)
    # Torch has symbols for what two integers give.
    found = operands[0]
    for one in operands[1:]:
        found = lifting.compute(pair, (found, one), pair(found.value, one.value))
    return found
