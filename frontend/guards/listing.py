"""Owns the text of a guard function: one line for each condition, and its constants.

Conditions on the call itself return a failure. All others, most of which nobody tests
while versions stay, are an `assert`, which is short: its message is what was there
instead, and the line of the exception tells which condition it is.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, NamedTuple

from magweld.frontend.expressions.expressions import (
    Condition,
    Expression,
    Leaf,
    Literal,
    text_of,
    topological,
)
from magweld.frontend.guards import emit
from magweld.frontend.guards.guard import (
    FILENAME,
    Category,
    Failure,
    Guard,
    line_of,
    shown,
)
from magweld.frontend.guards.versions import UNCHANGED
from magweld.frontend.state.nodes import PlaceTexts, Where
from magweld.frontend.state.values import is_scalar

# A function with fewer conditions on reads is not divided: that takes a call more.
_LONG: Final = 64
_HEAD: Final = "def guards(args, kwargs, everything=False):"


class Test(NamedTuple):
    """The last statement of a guard, which fails unless a condition holds.

    Attributes:
        condition: The condition.
        value: What to show then, if anything.
    """

    condition: str
    value: str = ""

    def asserted(self) -> str:
        """Return the statement that raises."""
        shown = f", {self.value}" if self.value else ""
        return f"assert {self.condition}{shown}"

    def returned(self, function: str, number: int) -> str:
        """Return the statement that returns the result of a function."""
        shown = f", {self.value}" if self.value else ""
        return f"if not ({self.condition}): return {function}({number}{shown})"


class Listing:
    """A guard function under construction.

    Attributes:
        names: Its constants.
        guards: Its conditions so far.
        covered: Numbers of those that the versions of dicts make unnecessary.
        reads_begin: Number of the first condition on what was read; the ones before are
            tested first in any case.
        reads_end: Number of the first condition behind what was read; None if nothing
            is divided.
    """

    def __init__(self) -> None:
        self.names = emit.Names()
        # First: its name is to be the same whatever follows.
        self._failure = self.names.constant(Failure)
        self.guards: list[Guard] = []
        self.covered: set[int] = set()
        self.reads_begin: int | None = None
        self.reads_end: int | None = None
        # Variables of the reads that are used behind them.
        self._handed_on: dict[str, None] = {}
        self._setups: list[str] = []
        self._tests: list[Test | None] = []
        self._places = PlaceTexts()

    def guard(
        self,
        category: Category,
        path: str,
        expected: str,
        where: Where | None,
        *setup: str,
        test: Test | None = None,
        lifts: tuple[str, type] | None = None,
        data: tuple[str, ...] = (),
    ) -> None:
        """Append one condition: simple statements and the test behind them."""
        at = "" if where is None else self._places.of(where)
        self.guards.append(Guard(category, path, expected, at, lifts, data))
        self._setups.append("; ".join(setup))
        self._tests.append(test)

    def end_reads(self) -> None:
        """Take note that all conditions on what was read are there."""
        self.reads_end = len(self.guards)

    def hand_on(self, variable: str) -> str:
        """Return a variable, which a condition behind those on reads may use."""
        if self.reads_end is not None:
            self._handed_on[variable] = None
        return variable

    def compile(self, result: Sequence[str]) -> tuple[Callable[..., Any], str]:
        """Return the function `(args, kwargs, everything=False)` and its source.

        Args:
            result: What a success returns, as a list; or all variables if `everything`.
        """
        values = f"[{', '.join(result)}]"
        lines = self._lines(f"return locals() if everything else {values}")
        source = "\n".join(lines)
        end = self.reads_end or 0
        if end < _LONG or not self._handed_on:
            return _compile(source, self.names.values), source
        return self._divided(lines, values, end), source

    def _divided(
        self, lines: Sequence[str], values: str, end: int
    ) -> Callable[..., Any]:
        """Return the function as two: one for the reads, one for what follows.

        The first one is the same for records that have read the same, whatever sizes
        and numbers they are for, so its code is there.
        """
        handed_on = ", ".join(self._handed_on)
        place = line_of(end) - 2
        leave = f" return locals() if everything else ({handed_on},)"
        first = "\n".join([*lines[:place], leave])
        body = [*lines[place:-1], f" return {values}"]
        second = "\n".join([f"def guards({handed_on}):", *body])
        constants = self.names.values
        return _in_turn(
            _compile(first, constants), _compile(second, constants, place, ())
        )

    def rest(self, result: Sequence[str]) -> Callable[[dict[str, Any]], Any]:
        """Return what compiles the conditions that versions do not answer for.

        It takes the values of variables that the other conditions would compute, and
        `UNCHANGED`, which tells whether the versions are those of these values.
        """
        undecided = f"if not {UNCHANGED}(): return None"
        leave = f"return [{', '.join(result)}]"
        # Nothing that outlives the recording may hold on to the objects of the run.
        constants = self.names.values

        @functools.cache
        def source() -> str:
            return "\n".join(self._lines(leave, undecided, self.covered))

        def compile_rest(variables: dict[str, Any]) -> Callable[..., Any]:
            return _compile(source(), {**constants, **variables})

        return compile_rest

    def _lines(
        self, leave: str, undecided: str = "", without: Container[int] = ()
    ) -> list[str]:
        begin = len(self.guards) if self.reads_begin is None else self.reads_begin
        lines = [_HEAD]
        for number in range(len(self.guards)):
            # There is a line for something else before the line of each guard.
            before, line = undecided if number == begin else "", ""
            if number < begin:
                before, line = self._early(number)
            elif number not in without:
                line = self._late(number)
            lines += (f" {before}", f" {line}")
        lines.append(f" {leave}")
        end = line_of(len(self.guards))
        assert len(lines) == end - 1, "lines tell the numbers of guards"
        return lines

    def _early(self, number: int) -> tuple[str, str]:
        setup, test = self._setups[number], self._tests[number]
        if test is None:
            return "", setup
        return setup, test.returned(self._failure, number)

    def _late(self, number: int) -> str:
        setup, test = self._setups[number], self._tests[number]
        if test is None:
            return setup
        return f"{setup}; {test.asserted()}" if setup else test.asserted()


_DEFAULTS: Final = (False,)  # of `everything`


def _compile(
    source: str,
    constants: dict[str, Any],
    line: int = 1,
    defaults: tuple[Any, ...] = _DEFAULTS,
) -> Callable[..., Any]:
    # A code object of its own: the interpreter keeps in it what it learns of constants.
    code = _code_of(source).replace(co_firstlineno=line)
    return types.FunctionType(code, constants, argdefs=defaults)


def _in_turn(
    first: Callable[..., Any], second: Callable[..., Any]
) -> Callable[..., Any]:
    def run(
        args: Sequence[Any], kwargs: dict[str, Any], everything: bool = False
    ) -> Any:
        taken = first(args, kwargs, everything)
        return second(*taken) if type(taken) is tuple else taken

    return run


# Code is kept for so many texts: those of the records that were made last.
_KEPT: Final = 16


@functools.lru_cache(maxsize=_KEPT)
def _code_of(source: str) -> types.CodeType:
    """Return the code of a guard function.

    Records of one program that differ in sizes alone have one text, and compiling it
    takes long.
    """
    # Asserts are the guards: no option of the interpreter may leave them out.
    module = compile(source, FILENAME, "exec", dont_inherit=True, optimize=0)
    (code,) = (item for item in module.co_consts if isinstance(item, types.CodeType))
    return code


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

    def operands(
        self, expressions: Sequence[Expression]
    ) -> tuple[list[str], list[str]]:
        """Return the statements that compute expressions, and their variables."""
        statements = self._compute(expressions)
        return statements, list(map(self.value, expressions))

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
