"""Owns symbols of sizes as expressions, and what must hold of them and of strides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from magweld.frontend.expressions.expressions import (
    Expression,
    Expressions,
    Leaf,
    Literal,
    Operation,
    SizeSource,
    pack,
    text_of,
    topological,
)
from magweld.frontend.lifting.environment import SymbolicEnvironment
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.state.nodes import Node


class NotSymbolicError(Exception):
    """The sizes of a run cannot be written as expressions."""


_CHAINS: Final[Mapping[str, Callable[..., Any]]] = {
    "Add": operator.add,
    "Mul": operator.mul,
    "Max": max,
    "Min": min,
    "And": operator.and_,
    "Or": operator.or_,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "StrictLessThan": operator.lt,
    "LessThan": operator.le,
    "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge,
    "Not": operator.not_,
    "Abs": abs,
    "Pow": operator.pow,
    "PowByNatural": operator.pow,
}


class Translator:
    """Turns expressions of sympy into expressions of Python.

    Args:
        symbols: What each symbol stands for, by name.
    """

    def __init__(self, make: Expressions, symbols: Mapping[str, Expression]) -> None:
        self._make = make
        self._symbols = symbols
        # Sizes of a run are few expressions, each of many tensors.
        self._known: dict[Any, Expression] = {}

    def __call__(self, expression: Any) -> Expression:
        """Return the translation.

        Raises:
            NotSymbolicError: It has a symbol or function without a counterpart.
        """
        if isinstance(expression, (bool, int)):
            return Literal(expression)
        name = type(expression).__name__
        if name in ("BooleanTrue", "BooleanFalse"):
            return Literal(name == "BooleanTrue")
        if expression.is_Integer:
            return Literal(int(expression))
        if expression.is_Symbol:
            return self._symbol(expression)
        known = self._known.get(expression)
        if known is None:
            known = self._known[expression] = self._call(name, expression.args)
        return known

    def _symbol(self, symbol: Any) -> Expression:
        known = self._symbols.get(symbol.name)
        if known is None:
            raise NotSymbolicError(f"symbol {symbol.name}")
        return known

    def _call(self, name: str, arguments: Sequence[Any]) -> Expression:
        operands = [self(argument) for argument in arguments]
        chain = _CHAINS.get(name)
        if chain is not None:
            result = operands[0]
            for operand in operands[1:]:
                result = self._apply(chain, result, operand)
            return result
        function = _FUNCTIONS.get(name)
        if function is None:
            raise NotSymbolicError(f"function {name}")
        return self._apply(function, *operands)

    def _apply(self, function: Callable[..., Any], *operands: Expression) -> Expression:
        value = function(*(operand.value for operand in operands))
        if type(value) not in (bool, int):
            raise NotSymbolicError(function.__name__)
        return self._make.apply(function, operands, value)


def bounds(
    lifting: Lifting, env: ShapeEnv, symbols: Mapping[str, Expression]
) -> Iterator[Expression]:
    """Yield that symbols are within what torch assumes of them.

    Args:
        symbols: What they stand for, by name.
    """
    for symbol, interval in env.var_to_range.items():
        leaf = symbols.get(symbol.name)
        if leaf is None:
            continue
        for function, bound in (
            (operator.ge, interval.lower),
            (operator.le, interval.upper),
        ):
            if bound.is_Integer:
                limit = Literal(int(bound))
                holds = function(leaf.value, limit.value)
                yield lifting.make.apply(function, (leaf, limit), holds)


def strides_hold(
    lifting: Lifting, node: Node, fake: Any, translate: Translator
) -> Expression:
    """Return that the strides of an input follow from sizes as those of a fake do."""
    strides = [
        Literal(s) if isinstance(s, int) else translate(s.node.expr)
        for s in fake.stride()
    ]
    values = tuple(stride.value for stride in strides)
    expected = lifting.make.apply(pack, strides, values)
    leaf = lifting.strides_leaf(node)
    same = tuple(leaf.value) == values
    return lifting.make.apply(operator.eq, (leaf, expected), same)


# Functions of integers that torch evaluates on symbolic sizes as Python does.
_SYMBOLIC: Final = frozenset(
    {
        *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod),
        *(operator.neg, operator.eq, operator.ne, operator.lt, operator.le),
        *(operator.gt, operator.ge, min, max),
    }
)


class SymbolicNumbers:
    """Gives expressions the form in which fake tensors take them.

    Args:
        environment: Has the symbols.
        lifting: Gets what must have the value of the run.
        shaping: Expressions that may decide about shapes; all others stay numbers.
        size: Gives the symbolic size of a tensor.
        symbols: Gets what each new symbol stands for, by name.
    """

    def __init__(
        self,
        environment: SymbolicEnvironment,
        lifting: Lifting,
        shaping: Collection[Expression],
        size: Callable[[SizeSource], Any],
        symbols: dict[str, Expression],
    ) -> None:
        self._environment = environment
        self._lifting = lifting
        self._shaping = shaping
        self._size = size
        self._symbols = symbols
        self._numbers: dict[Expression, Any] = {}
        # Numbers that vary, but not as torch's symbols do.
        self._concrete: set[Expression] = set()

    def value(self, expression: Expression) -> Any:
        """Return a number of the run, symbolic if shapes may depend on it."""
        if expression not in self._shaping:
            return expression.value
        for part in topological([expression]):
            if part not in self._numbers:
                self._numbers[part] = self._evaluate(part)
        if expression in self._concrete:
            self._lifting.pin(expression)
        return self._value(expression)

    def _value(self, expression: Expression) -> Any:
        if isinstance(expression, Literal) or expression in self._lifting.pinned:
            return expression.value
        return self._numbers[expression]

    def _evaluate(self, part: Leaf | Operation) -> Any:
        if part in self._lifting.pinned:
            return part.value
        if isinstance(part, Leaf):
            return self._leaf(part)
        operands = [self._value(operand) for operand in part.operands]
        concrete = any(operand in self._concrete for operand in part.operands)
        if not concrete:
            if not any(isinstance(operand, torch.SymInt) for operand in operands):
                return part.value
            if part.function in _SYMBOLIC and type(part.value) is int:
                return part.function(*operands)
        return self._number(part, text_of(part))

    def _number(self, part: Leaf | Operation, text: str) -> Any:
        """Return an integer of which torch knows nothing; others stay numbers."""
        if type(part.value) is not int:
            self._concrete.add(part)
            return part.value
        name, number = self._environment.number(text, part.value)
        self._symbols[name] = part
        return number

    def _leaf(self, leaf: Leaf) -> Any:
        if isinstance(leaf.source, SizeSource):
            return self._size(leaf.source)
        return self._number(leaf, leaf.text)
