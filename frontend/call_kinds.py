"""Owns kinds of calls: what calls have in common that should take the same time."""

from __future__ import annotations

import math
from typing import Any, Final

import torch
from torch import Tensor

from magweld.frontend.eager_kinds import TENSORS, Kind
from magweld.frontend.state.mro import ClassKey, key_of_class
from magweld.frontend.state.values import text_of_scalar

_VALUES: Final = (bool, int, float, str, type(None))
_TENSORS: Final = {key_of_class(cls): cls for cls in TENSORS}
# Steps of a doubling of an extent, within which extents are about equal.
_STEPS: Final = 4


def kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Kind:
    """Return what calls have in common that should take the same time.

    Calls that run eagerly wait for this.
    """
    found: list[Any] = []
    for value in args:
        cls = type(value)
        if cls is Tensor:
            try:
                found.append((value.shape, value.dtype))
            except RuntimeError:  # nested tensors have no sizes
                found.append(key_of_class(cls))
        else:
            key = key_of_class(cls)
            found.append((cls, value) if key in _VALUES else key)
    if kwargs:
        found += [(name, kind_of((value,), {})) for name, value in kwargs.items()]
    return tuple(found)


def kind_of_signature(signature: tuple[Any, ...]) -> Kind:
    """Return a kind of calls that have nothing in common but types of arguments.

    Args:
        signature: Classes of positional arguments, then of named ones with the names.
    """
    given, named = signature
    classes = [_TENSORS.get(cls, cls) for cls in given]
    return (*classes, *((name, (_TENSORS.get(cls, cls),)) for name, cls in named))


def about_kind(kind: Kind) -> Kind:
    """Return what kinds of calls have in common whose sizes are about equal."""
    return tuple(map(_about, kind))


def _about(part: Any) -> Any:
    if type(part) is not tuple:
        return part
    first, second = part
    if isinstance(first, torch.Size):
        return tuple(map(_rounded, first)), second
    if isinstance(first, str):
        return first, about_kind(second)
    return first, _rounded(second) if first is int else second


def _rounded(extent: int) -> int:
    """Return a number that is the same for extents that are about equal."""
    size = abs(extent)
    if size < 2:
        return extent
    steps = round(_STEPS * math.log2(size))
    return steps if extent > 0 else -steps


def elements_of(kind: Kind) -> int:
    """Return how many elements the tensors of calls of a kind have."""
    count = 0
    for part in kind:
        if type(part) is tuple:
            first, second = part
            if isinstance(first, torch.Size):
                count += first.numel()
            elif isinstance(first, str):
                count += elements_of(second)
    return count


def text_of_kind(kind: Kind) -> str:
    """Return a kind of calls as readers see it."""
    return ", ".join(map(_text, kind))


def _text(part: Any) -> str:
    if isinstance(part, type):
        return part.__name__
    if isinstance(part, ClassKey):
        return part.name
    first, second = part
    if isinstance(first, torch.Size):
        dtype = str(second).removeprefix("torch.")
        return f"{dtype}[{', '.join(map(str, first))}]"
    return (
        text_of_scalar(second)
        if isinstance(first, type)
        else f"{first}={_text(second[0])}"
    )
