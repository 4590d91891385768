"""Owns marks: what stands for numbers where native code moves them unseen."""

from __future__ import annotations

import functools
import gc
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import CO_GENERATOR
from types import FunctionType, MethodDescriptorType, WrapperDescriptorType
from typing import Any, Final

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    Expression,
    Literal,
    Slot,
)
from magweld.frontend.lifting.shadow import Link
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.iterators import COMPOSED, WALKING
from magweld.frontend.state.mro import find_in_mro
from magweld.frontend.state.nodes import Kind, slot_of
from magweld.frontend.state.python_operators import PURE
from magweld.frontend.state.values import is_scalar

_DICT: Final[dict[str, int]] = {}
_VALUES: Final = type(_DICT.values())
_ITEMS: Final = type(_DICT.items())
_OF_ITEMS: Final = type(iter(_DICT.items()))
_OF_KEYS: Final = type(iter(_DICT))
_OF_VALUES: Final = type(iter(_DICT.values()))
_OF_DICTS: Final = (_VALUES, _ITEMS, _OF_ITEMS, _OF_KEYS, _OF_VALUES)
_BACKWARD: Final[type] = type(reversed(list[int]()))
_PLAIN_ITERATION: Final = (tuple.__iter__, list.__iter__)
_INDEXED: Final = (str, range)
_NATIVE_METHODS: Final = (WrapperDescriptorType, MethodDescriptorType)
# Iterators over what is known to be in them.
FOLLOWED: Final = frozenset({*WALKING, *COMPOSED, reversed, map})
# Stands for all that is not followed.
OTHER: Final = object()


@dataclass(eq=False, slots=True)
class Mark:
    """Stands for a number.

    Attributes:
        value: The number.
        expression: Its expression, if it was known before the instruction.
        slot: Where it lies, None for an operand.
    """

    value: Any
    expression: Expression | None
    slot: Slot | None = None

    def found(self, met: dict[Slot, Expression]) -> Expression | None:
        """Return the expression of the number.

        Args:
            met: What an instruction has read, by slot.
        """
        if self.expression is not None or self.slot is None:
            return self.expression
        return met.get(self.slot)


@dataclass(eq=False, slots=True)
class Called(Mark):
    """Stands for what a function gives that `map` calls.

    Attributes:
        function: The function.
        items: What stands for its arguments.
        link: The call of it, None as long as it has not begun.
    """

    function: Any = None
    items: tuple[Any, ...] = ()
    link: Link | None = None

    def begin(self, met: dict[Slot, Expression]) -> Link:
        """Return the call of the function, which begins."""
        lifted = tuple(
            item.found(met) if isinstance(item, Mark) else None for item in self.items
        )
        returns = not self.function.__code__.co_flags & CO_GENERATOR
        self.link = Link(id(self.function), (), {}, lifted, {}, returns, True)
        return self.link

    def found(self, met: dict[Slot, Expression]) -> Expression | None:
        """Return the expression of what the function has given."""
        if self.link is None:
            return None
        self.value = self.link.value
        return self.link.result


@dataclass(eq=False, slots=True)
class Computed(Mark):
    """Stands for what a native function of numbers gives.

    Attributes:
        compute: Gives its expression, given those of its arguments.
        items: What stands for its arguments.
    """

    compute: Callable[..., Expression] | None = None
    items: tuple[Mark, ...] = ()

    def found(self, met: dict[Slot, Expression]) -> Expression | None:
        """Return the expression of what the function has given."""
        assert self.compute is not None, "it is given"
        found = self.compute([operand(item, met) for item in self.items])
        return None if isinstance(found, Literal) else found


def operand(mark: Mark, met: dict[Slot, Expression]) -> Expression:
    """Return the expression of a number, a literal if it is the same on every hit."""
    found = mark.found(met)
    return Literal(mark.value) if found is None else found


class Marks:
    """What stands for the objects that one instruction gets.

    Attributes:
        met: The ids of the containers that are looked into.
        calls: Calls of functions that `map` is about to make, in order.

    Args:
        lifting: The lifted values of the run.
    """

    def __init__(self, lifting: Lifting) -> None:
        self._lifting = lifting
        self._known: dict[int, Any] = {}
        self._advanced: set[int] = set()
        self.met: set[int] = set()
        self.calls: list[Called] = []

    def argument(self, value: Any, expression: Expression | None) -> Any:
        """Return what stands for an argument of a call, given its expression."""
        if expression is not None:
            return Mark(value, expression)
        return value if is_scalar(value) else self.stand_in(value)

    def stand_in(self, obj: Any) -> Any:
        """Return what stands for a container, an iterator or anything else."""
        kind = type(obj)
        if kind is slice:
            return OTHER if self._lifting.inside(obj) else obj
        if kind in _OF_DICTS or kind in FOLLOWED:
            return self._iterated(obj)
        if kind is not list and kind is not dict and builtin_base(obj) is not tuple:
            return OTHER
        if id(obj) not in self._known:
            self.met.add(id(obj))
            self._known[id(obj)] = self._marked(obj)
        return self._known[id(obj)]

    def _marked(self, obj: Any) -> Any:
        if type(obj) is dict:
            if not all(map(is_scalar, obj)):
                return OTHER  # code of the program might compare them
            return {k: self._mark(v, obj, Kind.ITEM, k) for k, v in obj.items()}
        base = builtin_base(obj)
        if find_in_mro(type(obj), "__iter__") not in _PLAIN_ITERATION:
            return OTHER
        items = enumerate(base.__iter__(obj))
        return base([self._mark(item, obj, Kind.INDEX, i) for i, item in items])

    def _mark(self, value: Any, holder: Any, kind: Kind, key: Any) -> Any:
        if type(value) not in NUMBERS:
            return value if is_scalar(value) else OTHER
        found = self._lifting.at(holder, kind, key)
        return Mark(value, found, slot_of(holder, kind, key))

    def _iterated(self, obj: Any) -> Iterator[Any]:
        """Return an iterator over what stands for the items that one will give."""
        kind = type(obj)
        self._advance(obj)
        if kind is map or kind in COMPOSED:
            _, parts, *_ = obj.__reduce__()
            if kind is map:
                return map(
                    self._mapped, itertools.repeat(parts[0]), self._rows(parts[1:])
                )
            if kind is enumerate:
                return enumerate(self._iterated(parts[0]), parts[1])
            return self._rows(parts)
        if kind in _OF_DICTS:
            return self._of_dict(obj, kind)
        _, (content, *_), *place = obj.__reduce__()
        taken = find_in_mro(type(content), "__getitem__")
        if kind is reversed and type(taken) not in _NATIVE_METHODS:
            raise TypeError("a sequence of the program")
        if not place:
            return iter(())  # it has met the end
        counts = type(content) is range and self._lifting.inside(content)
        base = builtin_base(content)
        if counts or (type(content) not in _INDEXED and base not in (list, tuple)):
            raise TypeError("an iterator over something else")
        self.met.add(id(content))
        # Iterators over lists and tuples do not ask subclasses of these.
        items = content if base is None else base.__getitem__(content, slice(None))
        first = place[0] or 0
        backward = kind is _BACKWARD or kind is reversed
        order = range(first, -1, -1) if backward else range(first, len(items))
        return (self._mark(items[i], content, Kind.INDEX, i) for i in order)

    def _advance(self, obj: Any) -> None:
        """Take note that an iterator, or a view of a dict, gives all that it has."""
        if type(obj) not in FOLLOWED and type(obj) not in _OF_DICTS:
            raise TypeError("an iterator of another kind")
        if id(obj) in self._advanced:
            raise TypeError("an iterator that is there twice")
        if type(obj) in FOLLOWED:
            self._advanced.add(id(obj))

    def _rows(self, parts: Sequence[Any]) -> Iterator[Any]:
        return zip(*map(self._iterated, parts), strict=False)

    def _mapped(self, function: Any, items: tuple[Any, ...]) -> Mark:
        """Return what stands for the result of one call that `map` makes."""
        if type(function) is FunctionType:
            if any(type(item) is tuple for item in items):
                raise TypeError("new tuples, in which nothing lies yet")
            self.calls.append(Called(None, None, None, function, items))
            return self.calls[-1]
        if id(function) not in PURE or not all(isinstance(i, Mark) for i in items):
            raise TypeError("a function of something else")
        value = function(*(item.value for item in items))
        compute = functools.partial(self._lifting.compute, function, value=value)
        if type(value) not in NUMBERS or any(type(i) is Called for i in items):
            raise TypeError("a number that is not known yet")
        return Computed(value, None, None, compute, items)

    def _of_dict(self, obj: Any, kind: type) -> Iterator[Any]:
        held = gc.get_referents(obj)
        content = next((one for one in held if type(one) is dict), None)
        if content is None:
            raise TypeError("a dict of another kind, or at its end")
        passed = len(content) - obj.__length_hint__() if kind in WALKING else 0
        self.met.add(id(content))
        entries = itertools.islice(content.items(), passed, None)
        keys = kind in (_ITEMS, _OF_ITEMS)
        marks = ((k, self._mark(v, content, Kind.ITEM, k)) for k, v in entries)
        if kind is _OF_KEYS:
            return (key for key, _ in marks)
        return ((k if is_scalar(k) else OTHER, m) if keys else m for k, m in marks)
