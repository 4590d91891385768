"""Owns which annotations of users are in force where a callable is traced."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import warnings
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import Final

from magweld.frontend.annotations.user import UserAnnotation

ENTRY_POINT_GROUP: Final = "magweld.annotations"

_CURRENT: Final[ContextVar[tuple[UserAnnotation, ...]]] = ContextVar(
    "magweld_annotations", default=()
)


@contextlib.contextmanager
def annotated(*items: UserAnnotation) -> Iterator[None]:
    """Put annotations in force for all callables that are traced inside of the block.

    Args:
        *items: What `annotate` has returned.
    """
    check(items)
    token = _CURRENT.set((*_CURRENT.get(), *items))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def in_force(given: Iterable[UserAnnotation]) -> tuple[UserAnnotation, ...]:
    """Return all annotations for a new trace, the later ones with precedence.

    Args:
        given: Those passed to `trace`.

    Raises:
        TypeError: Something else than annotations was passed.
    """
    items = tuple(given)
    check(items)
    return (*of_libraries(), *_CURRENT.get(), *items)


def check(items: Iterable[object]) -> None:
    """Check that these are annotations.

    Raises:
        TypeError: One is not.
    """
    for item in items:
        if type(item) is not UserAnnotation:
            kind = type(item).__name__
            raise TypeError(f"expected what annotate() returns, got {kind}")


@functools.cache
def of_libraries() -> tuple[UserAnnotation, ...]:
    """Return the annotations that installed libraries declare as entry points.

    A library names a tuple of annotations in the group `magweld.annotations`. One that
    cannot be loaded is left out with a warning.
    """
    found: list[UserAnnotation] = []
    for point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        try:
            items = tuple(point.load())
            check(items)
        except Exception as error:
            warnings.warn(f"annotations of {point.value}: {error!r}", stacklevel=2)
        else:
            found += items
    return tuple(found)
