"""Owns what objects consist of: their own data, and the parts that lead further."""

from __future__ import annotations

import collections
import contextvars
import enum
import functools
import os
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import torch

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.rules.protocols import ITERATORS, VIEW_TYPES
from magweld.frontend.session.admission import OWN_CODE
from magweld.frontend.state.contents import (
    builtin_base,
    cell_value,
    elements,
    isinstance_exactly,
    keys_of,
    slot_value,
)
from magweld.frontend.state.lookup import instance_dict
from magweld.frontend.state.mro import (
    ABSENT,
    class_dict,
    is_class,
    is_immutable,
    mro,
    target_slot,
)
from magweld.frontend.state.values import exact, is_identity, is_scalar

Part = tuple[str, Any]

_LIBRARIES: Final = (
    os.path.dirname(os.path.abspath(os.__file__)) + os.sep,
    os.path.dirname(os.path.abspath(torch.__file__)) + os.sep,
    OWN_CODE,
)
_PACKAGES: Final = f"{os.sep}site-packages{os.sep}"


class View(NamedTuple):
    """One object as the differential mode sees it.

    Attributes:
        data: What the object is apart from its parts, compared with `==`.
        parts: Names and objects that it leads to, in order.
    """

    data: Any
    parts: list[Part]


def is_library_file(filename: str) -> bool:
    """Return whether code in a file belongs to Python, to torch or to magweld."""
    if not filename.startswith(_LIBRARIES):
        return False
    return _PACKAGES not in filename.removeprefix(_LIBRARIES[1]).removeprefix(OWN_CODE)


def is_library(obj: Any) -> bool:
    """Return whether a function, class or module belongs to a library."""
    if type(obj) is types.FunctionType:
        # A decorator of a library makes functions with state of the user's.
        return not obj.__closure__ and is_library_file(obj.__code__.co_filename)
    if is_class(obj) and is_immutable(obj):
        return True
    name = class_dict(obj).get("__module__") if is_class(obj) else obj.__name__
    module = sys.modules.get(name) if type(name) is str else None
    if module is None:
        return False
    filename = module.__dict__.get("__file__")
    if type(filename) is not str:
        return name in sys.builtin_module_names
    return is_library_file(filename)


@functools.lru_cache(maxsize=4096)
def code_names(code: types.CodeType) -> list[str]:
    """Return the names that a code object and those in it refer to."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            names |= dict.fromkeys(code_names(constant))
    return list(names)


def slots_of(obj: Any) -> Iterator[tuple[str, Any]]:
    """Yield the member descriptors of Python classes that an object has.

    A traced program is what it stands for; its records are no state of the program.
    """
    target = target_slot(type(obj))
    own = None if target is None else target.__objclass__
    for cls in mro(type(obj)):
        if is_immutable(cls):
            continue
        for name, value in class_dict(cls).items():
            if type(value) is not types.MemberDescriptorType:
                continue
            if value is target or value.__objclass__ is not own:
                yield name, value


def _function(obj: types.FunctionType) -> View:
    code = obj.__code__
    parts: list[Part] = [
        ("__defaults__", obj.__defaults__),
        ("__kwdefaults__", obj.__kwdefaults__),
    ]
    cells = zip(code.co_freevars, obj.__closure__ or (), strict=True)
    parts += [(f"<{name}>", cell) for name, cell in cells]
    if not is_library_file(code.co_filename):
        space = obj.__globals__
        names = [name for name in code_names(code) if name in space]
        parts += [(f"<{name}>", space[name]) for name in names]
    return View(code, parts + _namespace(obj))


def _namespace(obj: Any) -> list[Part]:
    space = instance_dict(obj)
    return [] if space is None else [(str(name), space[name]) for name in space]


_HIDDEN: Final = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__"}
    | {"_abc_impl", "__annotations__", "__dataclass_fields__", "__dataclass_params__"}
)


# Made with the class, and told by its layout.
_DESCRIPTORS: Final = (
    types.MemberDescriptorType,
    types.GetSetDescriptorType,
    collections._tuplegetter,  # type: ignore[attr-defined]
)


def _class(obj: type) -> View:
    space = class_dict(obj)
    parts = [
        (name, space[name])
        for name in space
        if name not in _HIDDEN and type(space[name]) not in _DESCRIPTORS
    ]
    bases = [(f"__bases__[{i}]", base) for i, base in enumerate(obj.__bases__)]
    return View(obj.__qualname__, bases + parts)


def _instance(obj: Any) -> View:
    base = builtin_base(obj)
    parts: list[Part] = [] if base is None else _CONTENTS[base](obj)
    parts += _namespace(obj)
    parts += [
        (name, slot_value(obj, descriptor))
        for name, descriptor in slots_of(obj)
        if slot_value(obj, descriptor) is not ABSENT
    ]
    limit = obj.maxlen if base is deque else None
    return View(limit, parts)


def _elements(obj: Any) -> list[Part]:
    base = builtin_base(obj)
    assert base is not None, "a container is expected"
    return [(f"[{i}]", item) for i, item in enumerate(base.__iter__(obj))]


def _entries(obj: Any) -> list[Part]:
    parts: list[Part] = []
    try:
        keys, values = keys_of(obj), elements(obj)
    except StopRecordingError:
        keys, values = list(dict.keys(obj)), list(dict.values(obj))
    for key, value in zip(keys, values, strict=True):
        if not is_scalar(key):
            parts.append((f".key({type(key).__name__})", key))
        parts.append((f"[{key!r}]" if is_scalar(key) else "[...]", value))
    scalars = [exact(key) for key in keys if is_scalar(key)]
    return [("<keys>", _Data(scalars)), *parts]


class _Data(NamedTuple):
    """Data that is compared as a whole."""

    value: Any


_CONTENTS: Final[dict[type, Callable[[Any], list[Part]]]] = {
    dict: _entries,
    list: _elements,
    tuple: _elements,
    deque: _elements,
    set: _elements,
    frozenset: _elements,
}

_FIELDS: Final[dict[type, tuple[str, ...]]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    range: ("start", "stop", "step"),
    slice: ("start", "stop", "step"),
}


def _bound(obj: Any) -> View:
    # A native method is bound anew by each look-up.
    return View(obj.__name__, [("__self__", obj.__self__)])


_NOT_BOUND: Final = (type(None), types.ModuleType)
_BOUND: Final = (types.BuiltinFunctionType, types.MethodWrapperType)


def _fields(obj: Any) -> View:
    return View(None, [(name, getattr(obj, name)) for name in _FIELDS[type(obj)]])


def _cell(obj: types.CellType) -> View:
    value = cell_value(obj)
    return View(value is ABSENT, [] if value is ABSENT else [("content", value)])


def _context(obj: contextvars.ContextVar[Any]) -> View:
    value = obj.get(ABSENT)
    parts = [] if value is ABSENT else [("value", value)]
    return View(obj.name, parts)


def _factory(obj: defaultdict[Any, Any]) -> View:
    view = _instance(obj)
    return View(view.data, [("default_factory", obj.default_factory), *view.parts])


def _exception(obj: BaseException) -> View:
    return View(None, [("args", obj.args), *_namespace(obj)])


_BY_TYPE: Final[dict[type, Callable[[Any], View]]] = {
    types.FunctionType: _function,
    types.CellType: _cell,
    contextvars.ContextVar: _context,
    defaultdict: _factory,
    **dict.fromkeys(_FIELDS, _fields),
    **dict.fromkeys(_BOUND, _bound),
}

# Iterators: what is left in them can neither be looked at nor put back.
CONSUMABLE: Final[frozenset[type]] = (ITERATORS - VIEW_TYPES) | {
    types.CoroutineType,
    types.AsyncGeneratorType,
}


def is_consumable(obj: Any) -> bool:
    """Return whether an object is an iterator of Python itself."""
    return type(obj) in CONSUMABLE or type(obj).__module__ == "itertools"


def is_atom(obj: Any) -> bool:
    """Return whether an object is compared by identity: nothing leads further."""
    if type(obj) is object or isinstance_exactly(
        obj, property, staticmethod, classmethod
    ):
        return False
    if type(obj) is types.FunctionType:
        # Those within functions are made anew by each call.
        return is_library(obj) and "<locals>" not in obj.__qualname__
    if is_class(obj):
        return is_library(obj)
    if isinstance_exactly(obj, enum.Enum):
        return is_library(type(obj))
    if type(obj) in _BOUND:
        return type(obj.__self__) in _NOT_BOUND
    return is_identity(obj)


def view_of(obj: Any) -> View:
    """Return what an object consists of; it is no scalar, atom or tensor."""
    if type(obj) is _Data:
        return View(obj.value, [])
    special = _BY_TYPE.get(type(obj))
    if special is not None:
        return special(obj)
    if is_class(obj):
        return _class(obj)
    if isinstance_exactly(obj, BaseException):
        return _exception(obj)
    return _instance(obj)
