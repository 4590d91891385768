"""Owns recipes: how an object that the run made is made again."""

from __future__ import annotations

import array
import functools
import gc
import operator
import sys
import types
from _collections_abc import dict_items, dict_keys, dict_values
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.expressions.expressions import Expression
from magweld.frontend.state.contents import (
    BOUNDS,
    base_class,
    cell_value,
    elements,
    keys_of,
    slot_value,
)
from magweld.frontend.state.iterators import REBUILDABLE, remake
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import (
    ABSENT,
    class_dict,
    is_immutable,
    mro,
    python_slots,
)
from magweld.frontend.state.natives import base_value, is_array
from magweld.frontend.state.nodes import Kind
from magweld.frontend.state.steps import (
    FUNCTION_FIELDS,
    Fill,
    Recipe,
    fill_function,
    fill_namespace,
    make_function,
    make_partial,
    replace_list,
    replace_set,
    set_cell,
)
from magweld.frontend.state.values import is_hashed_by_address


@dataclass(frozen=True)
class Lifted:
    """Takes the place of a part of an object: the value of an expression."""

    expression: Expression


# Gives what stands for a part of an object: holder, kind of slot, key, value.
Part = Callable[[Any, Kind, Any, Any], Any]


def recipe_for(obj: Any, part: Part) -> Recipe:
    """Return how to make an object like `obj`.

    Args:
        part: Gives what stands for the parts that it has in slots.

    Raises:
        StopRecordingError: Its native state is not known to be complete.
    """
    kind = type(obj)
    if kind in _CONTENT:
        return Recipe(kind, late=True, fills=_CONTENT[kind](obj, part))
    if kind in _BY_TYPE:
        return _BY_TYPE[kind](obj, part)
    return _array(obj) if is_array(obj) else _instance(obj, part)


def extend_dict(target: dict[Any, Any], items: list[Any]) -> None:
    """Fill a dict, or an instance of a subclass, from keys and values in turn."""
    owner = base_class(target)
    for key, value in zip(items[::2], items[1::2], strict=True):
        owner.__setitem__(target, key, value)


def _pairs(obj: Any, part: Part) -> tuple[Any, ...]:
    found: list[Any] = []
    for key, value in zip(keys_of(obj), elements(obj), strict=True):
        found += (key, part(obj, Kind.ITEM, key, value))
    return tuple(found)


def _items(obj: Any, base: Any, part: Part) -> tuple[Any, ...]:
    items = enumerate(base.__iter__(obj))
    return tuple(part(obj, Kind.INDEX, index, item) for index, item in items)


def _check_order(items: tuple[Any, ...]) -> None:
    # The order of iteration depends on how a set came about, and on hashes.
    varies = len(items) > 1 and any(map(is_hashed_by_address, items))
    if varies or tuple(set(items)) != items:
        raise StopRecordingError("result-object", "a set with an order of its own")


def _deque(obj: deque[Any], part: Part) -> Recipe:
    fills: tuple[Fill, ...] = ((deque.extend, tuple(obj)),)
    return Recipe(deque, ((), obj.maxlen), late=True, fills=fills)


def _defaults(obj: Any, part: Part) -> tuple[Fill, ...]:
    factory = defaultdict.__dict__["default_factory"]
    return ((extend_dict, _pairs(obj, part)), *_slot_fill(obj, factory, part))


def _tuple(obj: tuple[Any, ...], part: Part) -> Recipe:
    return Recipe(tuple, _items(obj, tuple, part), packed=True)


def _frozenset(obj: frozenset[Any], part: Part) -> Recipe:
    _check_order(tuple(obj))
    return Recipe(frozenset, tuple(obj), packed=True)


def _slice(obj: Any, part: Part) -> Recipe:
    slots = BOUNDS[type(obj)]
    parts = (part(obj, Kind.SLOT, slot, slot.__get__(obj)) for slot in slots)
    return Recipe(type(obj), tuple(parts))


def _method(obj: types.MethodType, part: Part) -> Recipe:
    return Recipe(types.MethodType, (obj.__func__, obj.__self__))


def _cell(obj: types.CellType, part: Part) -> Recipe:
    value = cell_value(obj)

    def fill(cell: types.CellType, parts: list[Any]) -> None:
        set_cell(cell, parts[0])

    content = (part(obj, Kind.CELL, None, value),)
    fills: tuple[Fill, ...] = () if value is ABSENT else ((fill, content),)
    return Recipe(types.CellType, late=True, fills=fills)


def _function(obj: types.FunctionType, part: Part) -> Recipe:
    parts = (
        obj.__code__,
        obj.__globals__,
        obj.__name__,
        obj.__defaults__,
        *(obj.__closure__ or ()),
    )
    fields = tuple(getattr(obj, name) for name in FUNCTION_FIELDS)
    fills = ((fill_function, fields), *namespace_fills(obj, part))
    return Recipe(make_function, parts, fills=fills)


def _partial(obj: functools.partial[Any], part: Part) -> Recipe:
    parts = (obj.func, obj.args, obj.keywords)
    return Recipe(make_partial, parts, fills=namespace_fills(obj, part))


def _iterator(obj: Any, part: Part) -> Recipe:
    found = remake(obj)
    if found is None:
        raise StopRecordingError("result-object", type(obj).__qualname__)
    return found


def _view(name: str) -> Callable[[Any, Part], Recipe]:
    def recipe(obj: Any, part: Part) -> Recipe:
        return Recipe(getattr(dict, name), (gc.get_referents(obj)[0],))

    return recipe


def _namespace(obj: types.SimpleNamespace, part: Part) -> Recipe:
    return Recipe(types.SimpleNamespace, late=True, fills=namespace_fills(obj, part))


def _proxy(obj: types.MappingProxyType[Any, Any], part: Part) -> Recipe:
    return Recipe(types.MappingProxyType, (gc.get_referents(obj)[0],))


def _copied(obj: Any, part: Part) -> Recipe:
    # The record keeps a copy of its own; a hit copies that.
    return Recipe(functools.partial(type(obj).__getitem__, obj[:], slice(None)))


def _array(obj: Any) -> Recipe:
    base = obj.base
    # Nobody else may see the memory: the view, the variable here, the argument below.
    shared = base is not None and (
        not is_array(base) or base.base is not None or sys.getrefcount(base) > 3
    )
    if shared or not obj.flags.writeable or obj.dtype.hasobject:
        raise StopRecordingError("result-object", "an array that borrows memory")
    return Recipe(functools.partial(type(obj).copy, obj.copy("K"), "K"))


_GETTERS: Final = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
_BY_TYPE: Final[dict[type, Callable[[Any, Part], Recipe]]] = {
    functools.partial: _partial,
    **dict.fromkeys((*REBUILDABLE, *_GETTERS), _iterator),
    deque: _deque,
    tuple: _tuple,
    frozenset: _frozenset,
    slice: _slice,
    range: _slice,
    types.MethodType: _method,
    types.CellType: _cell,
    types.FunctionType: _function,
    dict_keys: _view("keys"),
    dict_values: _view("values"),
    dict_items: _view("items"),
    array.array: _copied,
    bytearray: _copied,
    types.MappingProxyType: _proxy,
    types.SimpleNamespace: _namespace,
}


def namespace_fills(obj: Any, part: Part) -> tuple[Fill, ...]:
    """Return what fills the instance dict of a new object."""
    namespace = instance_dict(obj)
    return ((fill_namespace, _pairs(namespace, part)),) if namespace else ()


def _slot_fills(obj: Any, part: Part) -> tuple[Fill, ...]:
    slots = python_slots(type(obj))
    return tuple(fill for slot in slots for fill in _slot_fill(obj, slot, part))


def _slot_fill(obj: Any, descriptor: Any, part: Part) -> list[Fill]:
    value = slot_value(obj, descriptor)
    if value is ABSENT:
        return []

    def fill(target: Any, parts: list[Any]) -> None:
        descriptor.__set__(target, parts[0])

    return [(fill, (part(obj, Kind.SLOT, descriptor, value),))]


def _set_content(obj: Any, part: Part) -> tuple[Fill, ...]:
    items = tuple(set.__iter__(obj))
    _check_order(items)
    return ((replace_set, items),)


_CONTENT: Final[dict[type, Callable[[Any, Part], tuple[Fill, ...]]]] = {
    object: lambda obj, part: (),
    dict: lambda obj, part: ((extend_dict, _pairs(obj, part)),),
    OrderedDict: lambda obj, part: ((extend_dict, _pairs(obj, part)),),
    defaultdict: _defaults,
    list: lambda obj, part: ((replace_list, _items(obj, list, part)),),
    set: _set_content,
}


def _instance(obj: Any, part: Part) -> Recipe:
    """Return the recipe for an instance of a class written in Python."""
    cls = type(obj)
    native = next(base for base in mro(cls) if is_immutable(base))
    if issubclass(native, tuple):
        return _tuple_instance(obj, part)
    if issubclass(native, BaseException):
        return _exception(obj, native, part)
    if native in (int, float, complex, str, bytes):
        fills = (*namespace_fills(obj, part), *_slot_fills(obj, part))
        return Recipe(native.__new__, (cls, base_value(obj)), fills=fills)
    content = _CONTENT.get(native)
    if content is None or is_immutable(cls):
        raise StopRecordingError("result-object", cls.__qualname__)
    fills = (*content(obj, part), *namespace_fills(obj, part), *_slot_fills(obj, part))
    return Recipe(native.__new__, (cls,), late=True, fills=fills)


def _exception(obj: BaseException, native: Any, part: Part) -> Recipe:
    # One that was raised holds the frames of the run.
    links = (obj.__traceback__, obj.__cause__, obj.__context__)
    if native.__basicsize__ != BaseException.__basicsize__ or any(links):
        raise StopRecordingError("result-object", type(obj).__qualname__)
    fills = (*namespace_fills(obj, part), *_slot_fills(obj, part))
    return Recipe(native.__new__, (type(obj), *obj.args), fills=fills)


def _tuple_instance(obj: Any, part: Part) -> Recipe:
    cls = type(obj)
    items = _items(obj, tuple, part)
    if is_immutable(cls) or "n_sequence_fields" in class_dict(cls):
        return Recipe(cls, items, packed=True)

    def make(parts: list[Any]) -> Any:
        return tuple.__new__(cls, parts)

    return Recipe(make, items, packed=True, fills=namespace_fills(obj, part))
