"""Owns writes to sets from before the run, which a hit repeats one by one.

The order of a set is that of its table, which follows from all that was done to it: a
hit has to call the same methods, with operands of the same size and order.
"""

from __future__ import annotations

from _collections_abc import dict_keys
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.contents import SETS, builtin_base, elements, keys_of
from magweld.frontend.state.mro import find_in_mro
from magweld.frontend.state.refgraph import RefGraph
from magweld.frontend.state.values import is_identity, is_plain_key, is_scalar

_ORDERED: Final[tuple[type, ...]] = (str, bytes, range, dict_keys)


@dataclass(frozen=True)
class SetWrite:
    """One call of a method of a set.

    Attributes:
        method: The method.
        items: What it was given, in order.
        operand: The set or dict that held them, None if there was none.
        twin: Another one of its size and order.
        spread: Whether the items were the arguments themselves.
    """

    method: Callable[..., Any]
    items: tuple[Any, ...]
    operand: Any = None
    twin: Any = None
    spread: bool = False


def note_set_write(
    graph: RefGraph, obj: Any, method: Callable[..., Any], *items: Any
) -> None:
    """Record a call of a method with single elements, or with none.

    Raises:
        StopRecordingError: The hash of an element runs code, or there is none.
    """
    if not graph.require(obj).external:
        return
    write = SetWrite(method, items, spread=True)
    _check_plain(write)
    # What is there cannot come, and what is not cannot go.
    idle = {set.add: True, set.discard: False}.get(method)
    if not items or (set.__contains__(obj, items[0]) is not idle):
        _note(graph, obj, write)


def note_set_operand(
    graph: RefGraph, obj: Any, method: Callable[..., Any], operand: Any
) -> None:
    """Record a call of a method that takes the elements of a collection.

    Raises:
        StopRecordingError: The hash of an element runs code, or there is none, or the
            order in which the collection gives them is not known.
    """
    if not graph.require(obj).external:
        return
    if operand is obj:
        raise StopRecordingError("native-operator", "a set with itself")
    items = _items(operand)
    # The table is made large enough for all elements of these at once.
    sized = type(operand) in (dict, *SETS)
    whole = (operand, _twin(operand, items)) if sized else (None, None)
    write = SetWrite(method, items, *whole)
    _check_plain(write)
    _note(graph, obj, write)


def _check_plain(write: SetWrite) -> None:
    for item in write.items:
        if not is_plain_key(item):
            raise StopRecordingError("opaque-key", type(item).__qualname__)


def _note(graph: RefGraph, obj: Any, write: SetWrite) -> None:
    graph.set_writes.setdefault(id(obj), []).append(write)


def _items(operand: Any) -> tuple[Any, ...]:
    base, kind = builtin_base(operand), type(operand)
    if type(find_in_mro(kind, "__iter__")) is not FunctionType:
        if base is dict:
            return tuple(keys_of(operand))
        if base is not None:
            return tuple(elements(operand))
        if kind in _ORDERED:
            return tuple(operand)
    raise StopRecordingError("native-operator", "a set filled by an iterator")


def _twin(operand: Any, items: tuple[Any, ...]) -> Any:
    plain = all(is_scalar(item) or is_identity(item) for item in items)
    if plain and type(operand) is dict:
        return dict.fromkeys(items)
    twin = type(operand).copy(operand) if plain else ()
    if tuple(twin) != items:
        raise StopRecordingError("native-operator", "a set with an order of its own")
    return twin
