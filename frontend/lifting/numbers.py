"""Owns numbers of a run as torch's symbolic integers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from typing import Any, Final

import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from magweld.frontend.expressions.expressions import (
    Expression,
    Leaf,
    Literal,
    Operation,
    topological,
)
from magweld.frontend.expressions.sources import SizeSource
from magweld.frontend.lifting.state import Lifting

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
        env: Owns the symbols.
        lifting: The lifted values of the run.
        shaping: Expressions that may decide about shapes; all others stay numbers.
        size: Gives the symbolic size of a tensor.
        symbols: Gets what each new symbol stands for, by name.
    """

    def __init__(
        self,
        env: ShapeEnv,
        lifting: Lifting,
        shaping: Collection[Expression],
        size: Callable[[SizeSource], Any],
        symbols: dict[str, Expression],
    ) -> None:
        self._env = env
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
        self._concrete.add(part)
        return part.value

    def _leaf(self, leaf: Leaf) -> Any:
        if isinstance(leaf.source, SizeSource):
            return self._size(leaf.source)
        if type(leaf.value) is not int:
            self._concrete.add(leaf)
            return leaf.value
        source = ConstantSource(f"number_{leaf.serial}")
        symbol = self._env.create_symbol(
            leaf.value,
            source,
            dynamic_dim=DimDynamic.DYNAMIC,
            positive=None,
            do_not_specialize_zero_one=True,
        )
        self._symbols[str(symbol)] = leaf
        return self._env.create_symintnode(symbol, hint=leaf.value, source=source)
