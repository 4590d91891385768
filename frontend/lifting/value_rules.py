"""Owns operators on lifted values: arithmetic, comparisons, truth tests, subscripts."""

from __future__ import annotations

import dis
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Final

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    Expression,
    Literal,
    Operation,
    Slot,
    pack,
)
from magweld.frontend.lifting.moves import Moves, moved
from magweld.frontend.lifting.shadow import Link, Shadow, Step, elements_met, kind_of
from magweld.frontend.lifting.stack_rules import claim_part
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.mro import ABSENT, find_in_mro
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.python_operators import (
    BINARY,
    COMPARISONS,
    functions,
    methods_of,
)

_BINARY: Final = functions(BINARY)
_COMPARE: Final = functions(COMPARISONS)
_UNARY: Final[dict[str, Callable[..., Any]]] = {
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_POSITIVE": operator.pos,
    "UNARY_INVERT": operator.invert,
    "UNARY_NOT": operator.not_,
    "TO_BOOL": operator.truth,
}


def evaluate(
    lifting: Lifting,
    function: Callable[..., Any],
    values: tuple[Any, ...],
    lifted: tuple[Expression | None, ...],
    result: Any,
) -> Expression | None:
    """Return the expression of a function of numbers, None if it is none."""
    if not all(type(value) in NUMBERS for value in (*values, result)):
        return None
    operands = [
        Literal(value) if expression is None else expression
        for value, expression in zip(values, lifted, strict=True)
    ]
    return lifting.compute(function, operands, result)


def begin_binary(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BINARY_OP: a class may have an operator of its own, written in Python."""
    symbols: Any = dis._nb_ops  # type: ignore[attr-defined]
    symbol = symbols[step.row.arg][1]
    name = BINARY[symbol.removesuffix("=")]
    forward = [f"__{name}__"]
    if symbol.endswith("="):
        forward.insert(0, f"__i{name}__")
    _link_operator(step, stack, forward, f"__r{name}__")
    if symbol == "+=" and type(stack[-2]) is list:
        step.moves = Moves(shadow.lifting)
        step.moves.call(operator.iadd, tuple(stack[-2:]), {})


def begin_compare(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """COMPARE_OP: a class may have a comparison of its own."""
    forward, reflected = methods_of(step.row.argval)
    _link_operator(step, stack, [forward], reflected)


def _link_operator(
    step: Step, stack: list[Any], forward: list[str], reflected: str
) -> None:
    left, right = stack[-2:]
    if not step.operands or (type(left) in NUMBERS) == (type(right) in NUMBERS):
        return
    swapped = type(left) in NUMBERS
    obj = right if swapped else left
    lifted = (None, step.peek(1 if swapped else 0))
    for name in [reflected] if swapped else forward:
        method = find_in_mro(type(obj), name)
        if method is not ABSENT:
            if type(method) is FunctionType:
                step.link = Link(id(method), (), {}, lifted, {})
            return


def binary_op(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BINARY_OP."""
    symbols: Any = dis._nb_ops  # type: ignore[attr-defined]
    symbol = symbols[step.row.arg][1].removesuffix("=")
    function = _BINARY.get(symbol)
    if step.moves is not None:
        step.moves.finish(shadow, step, stack)
    elif builtin_base(stack[-1]) in (list, tuple):
        moved(shadow, step, stack, function, *step.before[-2:])
    else:
        _apply(shadow, step, stack, function, 2)


def _apply(
    shadow: Shadow,
    step: Step,
    stack: list[Any],
    function: Callable[..., Any] | None,
    count: int,
) -> None:
    if not step.operands or function is None:
        return
    lifted = tuple(step.peek(count - 1 - index) for index in range(count))
    values = tuple(step.before[-count:])
    expression = evaluate(shadow.lifting, function, values, lifted, stack[-1])
    if expression is not None:
        step.operands.clear()
        if not isinstance(expression, Literal):
            shadow.push(stack, expression)


def unary_op(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """UNARY_NEGATIVE and its kin."""
    _apply(shadow, step, stack, _UNARY[step.row.opname], 1)


def compare_op(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """COMPARE_OP: numbers, or tuples of numbers."""
    function = _COMPARE[step.row.argval]
    if step.reads and not step.operands:
        _compare_tuples(shadow, step, stack, function)
    else:
        _apply(shadow, step, stack, function, 2)


def _compare_tuples(
    shadow: Shadow, step: Step, stack: list[Any], function: Any
) -> None:
    lifting, both = shadow.lifting, step.before[-2:]
    methods = methods_of(step.row.argval)
    sides = [packed(lifting, side, methods, step.reads) for side in both]
    if type(stack[-1]) is not bool or not all(map(_is_ordered, sides)):
        return
    operands = [side for side in sides if side is not None]
    for side in operands:
        _require_order(lifting, side)
    shadow.push(stack, lifting.make.apply(function, operands, stack[-1]))
    for held in both:
        step.forget(held)


def _is_ordered(side: Expression | None) -> bool:
    """Return whether a side is a tuple of numbers that are equal to themselves."""
    return side is not None and all(item == item for item in side.value)


def _require_order(lifting: Lifting, side: Expression) -> None:
    """Demand that no number that a hit computes for a tuple is a NaN.

    Tuples find a NaN equal to itself if it is one object. The program may have computed
    two where a hit computes one.
    """
    items = side.operands if isinstance(side, Operation) else ()
    for item in items:
        if isinstance(item, Operation) and type(item.value) is float:
            lifting.require(lifting.make.apply(operator.eq, (item, item), True))


def packed(
    lifting: Lifting,
    obj: Any,
    methods: Sequence[str],
    reads: Sequence[tuple[Slot, Expression]],
) -> Expression | None:
    """Return the expression of a tuple of numbers, None for anything else.

    Args:
        methods: Special methods that have to be those of `tuple`.
        reads: What the instruction has read, also of tuples from before the run.
    """
    if builtin_base(obj) is not tuple:
        return None
    if any(find_in_mro(type(obj), name) is not vars(tuple)[name] for name in methods):
        return None
    items = tuple(tuple.__iter__(obj))
    if not all(type(item) in NUMBERS for item in items):
        return None
    met = elements_met(obj, len(items), reads)
    operands = [
        met.get(index) or lifting.at(obj, Kind.INDEX, index) or Literal(item)
        for index, item in enumerate(items)
    ]
    return lifting.make.apply(pack, operands, items)


def is_op(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """IS_OP: objects of different types are never one, whatever their values."""
    if kind_of(step.before[-1]) is not kind_of(step.before[-2]):
        step.operands.clear()


def contains_op(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """CONTAINS_OP: a dict is asked for its keys, its values do not matter."""
    container = step.before[-1]
    if type(container) is dict:
        step.forget(container)


def test(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """POP_JUMP_IF_TRUE, POP_JUMP_IF_FALSE: the truth is all that matters."""
    expression = step.take(0)
    if expression is not None:
        shadow.lifting.truth(expression, bool(step.before[-1]))


def test_or_pop(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """JUMP_IF_TRUE_OR_POP, JUMP_IF_FALSE_OR_POP: a jump keeps the value."""
    expression = step.peek(0)
    test(shadow, step, stack)
    if len(stack) == len(step.before):
        shadow.push(stack, expression)


def subscript(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BINARY_SUBSCR: an element, or a part of a tuple."""
    container, key = step.before[-2:]
    if type(key) is not slice:
        claim_part(shadow, step, stack, container, key)
    else:
        moved(shadow, step, stack, operator.getitem, container, key)


def binary_slice(shadow: Shadow, step: Step, stack: list[Any]) -> None:
    """BINARY_SLICE of 3.12: container, start, stop."""
    container, start, stop = step.before[-3:]
    moved(shadow, step, stack, operator.getitem, container, slice(start, stop))
