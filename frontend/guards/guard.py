"""Owns guards as data, and the generated function that checks all of a record."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from magweld.frontend.guards.versions import Shortcut
from magweld.frontend.state.mro import ABSENT, is_class
from magweld.frontend.state.values import is_scalar


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


@dataclass(frozen=True)
class Guard:
    """One condition of a record.

    Attributes:
        category: What it is about.
        path: The expression that it tests.
        expected: What it must give.
        where: The user's file:line that read it, "" for the arguments.
    """

    category: Category
    path: str
    expected: str
    where: str

    def __str__(self) -> str:
        at = f"  [{self.where}]" if self.where else ""
        return f"{self.category}: {self.path} {self.expected}{at}"


class Failure(tuple[int, str]):
    """Number of the guard that failed and what was there instead."""

    __slots__ = ()


def failure(index: int, value: object = ABSENT) -> Failure:
    """Return a failure; shows scalars and keys by value, all else by name or type."""
    return Failure((index, "" if value is ABSENT else shown(value)))


@dataclass
class GuardProgram:
    """The conditions of a record.

    Attributes:
        guards: All conditions in the order of their tests.
        run: `run(args, kwargs)` gives the objects that the graph and the mock need,
            in the order in which they were asked for, or a `Failure`.
        shortcut: A part of the conditions that decides most calls.
    """

    guards: tuple[Guard, ...]
    run: Callable[[tuple[Any, ...], dict[str, Any]], Any]
    shortcut: Shortcut | None = None

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the fetched objects as a list, or a `Failure`; never raises."""
        shortcut = self.shortcut
        try:
            if shortcut is None:
                return self.run(args, kwargs)
            verdict = shortcut.run(args, kwargs)
            return self._decide(shortcut, args, kwargs) if verdict is None else verdict
        except Exception as error:
            # A guard that cannot be evaluated does not hold: the path ends early.
            # The line number in the generated function is the number of the guard.
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                if trace.tb_frame.f_code.co_filename == FILENAME:
                    break
                trace = trace.tb_next
            line = trace.tb_lineno if trace is not None else 1
            return failure(min(line - 1, len(self.guards) - 1))

    def _decide(
        self, shortcut: Shortcut, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        verdict = self.run(args, kwargs)
        if type(verdict) is list:
            shortcut.renew(args, kwargs)
        else:
            shortcut.release()
        return verdict


FILENAME = "<magweld guards>"


def shown(value: Any) -> str:
    """Return a short text for an expected value."""
    if value is ABSENT:
        return "absent"
    if is_scalar(value):
        return repr(value)
    if type(value) is frozenset:
        return f"{{{', '.join(sorted(map(shown, value))[:4])}}}"
    if type(value) is tuple:
        return f"({', '.join(map(shown, value[:4]))}{', ...' if value[4:] else ''})"
    if is_class(value):
        return str(type.__dict__["__qualname__"].__get__(value))
    # Nothing else may be asked for a name: it could run code of the user's.
    name = _NAMES.get(type(value))
    return f"an object of {type(value).__qualname__}" if name is None else name(value)


_NAMES: Final[dict[type, Callable[[Any], str]]] = {
    types.FunctionType: lambda value: value.__qualname__,
    types.BuiltinFunctionType: lambda value: value.__qualname__,
    types.MethodDescriptorType: lambda value: value.__qualname__,
    types.WrapperDescriptorType: lambda value: value.__qualname__,
    types.CodeType: lambda value: f"the code of {value.co_qualname}",
    types.ModuleType: lambda value: str(vars(value).get("__name__", "a module")),
}
