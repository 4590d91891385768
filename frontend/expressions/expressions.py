"""Owns expressions: Python values that a hit computes anew from lifted reads."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from magweld.frontend.expressions.bounds import (
    Bounds,
    bounds_of,
    bounds_of_result,
    is_total,
)
from magweld.frontend.state.nodes import Kind, Node, Where
from magweld.frontend.state.python_operators import (
    BINARY,
    COMPARISONS,
    UNARY,
    functions,
)
from magweld.frontend.state.values import exact, text_of_scalar

# Types whose values can be lifted; subclasses may have operators of their own.
NUMBERS: Final = frozenset({bool, int, float})
_SHOWN_DEPTH: Final = 5


@dataclass(frozen=True, eq=False)
class Literal:
    """A value that is the same on every call."""

    value: Any

    @property
    def bounds(self) -> Bounds | None:
        """The value itself, if it is a number."""
        return bounds_of(self.value)


@dataclass(frozen=True, eq=False)
class Leaf:
    """A lifted read.

    Attributes:
        source: What is read; hashable.
        value: What it was in the recorded run.
        text: The read as the user knows it.
        serial: Number of the expression; operands have smaller numbers.
        bounds: Between which it is on every call, if that is known.
    """

    source: Any
    value: Any
    text: str
    serial: int
    bounds: Bounds | None = None


@dataclass(frozen=True, eq=False)
class Operation:
    """A native function of other expressions.

    Attributes:
        function: The function; it has no effects and looks at nothing else.
        operands: What it is called with.
        value: What it returned in the recorded run.
        serial: Number of the expression; operands have smaller numbers.
        bounds: Between which it is on every call, if that is known.
    """

    function: Callable[..., Any]
    operands: tuple[Expression, ...]
    value: Any
    serial: int
    bounds: Bounds | None

    @property
    def is_total(self) -> bool:
        """Whether it has this type on every call whose operands can be computed."""
        values = [operand.value for operand in self.operands]
        known = [operand.bounds for operand in self.operands]
        return self.function is pack or is_total(self.function, values, known)


Expression = Literal | Leaf | Operation


def pack(*items: Any) -> tuple[Any, ...]:
    """Return the arguments as a tuple."""
    return items


class Expressions:
    """Makes expressions; equal ones are one object."""

    def __init__(self) -> None:
        self._known: dict[Any, Leaf | Operation] = {}
        self._serials = itertools.count()

    def leaf(
        self, source: Any, value: Any, text: str, bounds: Bounds | None = None
    ) -> Leaf:
        """Return the leaf for a source."""
        known = self._known.get(source)
        if known is None:
            known = Leaf(source, value, text, next(self._serials), bounds)
            self._known[source] = known
        assert isinstance(known, Leaf), "a source is no key of an operation"
        return known

    def find_leaf(self, source: Any) -> Leaf | None:
        """Return the leaf for a source if there is one."""
        known = self._known.get(source)
        return known if isinstance(known, Leaf) else None

    def find(
        self, function: Callable[..., Any], operands: Sequence[Expression]
    ) -> Expression | None:
        """Return `function(*operands)` if it was made before."""
        return self._known.get((function, tuple(map(_identity, operands))))

    def leaves(self) -> list[Leaf]:
        """Return all leaves."""
        return [known for known in self._known.values() if isinstance(known, Leaf)]

    def apply(
        self, function: Callable[..., Any], operands: Sequence[Expression], value: Any
    ) -> Expression:
        """Return `function(*operands)`, a literal if all operands are."""
        if all(isinstance(operand, Literal) for operand in operands):
            return Literal(value)
        key = (function, tuple(map(_identity, operands)))
        known = self._known.get(key)
        if known is None:
            serial = next(self._serials)
            bounds = bounds_of_result(function, [one.bounds for one in operands])
            known = Operation(function, tuple(operands), value, serial, bounds)
            self._known[key] = known
        return known


def _identity(operand: Expression) -> Any:
    return exact(operand.value) if isinstance(operand, Literal) else id(operand)


def topological(expressions: Iterable[Expression]) -> list[Leaf | Operation]:
    """Return all parts of some expressions, operands first."""
    found: dict[int, Leaf | Operation] = {}
    work = list(expressions)
    while work:
        expression = work.pop()
        if isinstance(expression, Literal) or expression.serial in found:
            continue
        found[expression.serial] = expression
        if isinstance(expression, Operation):
            work += expression.operands
    return [found[serial] for serial in sorted(found)]


_OF_SIZES: Final = frozenset({operator.add, operator.mul, operator.sub})


def is_of_sizes(expression: Expression) -> bool:
    """Return whether an expression is sums and products of sizes and numbers."""
    return all(
        isinstance(part.source, SizeSource)
        if isinstance(part, Leaf)
        else part.function in _OF_SIZES
        for part in topological([expression])
    )


_INFIX: Final = {**functions(BINARY), **functions(COMPARISONS)}
_FORMS: Final[dict[Any, str]] = {
    **{function: f"({{}} {symbol} {{}})" for symbol, function in _INFIX.items()},
    **{function: f"{symbol}{{}}" for symbol, function in functions(UNARY).items()},
    operator.not_: "not {}",
    operator.truth: "bool({})",
}


def text_of(expression: Expression, depth: int = _SHOWN_DEPTH) -> str:
    """Return an expression as text, cut off where it is deep."""
    if isinstance(expression, Literal):
        return text_of_scalar(expression.value)
    if isinstance(expression, Leaf):
        return expression.text
    if depth == 0:
        return "..."
    parts = [text_of(operand, depth - 1) for operand in expression.operands]
    form = _FORMS.get(expression.function)
    if form is not None:
        return form.format(*parts)
    name = "" if expression.function is pack else _name_of(expression.function)
    return f"{name}({', '.join(parts)})"


def _name_of(function: Any) -> str:
    module = "math." if getattr(math, function.__name__, None) is function else ""
    return f"{module}{function.__name__}"


Slot = tuple[int, Kind, Any]


class ArgumentSource(NamedTuple):
    """An argument of the call: "args" or "kwargs", and its key."""

    holder: str
    key: Any


class EdgeSource(NamedTuple):
    """A guarded read of the RefGraph, by its slot."""

    slot: Slot


class SizeSource(NamedTuple):
    """A size of a tensor: of a graph input, or of the tensor of a graph node."""

    of: Any
    dim: int


class ValueSource(NamedTuple):
    """A number that follows from graph inputs, as a predicate would guard it.

    Attributes:
        compute: Computes it from the tensors; each read of a value has its own.
        nodes: The inputs.
    """

    compute: Callable[..., Any]
    nodes: tuple[Node, ...]


class InductionSource(NamedTuple):
    """The number that an iteration of a followed loop began with."""

    loop: int
    iteration: int


class StridesSource(NamedTuple):
    """The strides of a graph input."""

    of: Node


@dataclass(frozen=True)
class Condition:
    """What must hold of an expression on every hit.

    Attributes:
        expression: The expression.
        expected: Its value, compared by type and bits; a class is compared by identity.
        where: The user's instruction that relied on it.
    """

    expression: Expression
    expected: Any
    where: Where | None
