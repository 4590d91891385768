"""Owns guards as data, and the generated function that checks all of a record."""

from __future__ import annotations

import enum
import types
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from magweld.frontend.guards.versions import Shortcut
from magweld.frontend.state.draws import Draws
from magweld.frontend.state.mro import ABSENT, is_class, name_of_class
from magweld.frontend.state.natives import Content
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
        data: Paths of the array or sequence whose content is tested, and of the
            sequences that it is in.
    """

    category: Category
    path: str
    expected: str
    where: str
    lifts: tuple[str, type] | None = None
    data: tuple[str, ...] = ()

    def __str__(self) -> str:
        at = f"  [{self.where}]" if self.where else ""
        return f"{self.category}: {self.path} {self.expected}{at}"


class Failure:
    """Why a record does not fit.

    How tensors differ takes long to tell. It is found out when it is asked for, before
    the program goes on: most failures are those of records beside the one that answers.

    Args:
        place: Number of the guard that failed, or what tells it.
        value: What was there instead, or an `Unfit` or `Elsewhere`.
    """

    __slots__ = ("_distance", "_place", "_told")

    def __init__(self, place: int | _Place, value: object = ABSENT) -> None:
        self._place = place
        self._distance = 0
        if type(value) is Elsewhere:
            self._distance, value = value.distance, ABSENT
        self._told: _Told | Unfit = value if type(value) is Unfit else _tell(value)

    @property
    def number(self) -> int:
        """Number of the guard that failed."""
        place = self._place
        number = place if isinstance(place, int) else place.number
        return number + self._distance

    @property
    def shown(self) -> str:
        """What was there instead, as text."""
        return self._tell().shown

    @property
    def kind(self) -> type:
        """Type of what was there."""
        return self._tell().kind

    @property
    def lifts(self) -> tuple[str, ...]:
        """Paths of the numbers that made the difference."""
        return self._tell().lifts

    @property
    def only_sizes(self) -> bool:
        """Whether these are sizes, and nothing else of the tensors differs."""
        return self._tell().only_sizes

    def _tell(self) -> _Told:
        told = self._told
        if isinstance(told, Unfit):
            found = told.mismatch(*told.tensors)
            told = _Told(found.text, int, found.lifts, found.only_sizes)
            self._told = told
        return told


class _Told(NamedTuple):
    """What a failure tells; the fields are its properties."""

    shown: str
    kind: type
    lifts: tuple[str, ...] = ()
    only_sizes: bool = False


def _tell(value: object) -> _Told:
    return _Told("" if value is ABSENT else shown(value), type(value))


class _Lines:
    """Finds the lines of instructions of guard functions.

    The table of a long function takes long to read, and a call that keeps missing asks
    each record: it is read once.
    """

    def __init__(self) -> None:
        self._tables: dict[types.CodeType, tuple[list[int], list[int | None]]] = {}

    def line_at(self, code: types.CodeType, instruction: int) -> int | None:
        """Return the line of an instruction, None if it has none."""
        table = self._tables.get(code)
        if table is None:
            ranges = [*code.co_lines()]
            table = [begin for begin, _, _ in ranges], [line for _, _, line in ranges]
            self._tables[code] = table
        begins, lines = table
        return lines[bisect_right(begins, instruction) - 1]


class _Place(NamedTuple):
    """Where a guard function was left.

    The line of an instruction is found out when it is asked for.

    Attributes:
        lines: Finds it.
        code: The function's.
        instruction: Offset of the instruction.
        last: Number of the last guard.
    """

    lines: _Lines
    code: types.CodeType
    instruction: int
    last: int

    @property
    def number(self) -> int:
        """Number of the guard there."""
        line = self.lines.line_at(self.code, self.instruction)
        return self.last if line is None else min(number_at(line), self.last)


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


class Unfit(NamedTuple):
    """Says that tensors do not fit, and finds out why.

    Attributes:
        mismatch: Returns the reason.
        tensors: What it is asked of.
    """

    mismatch: Callable[..., Mismatch]
    tensors: tuple[Any, ...]


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
    _lines: _Lines = field(default_factory=_Lines, init=False)

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
        place, is_last = _place_of(error, self._lines, len(self.guards) - 1)
        if type(error) is not AssertionError or not is_last:
            return Failure(place)
        return Failure(place, *error.args)

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
        return fetched if self.draws.repeat() else Failure(len(self.guards) - 1)

    def holds(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        return super().holds(args, kwargs) and self.draws.would_repeat()

    def undo(self) -> None:
        self.draws.undo()


FILENAME: Final = "<magweld guards>"


def _place_of(error: Exception, lines: _Lines, last: int) -> tuple[int | _Place, bool]:
    """Return which guard raised, and whether it raised by itself.

    No variable of the caller's may hold a traceback: with the frame that would be a
    cycle, which keeps the arguments of the call.

    Args:
        error: What it raised.
        lines: Finds lines of guard functions.
        last: Number of the last guard.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if trace.tb_frame.f_code.co_filename == FILENAME:
            return _Place(lines, trace.tb_frame.f_code, trace.tb_lasti, last), False
        trace = trace.tb_next
    if trace is None:
        return 0, False
    return _Place(lines, trace.tb_frame.f_code, trace.tb_lasti, last), True


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
    Content: repr,
    types.FunctionType: lambda value: value.__qualname__,
    types.BuiltinFunctionType: lambda value: value.__qualname__,
    types.MethodDescriptorType: lambda value: value.__qualname__,
    types.WrapperDescriptorType: lambda value: value.__qualname__,
    types.MemberDescriptorType: lambda value: value.__qualname__,
    types.GetSetDescriptorType: lambda value: value.__qualname__,
    types.CodeType: lambda value: f"the code of {value.co_qualname}",
    types.ModuleType: lambda value: str(vars(value).get("__name__", "a module")),
}
