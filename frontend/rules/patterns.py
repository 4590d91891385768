"""Owns the instructions of `match` statements."""

from __future__ import annotations

from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import class_checks
from magweld.frontend.rules.attributes import adopt_top, read_attribute
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.operators import read_length_of
from magweld.frontend.state.contents import builtin_base, read_item
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.mro import find_in_mro, is_class, is_immutable, mro

_MATCHES_SELF: Final = 1 << 22  # Py_TPFLAGS of classes whose first pattern is itself


def get_length(observer: Observer, row: Row, stack: list[Any]) -> None:
    """GET_LEN: pushes the length of the sequence on top."""
    read_length_of(observer, stack[-1])


def match_shape(observer: Observer, row: Row, stack: list[Any]) -> None:
    """MATCH_SEQUENCE and MATCH_MAPPING: a class can be registered as such."""
    if not is_immutable(type(stack[-1])):
        class_checks.read_registrations(observer.session.graph)


def match_keys(observer: Observer, row: Row, stack: list[Any]) -> None:
    """MATCH_KEYS: looks up a tuple of keys in a mapping."""
    subject, keys = stack[-2], stack[-1]
    getter = special_method(observer, subject, "get")
    if not is_python(getter):
        if builtin_base(subject) is not dict:
            name = type(subject).__qualname__
            raise StopRecordingError("native-operator", f"match of {name}")
        for key in keys:
            read_item(observer.session.graph, subject, key)
    observer.after = adopt_top


def match_class(observer: Observer, row: Row, stack: list[Any]) -> None:
    """MATCH_CLASS: an instance check, then attributes by position and by name."""
    subject, cls, names = stack[-3], stack[-2], stack[-1]
    if not is_class(cls):
        raise StopRecordingError("native-operator", "match of no class")
    class_checks.is_instance(observer, NativeCall("isinstance", (subject, cls), {}))
    # A metaclass decides by its own `__instancecheck__`, after this instruction.
    if cls in mro(type(subject)):
        for name in (*_positional(observer, subject, cls, row.arg), *names):
            found = read_attribute(observer, subject, name)
            if observer.awaits_operator or found.how is Lookup.OPAQUE:
                raise StopRecordingError("native-attribute", f"match of {name}")
    elif is_python(find_in_mro(type(cls), "__instancecheck__")):
        raise StopRecordingError("native-operator", f"match of {cls.__qualname__}")
    observer.after = adopt_top


def _positional(
    observer: Observer, subject: Any, cls: type, count: int
) -> tuple[str, ...]:
    if not count:
        return ()
    if cls.__flags__ & _MATCHES_SELF:
        return ()
    read_attribute(observer, cls, "__match_args__")
    names = find_in_mro(cls, "__match_args__")
    return names[:count] if type(names) is tuple else ()
