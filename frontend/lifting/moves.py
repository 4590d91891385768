"""Owns what native code moves from container to container, without looking at it.

The function is called a second time, on containers that hold a mark for each number.
Where the marks come to lie, and in which order an iterator gives them, is where the
numbers are: that of two equal ones nothing else would tell.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterator
from types import GeneratorType
from typing import Any, Final

from magweld.frontend.expressions.expressions import (
    NUMBERS,
    Expression,
    Slot,
)
from magweld.frontend.lifting.marks import FOLLOWED, OTHER, Called, Mark, Marks, operand
from magweld.frontend.lifting.reductions import REDUCING, reduce
from magweld.frontend.lifting.shadow import Link, Shadow, Step
from magweld.frontend.lifting.state import Lifting
from magweld.frontend.state.contents import builtin_base
from magweld.frontend.state.nodes import Kind, slot_of
from magweld.frontend.state.values import is_scalar, same_scalar

# They put what they get, or what is in it, somewhere else.
_MOVING: Final[tuple[Any, ...]] = (
    *(list, tuple, tuple.__new__, dict, OrderedDict, dict.copy, list.copy),
    *(operator.add, operator.mul, operator.getitem),
)
# The same; they change the first argument.
_CHANGING: Final[tuple[Any, ...]] = (
    *(list.extend, list.insert, list.pop, list.reverse, operator.iadd),
    *(dict.update, dict.pop, dict.setdefault),
)
# What they make goes over its arguments later.
_LATER: Final[tuple[Any, ...]] = (
    *(zip, enumerate, reversed, iter, map, dict.values, dict.items),
    *(list.__iter__, tuple.__iter__, list.__reversed__),
)
_KNOWN: Final = frozenset(map(id, (*_MOVING, *_CHANGING, *_LATER, *REDUCING)))
_LATER_IDS: Final = frozenset(map(id, _LATER))
_CHANGING_IDS: Final = frozenset(map(id, _CHANGING))
_REDUCING_IDS: Final = frozenset(map(id, REDUCING))
_FAILS: Final = (TypeError, ValueError, LookupError, ArithmeticError, RuntimeError)
_END: Final = object()
# Stands for the item of an iterator at its end.
_NOTHING: Final = object()


class Moves:
    """Where an instruction that is about to run will move numbers.

    Args:
        lifting: The lifted values of the run.
    """

    def __init__(self, lifting: Lifting) -> None:
        self._lifting = lifting
        self._made: Any = _END
        self._changed: tuple[Any, Any] | None = None
        self._marks = Marks(lifting)
        self._function: Any = None
        self._advances = False
        self._writes = 0

    def call(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        lifted: tuple[Expression | None, ...] = (),
        lifted_kwargs: dict[str, Expression] | None = None,
        spread: Any = None,
    ) -> None:
        """Do what a call will do, with marks.

        Args:
            spread: The dict that holds the keywords of a call, if one does.
        """
        self._function = function
        with contextlib.suppress(*_FAILS):
            self._call(args, kwargs, lifted, lifted_kwargs or {}, spread)

    def _call(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        lifted: tuple[Expression | None, ...],
        lifted_kwargs: dict[str, Expression],
        spread: Any,
    ) -> None:
        function = self._function
        alone = len(args) == 1 and not kwargs
        self._advances = alone and frame_of(args[0]) != 0
        if self._advances:
            return  # what it gives is known then
        pairs = itertools.zip_longest(args, lifted)
        given = [self._marks.argument(value, found) for value, found in pairs]
        named: Any = {
            name: self._marks.argument(value, lifted_kwargs.get(name))
            for name, value in kwargs.items()
        }
        if spread is not None:
            named = self._marks.stand_in(spread)
        if function is tuple.__new__:
            given[0] = tuple
        if id(function) in _LATER_IDS:
            return
        if id(function) in _CHANGING_IDS:
            self._changed = args[0], given[0]
        by_key = function in (dict.pop, dict.setdefault)
        if not by_key or not isinstance(given[1], Mark):  # a key is looked at
            self._run(given, named)

    def _run(self, given: list[Any], named: dict[str, Any]) -> None:
        if id(self._function) in _REDUCING_IDS:
            # Only of what is in one container.
            self._made = tuple(*([], []) if named else given)
        else:
            function = dict if self._function is OrderedDict else self._function
            self._made = function(*given, **named)

    def advance(self, iterator: Any) -> None:
        """Do what taking one item of an iterator will do, with marks."""
        with contextlib.suppress(*_FAILS):
            self._made = next(iter(self._marks.stand_in(iterator)), _NOTHING)

    def called(self, function: Any, step: Step) -> Link | None:
        """Return the call of a function that begins, if it is one that `map` makes."""
        calls = self._marks.calls
        if not step.called:
            self._writes = self._lifting.writes
        if len(step.called) == len(calls) or self._writes != self._lifting.writes:
            return None
        mark = calls[len(step.called)]
        if mark.function is not function:
            return None
        step.called.append(mark.begin(dict(step.reads)))
        return step.called[-1]

    def _take(self, step: Step) -> None:
        """Do with the items of a generator what the call has done."""
        given = [
            Mark(value, found) if type(value) in NUMBERS else OTHER
            for value, found in step.given
        ]
        with contextlib.suppress(*_FAILS):
            self._run([given], {})

    def finish(self, shadow: Shadow, step: Step, stack: list[Any]) -> bool:
        """Have numbers lie where they have come to; return whether that is known."""
        if id(self._function) in _LATER_IDS:
            for slot, expression in step.reads:
                self._lifting.put(slot, expression)
        elif not self._is_known(step) or not self._settle(shadow, step, stack):
            return False
        else:
            step.operands.clear()
        self._release(step)
        if self._changed is not None and not shadow.beneath:
            changed = self._changed[0]
            step.rewrites = [node for node in step.rewrites if node.obj is not changed]
        return True

    def items(self, step: Step) -> list[Expression | None]:
        """Return the expressions of the items of an iterator, none if not known."""
        # In new tuples nothing lies yet.
        if not self._is_known(step) or tuple in map(type, self._made):
            return []
        met = dict(step.reads)
        self._release(step)
        return [m.found(met) if isinstance(m, Mark) else None for m in self._made]

    def _release(self, step: Step) -> None:
        """Take from an instruction what is followed now."""
        step.given.clear()
        step.called.clear()
        # Behind an iterator is also the tuple that it has given last.
        step.reads = (
            []
            if self._function is None
            else [read for read in step.reads if read[0][0] not in self._marks.met]
        )

    def ends(self) -> bool:
        """Return whether an iterator has no further item."""
        return self._made is _NOTHING

    def _is_known(self, step: Step) -> bool:
        if self._advances:
            self._take(step)
        begun = all(call.link is not None for call in self._marks.calls)
        # What a function has written to may be what the next one gets.
        same = not step.called or self._writes == self._lifting.writes
        return begun and same and self._made is not _END

    def _settle(self, shadow: Shadow, step: Step, stack: list[Any]) -> bool:
        met, made = dict(step.reads), self._made
        if id(self._function) in _REDUCING_IDS:
            if not all(isinstance(mark, Mark) for mark in made):
                return False
            operands = [operand(mark, met) for mark in made]
            return reduce(shadow, stack, self._function, operands, self._advances)
        pairs = [] if self._changed is None else [self._changed[::-1]]
        if isinstance(made, (Mark, list, tuple, dict)):
            pairs.append((made, stack[-1]))
        if not all(_stands_for(*pair) for pair in pairs):
            return False
        for one, actual in pairs:
            if isinstance(one, Mark):
                shadow.push(stack, one.found(met))
            else:
                self._place(one, actual, met)
        return True

    def _place(self, made: Any, actual: Any, met: dict[Slot, Expression]) -> None:
        """Have numbers lie in a container as in the one with marks."""
        # A place that has gone would be one of its numbers still.
        for slot, _ in self._lifting.inside(actual):
            self._lifting.put(slot, None)
        kind = Kind.ITEM if type(made) is dict else Kind.INDEX
        for key, mark, item in _entries(made, actual):
            if type(mark) is tuple:
                self._place(mark, item, met)
            expression = mark.found(met) if isinstance(mark, Mark) else None
            stays = isinstance(mark, Mark) and mark.slot == slot_of(actual, kind, key)
            if expression is None and stays:
                continue  # what lies there may be read later
            self._lifting.place(actual, kind, key, expression)


def frame_of(obj: Any) -> int:
    """Return the id of the frame of a generator, 0 for anything else."""
    return id(obj.gi_frame) if type(obj) is GeneratorType else 0


def _stands_for(made: Any, actual: Any) -> bool:
    """Return whether a mark, or a container with marks, stands for an object."""
    base = type(made)
    if isinstance(made, Mark):
        # What a function gives is known when it has run.
        return base is Called or same_scalar(made.value, actual)
    if base not in (list, tuple, dict) or builtin_base(actual) is not base:
        return False
    if base.__len__(actual) != len(made):
        return False
    if base is dict and not all(map(is_scalar, dict.keys(actual))):
        return False
    if base is dict and [*made] != [*dict.keys(actual)]:
        return False
    return all(
        _stands_for(mark, item)
        for _, mark, item in _entries(made, actual)
        if isinstance(mark, (Mark, tuple))
    )


def _entries(made: Any, actual: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield keys, and what lies there in a container with marks and in the other."""
    base = type(made)
    for key, mark in made.items() if base is dict else enumerate(made):
        yield key, mark, base.__getitem__(actual, key)


def is_move(function: Any) -> bool:
    """Return whether a function moves numbers, or makes one of those that it moves."""
    return id(function) in _KNOWN


def moved(
    shadow: Shadow, step: Step, stack: list[Any], function: Any, *args: Any
) -> bool:
    """Follow a function that has run, and changes nothing; return whether it moves.

    Its arguments are no lifted numbers: what follows from one is not known.
    """
    if step.operands:
        return False
    moves = Moves(shadow.lifting)
    moves.call(function, args, {})
    return moves.finish(shadow, step, stack)


def moves_of(lifting: Lifting, iterator: Any) -> Moves | None:
    """Return where the next item of an iterator of the interpreter comes from."""
    if type(iterator) not in FOLLOWED:
        return None
    moves = Moves(lifting)
    moves.advance(iterator)
    return moves
