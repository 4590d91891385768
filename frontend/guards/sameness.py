"""Owns the comparison of keys and members with those of the recorded run."""

from __future__ import annotations

from typing import Any, Final

from magweld.frontend.state.values import is_scalar, same_scalar

_TEXT: Final = {str}


def same_objects(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Return whether two tuples hold the same objects, or scalars that are equal."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is tuple and type(right) is tuple:
        return same_objects(left, right)
    return is_scalar(left) and same_scalar(left, right) and left == left


def same_names(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """Return whether two tuples hold the same strings, of the type `str` itself."""
    return left == right and {*map(type, left)} <= _TEXT
