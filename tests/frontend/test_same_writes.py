"""Writes that change nothing in the recorded run do so on a hit that finds other state.

Each program writes what is there already when it is recorded.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import pytest
import torch

from magweld.frontend import trace

X = torch.ones(2)
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")
SHARED: Any = None


class Named:
    """An object that shows its name only."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class Holder:
    """An object with one attribute."""

    def __init__(self, a: Any) -> None:
        self.a = a


class Slotted:
    """An object with one slot."""

    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a


class Common:
    """A class with an attribute."""

    a: Any = None


def set_variable(_: Any, new: Any) -> torch.Tensor:
    VARIABLE.set(new)
    return X + 1


def set_variable_to_itself(_: Any, new: Any) -> torch.Tensor:
    VARIABLE.set(VARIABLE.get())
    return X + 1


def set_and_reset(_: Any, new: Any) -> torch.Tensor:
    VARIABLE.reset(VARIABLE.set(new))
    return X + 1


def set_attribute(holder: Any, new: Any) -> torch.Tensor:
    holder.a = new
    return X + 1


def set_attribute_to_itself(holder: Any, new: Any) -> torch.Tensor:
    holder.a = holder.a
    return X + 1


def delete_and_set(holder: Any, new: Any) -> torch.Tensor:
    old = holder.a
    del holder.a
    holder.a = old
    return X + 1


def set_global(_: Any, new: Any) -> torch.Tensor:
    global SHARED
    SHARED = new
    return X + 1


def set_class_attribute(_: Any, new: Any) -> torch.Tensor:
    Common.a = new
    return X + 1


def set_item(items: Any, new: Any) -> torch.Tensor:
    items[0] = new
    return X + 1


def set_default(items: Any, new: Any) -> torch.Tensor:
    items.setdefault("k", new)
    return X + 1


def set_key(items: Any, new: Any) -> torch.Tensor:
    items["k"] = new
    return X + 1


def add_element(elements: Any, new: Any) -> torch.Tensor:
    elements.add(new)
    return X + 1


def discard_element(elements: Any, new: Any) -> torch.Tensor:
    elements.discard(new)
    return X + 1


def add_and_discard(elements: Any, new: Any) -> torch.Tensor:
    elements.add(new)
    elements.discard(new)
    return X + 1


def exchange(items: Any, new: Any) -> torch.Tensor:
    items[0], items[1] = items[1], items[0]
    return X + 1


LEFT, RIGHT = Named("left"), Named("right")
# What is there, and what is written: the same at first.
PAIRS = ((LEFT, LEFT), (RIGHT, LEFT), (LEFT, RIGHT), (3, 3), (4, 3), (3, 4), (3.0, 3))
CASES: list[tuple[Callable[..., Any], Callable[[Any], Any]]] = [
    (set_variable, lambda old: None),
    (set_variable_to_itself, lambda old: None),
    (set_and_reset, lambda old: None),
    (set_global, lambda old: None),
    (set_class_attribute, lambda old: None),
    (set_attribute, Holder),
    (set_attribute_to_itself, Holder),
    (delete_and_set, Holder),
    (set_attribute, Slotted),
    (set_attribute_to_itself, Slotted),
    (set_item, lambda old: [old, 1]),
    (set_item, lambda old: {0: old, 1: 2}),
    (set_item, lambda old: {False: old}),
    (set_default, lambda old: {"k": old}),
    (set_key, lambda old: {"z": 1, "k": old}),
    (add_element, lambda old: {old}),
    (discard_element, lambda old: {old, 7}),
    (add_and_discard, lambda old: {old}),
    (exchange, lambda old: [old, LEFT]),
]


def outcome(function: Callable[..., Any], make: Any, old: Any, new: Any) -> str:
    """What a call leaves, and all state that it may have written."""
    global SHARED
    VARIABLE.set(old)
    SHARED = Common.a = old
    target = make(old)
    result = function(target, new).tolist()
    content = target.a if isinstance(target, (Holder, Slotted)) else target
    return repr((result, content, VARIABLE.get(), SHARED, Common.a))


@pytest.mark.parametrize(("program", "make"), CASES)
def test_other_state_gets_what_was_there_already(
    program: Callable[..., Any], make: Callable[[Any], Any]
) -> None:
    traced = trace(program, backend="eager")
    for old, new in (*PAIRS, *reversed(PAIRS)):
        mine = outcome(traced, make, old, new)
        assert mine == outcome(program, make, old, new), traced.explain()
    assert traced.stats()["hits"] > 0


def test_a_variable_holds_a_lifted_number() -> None:
    traced = trace(set_variable, backend="eager", dynamic={"new": True})
    for old, new in ((5, 5), (5, 6), (5, 7), (6, 5), (5, 5)):
        mine = outcome(traced, bool, old, new)
        assert mine == outcome(set_variable, bool, old, new)
