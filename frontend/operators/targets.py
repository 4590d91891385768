"""Owns the form of a torch call as a graph node: operation, target, arguments."""

from __future__ import annotations

import functools
import operator
from types import FunctionType
from typing import Any

import torch
from torch.fx.node import _get_qualified_name

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.mro import class_dict, mro

Call = tuple[str, Any, tuple[Any, ...]]


@functools.cache
def _methods() -> dict[int, str]:
    # Operators such as `__pow__` are functions that carry the name of another.
    return {
        id(value): name
        for cls in reversed(mro(torch.Tensor))
        for name, value in class_dict(cls).items()
        if type(value) is FunctionType
    }


def call_of(func: Any, name: str, args: tuple[Any, ...]) -> Call:
    """Return how a graph repeats a torch call.

    Args:
        func: The function that the torch function mode saw.
        name: As `name_of` tells it.
        args: Its positional arguments, converted.

    Raises:
        StopRecordingError: Generated code would not find the function by its name.
    """
    if name.startswith("get "):
        return ("call_function", getattr, (*args[:1], name[4:]))
    if name == "__setitem__":
        return ("call_function", operator.setitem, args)
    if name == "__getitem__":
        return ("call_function", operator.getitem, args)
    if getattr(torch.Tensor, name, None) is func:
        return ("call_method", name, args)
    if type(func) is FunctionType:
        method = _methods().get(id(func))
        if method is not None:
            return ("call_method", method, args)
        _check_name(func)
    return ("call_function", func, args)


def _check_name(func: FunctionType) -> None:
    path = _get_qualified_name(func).split(".")
    if path[0] != "torch":
        return
    found: Any = torch
    for part in path[1:]:
        found = getattr(found, part, None)
    if found is not func:
        raise StopRecordingError("operator-argument", func.__qualname__)
