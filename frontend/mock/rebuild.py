"""Owns recipes: how an object that the run made is made again."""

from __future__ import annotations

import array
import functools
import gc
import operator
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.state.contents import cell_value, elements, keys_of, slot_value
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
from magweld.frontend.state.recipes import Fill, Recipe
from magweld.frontend.state.steps import (
    FUNCTION_FIELDS,
    fill_function,
    fill_namespace,
    make_function,
    make_partial,
    replace_list,
    replace_set,
    set_cell,
)
from magweld.frontend.state.values import is_hashed_by_address


def recipe_for(obj: Any) -> Recipe:
    """Return how to make an object like `obj`.

    Raises:
        StopRecordingError: Its native state is not known to be complete.
    """
    kind = type(obj)
    if kind in _CONTENT:
        return Recipe(kind, late=True, fills=_CONTENT[kind](obj))
    if kind in _BY_TYPE:
        return _BY_TYPE[kind](obj)
    return _array(obj) if is_array(obj) else _instance(obj)


def extend_dict(target: dict[Any, Any], items: list[Any]) -> None:
    """Fill a dict, or an instance of a subclass, from keys and values in turn."""
    owner = OrderedDict if isinstance(target, OrderedDict) else dict
    for key, value in zip(items[::2], items[1::2], strict=True):
        owner.__setitem__(target, key, value)


def _pairs(obj: Any) -> tuple[Any, ...]:
    entries = zip(keys_of(obj), elements(obj), strict=True)
    return tuple(part for entry in entries for part in entry)


def _check_order(items: tuple[Any, ...]) -> None:
    # The order of iteration depends on how a set came about, and on hashes.
    varies = len(items) > 1 and any(map(is_hashed_by_address, items))
    if varies or tuple(set(items)) != items:
        raise StopRecordingError("result-object", "a set with an order of its own")


def _deque(obj: deque[Any]) -> Recipe:
    fills: tuple[Fill, ...] = ((deque.extend, tuple(obj)),)
    return Recipe(deque, ((), obj.maxlen), late=True, fills=fills)


def _defaults(obj: Any) -> tuple[Fill, ...]:
    factory = defaultdict.__dict__["default_factory"]
    return ((extend_dict, _pairs(obj)), *_slot_fill(obj, factory))


def _tuple(obj: tuple[Any, ...]) -> Recipe:
    return Recipe(tuple, tuple(obj), packed=True)


def _frozenset(obj: frozenset[Any]) -> Recipe:
    _check_order(tuple(obj))
    return Recipe(frozenset, tuple(obj), packed=True)


def _slice(obj: Any) -> Recipe:
    return Recipe(type(obj), (obj.start, obj.stop, obj.step))


def _method(obj: types.MethodType) -> Recipe:
    return Recipe(types.MethodType, (obj.__func__, obj.__self__))


def _cell(obj: types.CellType) -> Recipe:
    value = cell_value(obj)

    def fill(cell: types.CellType, parts: list[Any]) -> None:
        set_cell(cell, parts[0])

    fills: tuple[Fill, ...] = () if value is ABSENT else ((fill, (value,)),)
    return Recipe(types.CellType, late=True, fills=fills)


def _function(obj: types.FunctionType) -> Recipe:
    parts = (
        obj.__code__,
        obj.__globals__,
        obj.__name__,
        obj.__defaults__,
        *(obj.__closure__ or ()),
    )
    fields = tuple(getattr(obj, name) for name in FUNCTION_FIELDS)
    fills = ((fill_function, fields), *namespace_fills(obj))
    return Recipe(make_function, parts, fills=fills)


def _partial(obj: functools.partial[Any]) -> Recipe:
    parts = (obj.func, obj.args, obj.keywords)
    return Recipe(make_partial, parts, fills=namespace_fills(obj))


def _iterator(obj: Any) -> Recipe:
    found = remake(obj)
    if found is None:
        raise StopRecordingError("result-object", type(obj).__qualname__)
    return found


def _view(name: str) -> Callable[[Any], Recipe]:
    def recipe(obj: Any) -> Recipe:
        return Recipe(getattr(dict, name), (gc.get_referents(obj)[0],))

    return recipe


def _namespace(obj: types.SimpleNamespace) -> Recipe:
    return Recipe(types.SimpleNamespace, late=True, fills=namespace_fills(obj))


def _proxy(obj: types.MappingProxyType[Any, Any]) -> Recipe:
    return Recipe(types.MappingProxyType, (gc.get_referents(obj)[0],))


def _copied(obj: Any) -> Recipe:
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


_EMPTY: Final[dict[int, int]] = {}
_GETTERS: Final = (operator.attrgetter, operator.itemgetter, operator.methodcaller)
_BY_TYPE: Final[dict[type, Callable[[Any], Recipe]]] = {
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
    **{type(getattr(_EMPTY, n)()): _view(n) for n in ("keys", "values", "items")},
    array.array: _copied,
    bytearray: _copied,
    types.MappingProxyType: _proxy,
    types.SimpleNamespace: _namespace,
}


def namespace_fills(obj: Any) -> tuple[Fill, ...]:
    """Return what fills the instance dict of a new object."""
    namespace = instance_dict(obj)
    return ((fill_namespace, _pairs(namespace)),) if namespace else ()


def _slot_fills(obj: Any) -> tuple[Fill, ...]:
    slots = python_slots(type(obj))
    return tuple(fill for slot in slots for fill in _slot_fill(obj, slot))


def _slot_fill(obj: Any, descriptor: Any) -> list[Fill]:
    value = slot_value(obj, descriptor)
    if value is ABSENT:
        return []

    def fill(target: Any, parts: list[Any]) -> None:
        descriptor.__set__(target, parts[0])

    return [(fill, (value,))]


def _set_content(obj: Any) -> tuple[Fill, ...]:
    items = tuple(set.__iter__(obj))
    _check_order(items)
    return ((replace_set, items),)


_CONTENT: Final[dict[type, Callable[[Any], tuple[Fill, ...]]]] = {
    object: lambda obj: (),
    dict: lambda obj: ((extend_dict, _pairs(obj)),),
    OrderedDict: lambda obj: ((extend_dict, _pairs(obj)),),
    defaultdict: _defaults,
    list: lambda obj: ((replace_list, tuple(list.__iter__(obj))),),
    set: _set_content,
}


def _instance(obj: Any) -> Recipe:
    """Return the recipe for an instance of a class written in Python."""
    cls = type(obj)
    native = next(base for base in mro(cls) if is_immutable(base))
    if issubclass(native, tuple):
        return _tuple_instance(obj)
    if issubclass(native, BaseException):
        return _exception(obj, native)
    if native in (int, float, complex, str, bytes):
        fills = (*namespace_fills(obj), *_slot_fills(obj))
        return Recipe(native.__new__, (cls, base_value(obj)), fills=fills)
    content = _CONTENT.get(native)
    if content is None or is_immutable(cls):
        raise StopRecordingError("result-object", cls.__qualname__)
    fills = (*content(obj), *namespace_fills(obj), *_slot_fills(obj))
    return Recipe(native.__new__, (cls,), late=True, fills=fills)


def _exception(obj: BaseException, native: Any) -> Recipe:
    # One that was raised holds the frames of the run.
    links = (obj.__traceback__, obj.__cause__, obj.__context__)
    if native.__basicsize__ != BaseException.__basicsize__ or any(links):
        raise StopRecordingError("result-object", type(obj).__qualname__)
    fills = (*namespace_fills(obj), *_slot_fills(obj))
    return Recipe(native.__new__, (type(obj), *obj.args), fills=fills)


def _tuple_instance(obj: Any) -> Recipe:
    cls = type(obj)
    items = tuple(tuple.__iter__(obj))
    if is_immutable(cls) or "n_sequence_fields" in class_dict(cls):
        return Recipe(cls, items, packed=True)

    def make(parts: list[Any]) -> Any:
        return tuple.__new__(cls, parts)

    return Recipe(make, items, packed=True, fills=namespace_fills(obj))
