"""Owns the form of a recipe: how an object that the run made is made again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Fill = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Recipe:
    """How an object is made.

    Attributes:
        make: Makes it, from `parts`.
        parts: Objects needed to make it.
        packed: Whether `make` takes the parts as one sequence.
        late: Whether a shell is made first and filled when all others exist; its
            parts are then constants.
        early: Whether the parts must have their content before it is made.
        fills: Functions that take the object and a list of parts.
        finals: The same, run when everything has been filled.
    """

    make: Callable[..., Any]
    parts: tuple[Any, ...] = ()
    packed: bool = False
    late: bool = False
    early: bool = False
    fills: tuple[Fill, ...] = ()
    finals: tuple[Fill, ...] = ()
