"""Owns guards as data, and the generated function that checks all of a record."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from magweld.frontend.guards.versions import Shortcut
from magweld.frontend.state.draws import Draws
from magweld.frontend.state.mro import ABSENT, Absent, is_class, name_of_class
from magweld.frontend.state.values import is_scalar, text_of_scalar
from magweld.short_repr import short_repr


class Category(enum.StrEnum):
    """What a guard is about; the order is that of cost."""

    ARGUMENT = "argument"
    STATE = "torch state"
    CLASS = "class"
    VALUE = "value"
    IDENTITY = "identity"
    TYPE = "type"
    CONTENT = "content"
    ABSENCE = "absence"
    ALIAS = "alias"
    TENSOR = "tensor"
    PREDICATE = "predicate"
    EXPRESSION = "expression"


class Guard(NamedTuple):
    """One condition of a record.

    Attributes:
        category: What it is about.
        path: The expression that it tests.
        expected: What it must give.
        where: The user's file:line that read it, "" for the arguments.
        lifts: Path and type of the number whose value is tested, if it is one.
    """

    category: Category
    path: str
    expected: str
    where: str
    lifts: tuple[str, type] | None = None

    def __str__(self) -> str:
        at = f"  [{self.where}]" if self.where else ""
        return f"{self.category}: {self.path} {self.expected}{at}"


class Failure(NamedTuple):
    """Why a record does not fit.

    Attributes:
        number: Number of the guard that failed.
        shown: What was there instead, as text.
        kind: Type of what was there.
        lifts: Paths of the numbers that made the difference.
        only_sizes: Whether these are sizes, and nothing else of the tensors differs.
    """

    number: int
    shown: str
    kind: type
    lifts: tuple[str, ...] = ()
    only_sizes: bool = False


def failure(index: int, value: object = ABSENT) -> Failure:
    """Return a failure; shows scalars and keys by value, all else by name or type."""
    if type(value) is Elsewhere:
        return Failure(index + value.distance, "", Absent)
    if type(value) is Mismatch:
        return Failure(index, value.text, int, value.lifts, value.only_sizes)
    return Failure(index, "" if value is ABSENT else shown(value), type(value))


class Elsewhere(NamedTuple):
    """Says that a guard failed which one line tests together with others.

    Attributes:
        distance: How far behind the first of them it is.
    """

    distance: int


class Mismatch(NamedTuple):
    """Why tensors do not fit.

    Attributes:
        text: The reason.
        lifts: Paths of the sizes that differ and may be lifted.
        only_sizes: Whether nothing else differs.
    """

    text: str
    lifts: tuple[str, ...]
    only_sizes: bool


@dataclass
class GuardProgram:
    """The conditions of a record.

    Attributes:
        guards: All conditions in the order of their tests.
        run: `run(args, kwargs)` gives the objects that the graph and the mock need,
            in the order in which they were asked for; when a guard fails it raises, or
            returns a `Failure`.
        shortcut: A part of the conditions that decides most calls.
        text: Source of `run`; `line_of` tells the lines of a guard.
        constants: The global variables of `run`.
    """

    __repr__ = short_repr

    guards: tuple[Guard, ...]
    run: Callable[[Sequence[Any], dict[str, Any]], Any]
    shortcut: Shortcut | None = None
    text: str = ""
    constants: Mapping[str, Any] = field(default_factory=dict)

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return the fetched objects as a list, or a `Failure`; never raises."""
        shortcut = self.shortcut
        if shortcut is None:
            return self.check_all(args, kwargs)
        try:
            verdict = shortcut.run(args, kwargs)
            return self._decide(shortcut, args, kwargs) if verdict is None else verdict
        except Exception as error:
            return self._failure(error)

    def test(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Do what `check` does, but draw no number and ask no function with a cache."""
        return GuardProgram.check(self, args, kwargs)

    def check_all(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Test every condition; there is no shortcut behind it that was not before it.

        Returns:
            The same as `check`.
        """
        try:
            return self.run(args, kwargs)
        except Exception as error:
            return self._failure(error)

    def _failure(self, error: Exception) -> Failure:
        # A guard that cannot be evaluated does not hold: the path ends early.
        line, is_last = _place_of(error)
        number = min(number_at(line), len(self.guards) - 1)
        if type(error) is not AssertionError or not is_last:
            return failure(number)
        return failure(number, *error.args)

    def _decide(
        self, shortcut: Shortcut, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        try:
            verdict = self.run(args, kwargs)
        except Exception:
            shortcut.release()
            raise
        if type(verdict) is list:
            shortcut.renew(args, kwargs)
        else:
            shortcut.release()
        return verdict

    def holds(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Return whether the record would answer a call; changes nothing.

        Functions with a cache are taken to answer as they did: it shows that they were
        asked.
        """
        return type(self.test(args, kwargs)) is list

    def draw(self, fetched: list[Any]) -> Any:
        """Do what `check` does beside `test`.

        Args:
            fetched: What `test` has returned.

        Returns:
            The same, or a `Failure`.
        """
        return fetched

    def undo(self) -> None:
        """Take back what the last successful check has changed."""


@dataclass
class DrawingProgram(GuardProgram):
    """The conditions of a record that draws random numbers.

    Attributes:
        draws: They are drawn again when all other conditions hold; the last guard
            stands for them.
    """

    draws: Draws = field(default_factory=Draws)

    def check(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        verdict = self.test(args, kwargs)
        return self.draw(verdict) if type(verdict) is list else verdict

    def draw(self, fetched: list[Any]) -> Any:
        return fetched if self.draws.repeat() else failure(len(self.guards) - 1)

    def holds(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        return super().holds(args, kwargs) and self.draws.would_repeat()

    def undo(self) -> None:
        self.draws.undo()


FILENAME: Final = "<magweld guards>"


def _place_of(error: Exception) -> tuple[int, bool]:
    """Return the line of the guard that raised, and whether it raised by itself.

    No variable of the caller's may hold a traceback: with the frame that would be a
    cycle, which keeps the arguments of the call.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            return trace.tb_lineno, False
        trace = trace.tb_next
    return (line_of(0), False) if trace is None else (trace.tb_lineno, True)


def line_of(number: int) -> int:
    """Return the line of a guard in the generated function."""
    return 2 * number + 3


def number_at(line: int) -> int:
    """Return the number of the guard in a line or behind it."""
    return (line - 2) // 2


def shown(value: Any) -> str:
    """Return a short text for an expected value."""
    if value is ABSENT:
        return "absent"
    if is_scalar(value):
        return text_of_scalar(value)
    if type(value) is frozenset:
        return f"{{{', '.join(sorted(map(shown, value))[:4])}}}"
    if type(value) is tuple:
        return f"({', '.join(map(shown, value[:4]))}{', ...' if value[4:] else ''})"
    if is_class(value):
        return name_of_class(value)
    # Nothing else may be asked for a name: it could run code of the user's.
    name = _NAMES.get(type(value))
    return f"an object of {type(value).__qualname__}" if name is None else name(value)


_NAMES: Final[dict[type, Callable[[Any], str]]] = {
    types.FunctionType: lambda value: value.__qualname__,
    types.BuiltinFunctionType: lambda value: value.__qualname__,
    types.MethodDescriptorType: lambda value: value.__qualname__,
    types.WrapperDescriptorType: lambda value: value.__qualname__,
    types.MemberDescriptorType: lambda value: value.__qualname__,
    types.GetSetDescriptorType: lambda value: value.__qualname__,
    types.CodeType: lambda value: f"the code of {value.co_qualname}",
    types.ModuleType: lambda value: str(vars(value).get("__name__", "a module")),
}
