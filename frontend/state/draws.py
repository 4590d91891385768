"""Owns what a run gets from the process: random numbers, answers that caches keep."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from magweld.frontend.state.python_operators import COMPARISONS, functions
from magweld.frontend.state.values import (
    is_equal_to_itself_alone,
    is_scalar,
    same_scalar,
)


@dataclass(frozen=True)
class CacheEntry:
    """What a function keeps of one call.

    Attributes:
        answers: All that the function keeps, by keys.
        key: The key of the call.
    """

    answers: Mapping[Any, Any]
    key: Any

    def is_there(self) -> bool:
        """Return whether a call gives what is kept, and does not run the function."""
        return self.key in self.answers


def entry_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> CacheEntry | None:
    """Return the entry of a call, which need not be there.

    Args:
        function: What `functools.lru_cache` has returned.
        args: The arguments of the call.
        kwargs: Its keyword arguments.

    Returns:
        None where it cannot be told: arguments are neither scalars, tuples of these nor
        told apart by identity, types are part of the keys, answers are dicts, or no
        answer is kept.
    """
    if not all(map(_is_plain, (*args, *kwargs.values()))) or not _is_usual(function):
        return None
    parts = gc.get_referents(function)
    attributes = vars(function)
    caches = [p for p in parts if type(p) is dict and p is not attributes]
    # Stands between the arguments and those with keywords.
    marks = [part for part in parts if type(part) is object]
    if len(caches) != 1 or (kwargs and len(marks) != 1):
        return None
    key: Any = args
    if kwargs:
        key = (*args, marks[0], *(part for item in kwargs.items() for part in item))
    elif len(args) == 1 and type(args[0]) in (str, int):
        (key,) = args
    return CacheEntry(caches[0], key)


def _is_plain(value: Any) -> bool:
    """Return whether no code of the program tells a value from others."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return is_scalar(value) or is_equal_to_itself_alone(value)


def _is_usual(function: Any) -> bool:
    """Return whether a function keeps answers by the values of arguments alone."""
    ask = vars(function).get("cache_parameters")
    if type(ask) is not FunctionType or ask.__code__ not in _ASK:
        return False
    parameters = ask()
    return not parameters["typed"] and parameters["maxsize"] != 0


# Of functions that are decorated with and without options.
_ASK: Final = {
    made.cache_parameters.__code__
    for made in (functools.lru_cache(len), functools.lru_cache(None)(len))
}


_COMPARE: Final = functions(COMPARISONS)


@dataclass(frozen=True)
class Generator:
    """A random generator that lives as long as the process.

    Attributes:
        read: Returns its state.
        write: Gives it a state.
    """

    read: Callable[[], Any]
    write: Callable[[Any], None]


@dataclass
class Draw:
    """One draw.

    Attributes:
        generator: Where from.
        function: Its bound method.
        args: Arguments, which nobody else holds.
        kwargs: Keyword arguments.
        value: What it gave.
        where: The user's instruction.
        decisions: Comparisons with the number, and their outcomes.
        exact: Whether it is used in another way, too, or may still be.
    """

    generator: Generator
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    where: Any
    decisions: list[tuple[Callable[[Any], Any], Any]] = field(default_factory=list)
    exact: bool = True

    def decide(self, symbol: str, other: Any, reflected: bool) -> None:
        """Take note that the number was compared with `other`."""
        compare = _COMPARE[symbol]

        def test(value: Any) -> Any:
            return compare(other, value) if reflected else compare(value, other)

        self.decisions.append((test, test(self.value)))

    def repeats(self) -> bool:
        """Draw again; return whether the same comes out."""
        value = self.function(*self.args, **self.kwargs)
        if self.exact:
            return _same(value, self.value)
        decided = (test(value) is outcome for test, outcome in self.decisions)
        return type(value) is type(self.value) and all(decided)


@dataclass(frozen=True)
class CachedAnswer:
    """One call of a function that keeps its answers.

    Attributes:
        function: The function with its cache.
        args: Arguments; their values, or their identities, are guarded.
        kwargs: Keyword arguments.
        value: What it returned: a scalar, or an object that is guarded by identity.
        where: The user's instruction.
        entry: Where the answer has to be kept still: a function of the program may not
            run.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    value: Any
    where: Any
    entry: CacheEntry | None = None

    def repeats(self) -> bool:
        """Call it again; return whether it returns the same.

        What a library raises the program will raise, which runs then.
        """
        if self.entry is not None and not self.entry.is_there():
            return False
        try:
            value = self.function(*self.args, **self.kwargs)
        except Exception:
            return False
        if is_scalar(value):
            return _same(value, self.value)
        return value is self.value


@dataclass(frozen=True)
class Holding:
    """The places of a frame that hold a drawn number, as far as it was followed.

    Attributes:
        draw: The draw.
        place: Position of the value stack.
        slot: Number of a local variable.
    """

    draw: Draw
    place: int | None
    slot: int | None = None

    def at(self, place: int | None, slot: int | None) -> tuple[Holding, ...]:
        """Return where the number is now; nowhere, when nothing can use it any more."""
        if place is None and slot is None:
            self.draw.exact = False
            return ()
        return (Holding(self.draw, place, slot),)


def _same(left: Any, right: Any) -> bool:
    if type(left) is not type(right):
        return False
    if hasattr(left, "tobytes"):
        form = (left.dtype, left.shape) == (right.dtype, right.shape)
        return form and left.tobytes() == right.tobytes()
    return same_scalar(left, right)


@dataclass
class Draws:
    """The draws of a run and the answers of its functions with a cache, in order.

    A later call draws and asks again: the generators are left as the program would
    leave them. Other numbers than those of the run put them back, and the call is
    recorded anew.
    """

    items: list[Draw | CachedAnswer] = field(default_factory=list)
    _before: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        drawn = (item for item in self.items if isinstance(item, Draw))
        self._generators = list(dict.fromkeys(item.generator for item in drawn))

    def repeat(self) -> bool:
        """Draw all numbers again; return whether they are those of the run."""
        self._before = [generator.read() for generator in self._generators]
        for item in self.items:
            if not item.repeats():
                self.undo()
                return False
        return True

    def would_repeat(self) -> bool:
        """Return whether numbers would be those of the run; nothing is asked."""
        self._before = [generator.read() for generator in self._generators]
        drawn = (item for item in self.items if isinstance(item, Draw))
        found = all(item.repeats() for item in drawn)
        self.undo()
        return found

    def undo(self) -> None:
        """Put the generators back to where they were before the last repetition."""
        for generator, state in zip(self._generators, self._before, strict=True):
            generator.write(state)
