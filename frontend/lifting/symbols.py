"""Owns the translation of symbolic sizes into expressions over what a hit can read."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from magweld.frontend.expressions.expressions import Expression, Expressions, Literal


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
        make: Makes the expressions.
        symbols: What each symbol stands for, by name.
    """

    def __init__(self, make: Expressions, symbols: Mapping[str, Expression]) -> None:
        self._make = make
        self._symbols = symbols

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
        return self._call(name, expression.args)

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
