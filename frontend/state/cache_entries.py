"""Owns looks into the caches of `functools.lru_cache`, which call nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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


def cache_entry(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> CacheEntry | None:
    """Return the entry of a call that has been made before.

    Args:
        function: What `functools.lru_cache` has returned.
        args: The arguments of the call.
        kwargs: Its keyword arguments.

    Returns:
        None where it cannot be told: arguments are neither scalars nor told apart by
        identity, types are part of the keys, answers are dicts, or nothing is kept.
    """
    given = (*args, *kwargs.values())
    if not all(is_scalar(a) or is_equal_to_itself_alone(a) for a in given):
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
    entry = CacheEntry(caches[0], key)
    return entry if entry.is_there() else None
