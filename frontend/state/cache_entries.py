"""Owns looks into the caches of `functools.lru_cache`, which call nothing."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from magweld.frontend.state.values import is_equal_to_itself_alone, is_scalar


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
