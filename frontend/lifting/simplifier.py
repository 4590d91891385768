"""Owns the final form of expressions: pinned ones are literals, leaves are replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from magweld.frontend.expressions.expressions import (
    ArgumentSource,
    EdgeSource,
    Expression,
    InductionSource,
    Leaf,
    Literal,
    Operation,
    topological,
)

if TYPE_CHECKING:
    from magweld.frontend.lifting.state import Lifting

Resolve = Callable[[Leaf], Expression]


class Simplifier:
    """Rewrites expressions: pinned ones are literals, leaves are replaced."""

    def __init__(self, lifting: Lifting, resolve: Resolve) -> None:
        self._lifting = lifting
        self._resolve = resolve
        self._known: dict[Expression, Expression] = {}

    def __call__(self, expression: Expression) -> Expression:
        """Return the simplified form of an expression."""
        if isinstance(expression, Literal):
            return expression
        for part in topological([expression]):
            if part not in self._known:
                self._known[part] = self._simplify(part)
        return self._known[expression]

    def subject(self, expression: Expression) -> Expression:
        """Return the form of a pinned expression, whose pin may not be assumed.

        A pinned argument or read of state comes back as a literal: it is guarded like
        any other.
        """
        self(expression)
        if isinstance(expression, Operation):
            return self._rebuild(expression)
        assert isinstance(expression, Leaf), "literals are not pinned"
        kinds = (ArgumentSource, EdgeSource, InductionSource)
        if isinstance(expression.source, kinds):
            return Literal(expression.value)
        return self._resolved(expression)

    def _simplify(self, part: Leaf | Operation) -> Expression:
        if part in self._lifting.pinned:
            return Literal(part.value)
        if isinstance(part, Operation):
            return self._rebuild(part)
        return self._resolved(part)

    def _resolved(self, leaf: Leaf) -> Expression:
        found = self._resolve(leaf)
        # A size may follow from a number that follows from other sizes.
        return found if found is leaf else self(found)

    def _rebuild(self, part: Operation) -> Expression:
        operands = [self._known.get(operand, operand) for operand in part.operands]
        return self._lifting.make.apply(part.function, operands, part.value)
