"""Fixtures for programs of one tensor and one piece of state that changes."""

from __future__ import annotations

import array
import collections
import copy
import itertools
import random
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from magweld.frontend.traced import trace

_VIEWS = tuple(type(view) for view in ({}.keys(), {}.values(), {}.items()))


def _pairs_of(obj: Any) -> list[Any]:
    if isinstance(obj, (dict, types.MappingProxyType)):
        return [*obj.keys(), *obj.values(), getattr(obj, "default_factory", None)]
    if isinstance(obj, collections.deque):
        return [*obj, obj.maxlen]
    if isinstance(obj, (list, tuple, *_VIEWS)):
        return list(obj)
    if isinstance(obj, BaseException):
        return [*obj.args]
    if hasattr(obj, "__next__"):
        return list(itertools.islice(copy.copy(obj), 20))
    slots = [s for c in type(obj).__mro__ for s in vars(c).get("__slots__", ())]
    return [(name, getattr(obj, name, None)) for name in slots]


def same(left: Any, right: Any) -> bool:
    """Return whether two objects agree in type, structure, values and attributes."""
    if type(left).__qualname__ != type(right).__qualname__:
        return False
    if isinstance(left, torch.Tensor):
        form = left.dtype == right.dtype and left.stride() == right.stride()
        return form and torch.equal(left, right)
    if isinstance(left, (np.ndarray, np.generic)):
        form = left.dtype == right.dtype and left.shape == right.shape
        return form and left.tobytes() == right.tobytes()
    if isinstance(left, (int, float, str, bytes, bytearray, array.array, set, type)):
        return repr(left) == repr(right) or left == right
    if left is right or isinstance(left, (range, slice, frozenset)):
        return left == right
    if isinstance(left, types.FunctionType):
        return left.__code__ is right.__code__
    mine, theirs = _pairs_of(left), _pairs_of(right)
    attributes = [
        vars(obj) if hasattr(obj, "__dict__") else {} for obj in (left, right)
    ]
    return (
        len(mine) == len(theirs)
        and all(map(same, mine, theirs))
        and list(attributes[0]) == list(attributes[1])
        and all(map(same, attributes[0].values(), attributes[1].values()))
    )


def _run(function: Callable[..., Any], state: Any) -> tuple[Any, ...]:
    x = torch.tensor([1.0, -2.0, 3.0])
    random.seed(5)
    torch.manual_seed(5)
    result = function(x, state)
    return result, state, x, random.random(), float(torch.rand(1))


@pytest.fixture
def follow() -> Callable[..., None]:
    """Return a check: a state is recorded at most once and then answered by records.

    Results, what became of the state and of the tensor, and random numbers afterwards
    are those of an eager run, also when an earlier state comes back.
    """

    def check(program: Callable[..., Any], *states: Callable[[], Any]) -> None:
        traced = trace(program, backend="eager", dynamic=False)
        for number, make in enumerate((*states, *states)):
            for repetition in range(2):
                mine, theirs = _run(traced, make()), _run(program, make())
                assert same(mine, theirs), (mine, theirs, traced.explain())
                hits = 2 * number + repetition - min(number, len(states) - 1)
                assert traced.stats()["hits"] >= hits, traced.explain()

    return check
