"""Owns built-in iterators: what they will give, without advancing them."""

from __future__ import annotations

import functools
import gc
import itertools
import operator
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

from magweld.frontend.state.contents import CONTAINERS
from magweld.frontend.state.mro import ABSENT
from magweld.frontend.state.steps import Recipe
from magweld.frontend.state.values import SCALAR_TYPES

_DICT: Final[dict[int, int]] = {}
_SEQUENCES: Final[tuple[Any, ...]] = ([], (), "", range(0), range(1 << 70))
_SEQUENCE_ITERATORS: Final = frozenset(type(iter(obj)) for obj in _SEQUENCES)
_REVERSED: Final[type] = type(reversed(list[int]()))
# Iterator over a dict -> what makes it anew.
_DICT_ITERATORS: Final[dict[type, Callable[[dict[Any, Any]], Iterator[Any]]]] = {
    type(iter(_DICT.keys())): lambda obj: iter(dict.keys(obj)),
    type(iter(_DICT.values())): lambda obj: iter(dict.values(obj)),
    type(iter(_DICT.items())): lambda obj: iter(dict.items(obj)),
}
# At their end they let go of the sequence and tell no position.
_SPENDABLE: Final = frozenset(
    {type(iter([])), type(iter(())), type(iter("")), _REVERSED}
)
_ITEMS: Final = type(iter(_DICT.items()))
# Iterators that take their items from other iterators.
COMPOSED: Final = frozenset({enumerate, zip})
WALKING: Final = frozenset({*_SEQUENCE_ITERATORS, _REVERSED, *_DICT_ITERATORS})
PEEKABLE: Final = WALKING - {_ITEMS}
# Iterators that can be made again in the same state.
REBUILDABLE: Final = frozenset(
    {
        *_SEQUENCE_ITERATORS,
        *(type(iter(obj)) for obj in (b"", bytearray())),
        *_DICT_ITERATORS,
        *COMPOSED,
        *(_REVERSED, reversed, map, filter),
        *(itertools.accumulate, itertools.chain, itertools.combinations),
        *(itertools.combinations_with_replacement, itertools.compress),
        *(itertools.count, itertools.cycle, itertools.dropwhile),
        *(itertools.filterfalse, itertools.islice, itertools.permutations),
        *(itertools.product, itertools.repeat, itertools.starmap),
        *(itertools.takewhile, itertools.zip_longest),
    }
)
_EXACT: Final = (list, tuple, str, range)


def remake(iterator: Any) -> Recipe | None:
    """Return how to make an equal iterator; None if that would not be exact.

    It tells by `__reduce__` what it goes over and where it stands; so do the getters of
    the module `operator`.
    """
    if type(iterator) in _DICT_ITERATORS:
        return _remake_dict_iterator(iterator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        function, parts, *rest = iterator.__reduce__()
    if type(iterator) in _SEQUENCE_ITERATORS and type(parts[0]) not in _EXACT:
        return None
    if type(iterator) is _REVERSED and type(parts[0]) is not list:
        return None
    if type(iterator) in _SPENDABLE and not rest:
        begin = reversed if type(iterator) is _REVERSED else iter
        return Recipe(functools.partial(_spent, begin, parts[0]))
    if type(iterator) is zip:
        return Recipe(functools.partial(zip, strict=bool(rest)), parts)
    if not rest or rest[0] is None:
        return Recipe(function, parts)
    return Recipe(function, parts, finals=((_set_state, (rest[0],)),))


def _set_state(iterator: Any, parts: list[Any]) -> None:
    iterator.__setstate__(parts[0])


def _spent(begin: Callable[[Any], Iterator[Any]], nothing: Any) -> Iterator[Any]:
    """Return an iterator that has met the end: what is appended later is not seen."""
    made = begin(nothing)
    next(made, None)
    return made


def _remake_dict_iterator(iterator: Any) -> Recipe | None:
    begin = _DICT_ITERATORS[type(iterator)]
    content = next((o for o in gc.get_referents(iterator) if type(o) is dict), None)
    if content is None:
        return Recipe(lambda: begin({}))
    try:
        iterator.__reduce__()
    except RuntimeError:
        return None  # the dict has changed its size
    passed = len(content) - iterator.__length_hint__()

    def make(content: dict[Any, Any]) -> Any:
        made = begin(content)
        for _ in range(passed):
            next(made)
        return made

    return Recipe(make, (content,), early=True)


def peek(iterator: Any, number: int) -> Any:
    """Return the item that an iterator will give after `number` others, or ABSENT."""
    _, (content,), *rest = iterator.__reduce__()
    index = rest[0] if rest and rest[0] is not None else 0
    if type(iterator) is _REVERSED and rest:
        index -= number
        return content[index] if index >= 0 else ABSENT
    index += number
    return content[index] if index < len(content) else ABSENT


def has_more(iterator: Any, number: int) -> bool:
    """Return whether an iterator will give more than `number` items."""
    return peek(iterator, number) is not ABSENT


def stands_in(iterator: Any, before: Any) -> bool:
    """Return whether an iterator can be made again over an older content.

    A list has to reach as far as the iterator has got, a dict must have the same keys.

    Args:
        iterator: One of `WALKING` over a list or a dict.
        before: The content at an earlier time.
    """
    if type(iterator) in _DICT_ITERATORS:
        keys = dict.keys(content_of(iterator))
        return len(keys) == len(before) and all(map(operator.is_, keys, before))
    position: int = (*iterator.__reduce__()[2:], 0)[0]
    return position < len(before) + (type(iterator) is not _REVERSED)


def content_of(iterator: Any) -> Any:
    """Return the container that an iterator walks over."""
    if type(iterator) in _DICT_ITERATORS:
        return next((o for o in gc.get_referents(iterator) if type(o) is dict), ())
    return iterator.__reduce__()[1][0]


def parts_of(iterator: Any) -> tuple[Any, ...]:
    """Return what a composed iterator consists of: iterators, its counter, a flag."""
    _, parts, *strict = iterator.__reduce__()
    return (*parts, bool(strict)) if type(iterator) is zip else tuple(parts)


# The part of an iterator that is the container that it walks over.
CONTENT: Final = "content"


def part_of(iterator: Any, index: int | str) -> Any:
    """Return one part of a composed iterator, or the container that may change."""
    if isinstance(index, str):
        return changing_content(iterator)
    return parts_of(iterator)[index]


def changing_content(iterator: Any) -> Any:
    """Return the list or dict that an iterator walks over; None for all others.

    One that has met the end walks over nothing any more.
    """
    content = content_of(iterator)
    spent = type(iterator) in _SPENDABLE and len(iterator.__reduce__()) < 3
    return content if type(content) in (list, dict) and not spent else None


# What runs observed, or holds nothing that native code takes from it unseen.
_NOT_LOOKED_THROUGH: Final = frozenset(
    {
        *SCALAR_TYPES,
        *(types.FunctionType, types.GeneratorType, types.CoroutineType),
        *(types.ModuleType, types.CodeType, types.FrameType, type),
    }
)
_HEAP_TYPE: Final = 1 << 9
_NATIVE_MODULES: Final = ("itertools", "functools", "operator", "_collections")


def behind(iterator: Any) -> list[Any]:
    """Return what a native iterator or view may take items from, or call, unseen.

    It holds its containers, other iterators and callables as long as it lives, so that
    it gives what has been written to them in the meantime.
    """
    found = [iterator]
    seen = {id(iterator)}
    for holder in found:
        for part in gc.get_referents(holder):
            if id(part) not in seen and _is_looked_through(type(part)):
                seen.add(id(part))
                found.append(part)
    return found


def _is_looked_through(kind: type) -> bool:
    if kind in _NOT_LOOKED_THROUGH:
        return False
    is_native = not kind.__flags__ & _HEAP_TYPE or kind.__module__ in _NATIVE_MODULES
    return is_native or issubclass(kind, CONTAINERS)


def advance(iterator: Any) -> None:
    """Take one item."""
    next(iterator, None)
