"""Owns the text of a guard function: one line for each condition, and its constants.

A condition is an `assert`, whose message is what was there instead. The line of the
exception tells which condition it is.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, Final

from magweld.frontend.guards.emit import Names
from magweld.frontend.guards.guard import FILENAME, Category, Guard, line_of
from magweld.frontend.guards.versions import UNCHANGED
from magweld.frontend.state.nodes import Where

_HEAD: Final = "def guards(args, kwargs, everything=False):"


def holds(condition: str, value: str = "") -> str:
    """Return a statement that fails, showing a value, unless a condition holds."""
    return f"assert {condition}, {value}" if value else f"assert {condition}"


class Listing:
    """A guard function under construction.

    Attributes:
        names: Its constants.
        guards: Its conditions so far.
        covered: Numbers of those that the versions of dicts make unnecessary.
        reads_begin: Number of the first condition on what was read; the ones before are
            tested first in any case.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.guards: list[Guard] = []
        self.covered: set[int] = set()
        self.reads_begin: int | None = None
        self._statements: list[str] = []
        self._places: dict[tuple[int, int], str] = {}

    def guard(
        self,
        category: Category,
        path: str,
        expected: str,
        where: Where | None,
        *statements: str,
        lifts: tuple[str, type] | None = None,
    ) -> None:
        """Append one condition with its simple statements."""
        at = "" if where is None else self._place(where)
        self.guards.append(Guard(category, path, expected, at, lifts))
        self._statements.append("; ".join(statements))

    def _place(self, where: Where) -> str:
        # Many reads share an instruction, and looking its line up takes long.
        key = id(where.code), where.offset
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = str(where)
        return known

    def compile(self, result: Sequence[str]) -> Callable[..., Any]:
        """Return the function `(args, kwargs, everything=False)`.

        Args:
            result: What a success returns, as a list; or all variables if `everything`.
        """
        values = f"[{', '.join(result)}]"
        leave = f"return locals() if everything else {values}"
        return _compile(self._source(self._statements, leave), self.names.values)

    def rest(self, result: Sequence[str]) -> Callable[[dict[str, Any]], Any]:
        """Return what compiles the conditions that versions do not answer for.

        It takes the values of variables that the other conditions would compute, and
        `UNCHANGED`, which tells whether the versions are those of these values.
        """
        statements = [
            "" if number in self.covered else statement
            for number, statement in enumerate(self._statements)
        ]
        source = self._source(
            statements,
            f"return [{', '.join(result)}]",
            f"if not {UNCHANGED}(): return None",
        )
        # Nothing that outlives the recording may hold on to the objects of the run.
        constants = self.names.values

        def compile_rest(variables: dict[str, Any]) -> Callable[..., Any]:
            return _compile(source, {**constants, **variables})

        return compile_rest

    def _source(self, statements: list[str], leave: str, undecided: str = "") -> str:
        lines = [_HEAD]
        for number, statement in enumerate(statements):
            # There is a line for something else before the line of each condition.
            begins = undecided and number == (self.reads_begin or 0)
            lines.append(f" {undecided}" if begins else "")
            lines.append(f" {statement}" if statement else "")
            assert len(lines) == line_of(number), "lines tell the numbers of guards"
        lines.append(f" {leave}")
        return "\n".join(lines)


def _compile(source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    # Asserts are the guards: no option of the interpreter may leave them out.
    code = compile(source, FILENAME, "exec", dont_inherit=True, optimize=0)
    exec(code, namespace)
    run = namespace.pop("guards")
    assert isinstance(run, types.FunctionType), "the module defines one function"
    return run
