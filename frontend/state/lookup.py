"""Owns static attribute lookup: what the interpreter will find, without running it."""

from __future__ import annotations

import collections
import functools
import types
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from magweld.frontend.state.mro import (
    ABSENT,
    find_after,
    find_in_mro,
    is_class,
    is_immutable,
)


class Lookup(Enum):
    """How an attribute is found."""

    # That of the base class is a function of Python and runs at every look-up.
    __hash__ = object.__hash__

    INSTANCE = auto()  # in the instance dict, or in the dict of a module
    SLOT = auto()  # a member descriptor
    NATIVE_GETTER = auto()  # a getset descriptor
    PROPERTY = auto()  # a property; `value` is the property object
    METHOD = auto()  # a Python function in the class, to be bound
    NATIVE_METHOD = auto()  # a native method in the class, to be bound
    CLASS_VALUE = auto()  # a class attribute as it is
    STATIC = auto()  # `value` is the staticmethod object
    CLASS_METHOD = auto()  # `value` is the classmethod object
    PYTHON_DESCRIPTOR = auto()  # an object with a `__get__` in Python
    PYTHON_HOOK = auto()  # `__getattr__` or `__getattribute__` in Python
    TUPLE_FIELD = auto()  # a named element of a tuple
    OPAQUE = auto()  # native code decides
    ABSENT = auto()


class Found(NamedTuple):
    """Result of a lookup.

    Attributes:
        how: How the attribute is found.
        value: What was found, before any binding; ABSENT if nothing.
    """

    how: Lookup
    value: Any


def instance_dict(obj: Any) -> dict[str, Any] | None:
    """Return the instance dict itself, or None when there is none to trust."""
    getter = namespace_getter(type(obj))
    namespace = None if getter is None else getter(obj)
    return namespace if type(namespace) is dict else None


def namespace_getter(cls: type) -> Callable[[Any], Any] | None:
    """Return what gives the instance dicts of a class, or None."""
    descriptor = find_in_mro(cls, "__dict__")
    native = type(descriptor) is types.MemberDescriptorType
    if type(descriptor) is not types.GetSetDescriptorType and not (
        native and is_immutable(descriptor.__objclass__)
    ):
        return None
    getter: Callable[[Any], Any] = descriptor.__get__
    return getter


def is_data_descriptor(value: Any) -> bool:
    """Return whether what a class holds comes before the instance dict."""
    kind = type(value)
    if kind in (types.FunctionType, staticmethod, classmethod):
        return False
    return (
        find_in_mro(kind, "__set__") is not ABSENT
        or find_in_mro(kind, "__delete__") is not ABSENT
    )


_PROBE: Any = collections.namedtuple("_PROBE", "field")  # noqa: PYI024
_TUPLE_GETTER: Final = type(_PROBE.field)

_BY_DESCRIPTOR_TYPE: Final = {
    types.FunctionType: Lookup.METHOD,
    types.MethodDescriptorType: Lookup.NATIVE_METHOD,
    types.WrapperDescriptorType: Lookup.NATIVE_METHOD,
    types.ClassMethodDescriptorType: Lookup.NATIVE_METHOD,
    functools._lru_cache_wrapper: Lookup.NATIVE_METHOD,
    types.GetSetDescriptorType: Lookup.NATIVE_GETTER,
    types.MemberDescriptorType: Lookup.SLOT,
    _TUPLE_GETTER: Lookup.TUPLE_FIELD,
    property: Lookup.PROPERTY,
    staticmethod: Lookup.STATIC,
    classmethod: Lookup.CLASS_METHOD,
}


def describe(value: Any) -> Found:
    """Return how an attribute that was found in a class is turned into a result."""
    how = _BY_DESCRIPTOR_TYPE.get(type(value))
    if how is not None:
        return Found(how, value)
    getter = find_in_mro(type(value), "__get__")
    if getter is ABSENT:
        return Found(Lookup.CLASS_VALUE, value)
    if type(getter) is types.FunctionType:
        return Found(Lookup.PYTHON_DESCRIPTOR, value)
    if issubclass(type(value), property):
        return Found(Lookup.PROPERTY, value)
    return Found(Lookup.OPAQUE, value)


# Types whose own `__getattribute__` does not search as that of `object` does.
_CUSTOM_GETTERS: Final = (types.MethodType, types.GenericAlias)


def is_generic(getter: Any) -> bool:
    """Return whether `__getattribute__` searches as that of `object` does."""
    # Built-in types repeat the generic getter in their own namespace.
    if type(getter) is not types.WrapperDescriptorType:
        return False
    owner = getter.__objclass__
    return owner not in _CUSTOM_GETTERS and owner.__module__ in _PLAIN_MODULES


_PLAIN_MODULES: Final = (
    "_contextvars",
    "_thread",
    "array",
    "builtins",
    "collections",
    "functools",
    "numpy",
    "types",
)


def lookup(obj: Any, name: str) -> Found:
    """Return how `obj.name` will be found; runs no code of the user's."""
    kind = type(obj)
    if kind is super:
        return _lookup_super(obj, name)
    getter = find_in_mro(kind, "__getattribute__")
    if not is_generic(getter):
        python = type(getter) is types.FunctionType
        return Found(Lookup.PYTHON_HOOK if python else Lookup.OPAQUE, getter)
    return lookup_generic(obj, name, hook=True)


def lookup_generic(obj: Any, name: str, hook: bool = False) -> Found:
    """Return what `object.__getattribute__` will find, or that of a class or module.

    Args:
        obj: Where to look.
        name: What for.
        hook: Whether `__getattr__` is asked in the end.
    """
    if is_class(obj):
        return _lookup_class(obj, name)
    return Finder(type(obj), name).find(obj, hook)


class Finder:
    """How one attribute of all instances of a class is found, as `object` finds it."""

    __slots__ = ("_first", "_getter", "_last", "_name")

    def __init__(self, cls: type, name: str) -> None:
        self._name = name
        self._getter = namespace_getter(cls)
        in_class = find_in_mro(cls, name)
        found = None if in_class is ABSENT else describe(in_class)
        data = found is not None and is_data_descriptor(in_class)
        self._first = found if data else None
        self._last = found

    def find(self, obj: Any, hook: bool = True) -> Found:
        """Return how it is found in an instance.

        Args:
            hook: Whether `__getattr__` is asked in the end.
        """
        if self._first is not None:
            return self._first
        namespace = None if self._getter is None else self._getter(obj)
        if type(namespace) is not dict:
            namespace = None
        elif self._name in namespace:
            return Found(Lookup.INSTANCE, namespace[self._name])
        if self._last is not None:
            return self._last
        return find_hook(obj, namespace) if hook else Found(Lookup.ABSENT, ABSENT)


def find_hook(obj: Any, namespace: dict[str, Any] | None) -> Found:
    """Return what `__getattr__` is asked when nothing else is found."""
    hook = find_in_mro(type(obj), "__getattr__")
    if hook is ABSENT and type(obj) is types.ModuleType and namespace is not None:
        hook = namespace.get("__getattr__", ABSENT)
    if type(hook) is types.FunctionType:
        return Found(Lookup.PYTHON_HOOK, hook)
    return Found(Lookup.ABSENT if hook is ABSENT else Lookup.OPAQUE, ABSENT)


def _lookup_class(cls: type, name: str) -> Found:
    in_meta = find_in_mro(type(cls), name)
    if in_meta is not ABSENT and is_data_descriptor(in_meta):
        return describe(in_meta)
    value = find_in_mro(cls, name)
    if value is not ABSENT:
        return _unbound(value)
    if in_meta is not ABSENT:
        return describe(in_meta)
    return find_hook(cls, None)


_UNBOUND_THEMSELVES: Final = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    functools._lru_cache_wrapper,
)


def _unbound(value: Any) -> Found:
    # Reading through the class calls `__get__(None, cls)`: these return themselves.
    found = describe(value)
    selfless = (
        Lookup.METHOD,
        Lookup.NATIVE_GETTER,
        Lookup.SLOT,
        Lookup.PROPERTY,
        Lookup.CLASS_VALUE,
    )
    if found.how in selfless:
        return Found(Lookup.CLASS_VALUE, value)
    if type(value) in _UNBOUND_THEMSELVES:
        return Found(Lookup.CLASS_VALUE, value)
    return found


def _lookup_super(proxy: Any, name: str) -> Found:
    start: type = super.__dict__["__thisclass__"].__get__(proxy)
    receiver: type | None = super.__dict__["__self_class__"].__get__(proxy)
    if receiver is None or name == "__class__":
        return Found(Lookup.OPAQUE, ABSENT)
    value = find_after(receiver, start, name)
    return Found(Lookup.ABSENT, ABSENT) if value is ABSENT else describe(value)
