"""Owns guards on expressions, and their computation in a guard program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from magweld.frontend.expressions.expressions import (
    Condition,
    Expression,
    Leaf,
    Literal,
    text_of,
    topological,
)
from magweld.frontend.guards import emit
from magweld.frontend.guards.guard import Category, shown
from magweld.frontend.guards.listing import Listing, Test
from magweld.frontend.state.values import is_scalar


class ExpressionWriter:
    """Writes expressions into a guard program, each part once."""

    def __init__(self, program: Listing, leaf: Callable[[Any], str]) -> None:
        """Begin with no expression.

        Args:
            leaf: Returns what fetches a lifted read.
        """
        self._program = program
        self._leaf = leaf
        self._variables: dict[Expression, str] = {}

    def condition(self, condition: Condition) -> None:
        """Guard an expression."""
        program, expected = self._program, condition.expected
        statements = self._compute([condition.expression])
        value = self.value(condition.expression)
        if is_scalar(expected):
            test = emit.scalar_is(program.names, value, expected)
        elif type(expected) is tuple:
            test = f"{value} == {program.names.constant(expected)}"
        else:
            test = f"{value} is {program.names.constant(expected)}"
        text = text_of(condition.expression)
        program.guard(
            Category.EXPRESSION,
            text,
            f"== {shown(expected)}",
            condition.where,
            *statements,
            test=Test(test, value),
        )

    def values(self, expressions: Iterable[Expression]) -> None:
        """Compute the expressions that a hit needs."""
        needed: Sequence[Expression] = list(expressions)
        statements = self._compute(needed)
        if statements:
            text = ", ".join(map(text_of, needed))
            self._program.guard(
                Category.EXPRESSION, text, "can be computed", None, *statements
            )

    def value(self, expression: Expression) -> str:
        """Return the variable of an expression that has been computed."""
        if isinstance(expression, Literal):
            return self._program.names.literal(expression.value)
        return self._variables[expression]

    def _compute(self, expressions: Sequence[Expression]) -> list[str]:
        statements = []
        names = self._program.names
        for part in topological(expressions):
            if part in self._variables:
                continue
            if isinstance(part, Leaf):
                value = self._leaf(part.source)
            else:
                operands = [self.value(operand) for operand in part.operands]
                value = emit.call(names.constant(part.function), *operands)
            variable = f"e{part.serial}"
            self._variables[part] = variable
            statements.append(f"{variable} = {value}")
        return statements
