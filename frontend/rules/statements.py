"""Owns `with` and `match` statements, exceptions and the interpreter's own helpers."""

from __future__ import annotations

from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import class_checks
from magweld.frontend.rules.attributes import adopt_top, read_attribute
from magweld.frontend.rules.calls import call_class, call_object
from magweld.frontend.rules.displays import list_to_tuple
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.operators import read_length_of
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.contents import builtin_base, read_item
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.mro import find_in_mro, is_class, is_immutable, mro
from magweld.frontend.state.values import is_scalar


def before_with(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BEFORE_WITH: pushes the bound `__exit__` and what `__enter__` returned."""
    for name in ("__enter__", "__exit__"):
        method = special_method(observer, stack[-1], name)
        if not is_python(method):
            _call_native(observer, method, name, stack[-1])
    observer.after = _adopt_exit


def _call_native(observer: Observer, method: Any, name: str, obj: Any) -> None:
    entry = observer.session.annotations.find(method)
    call = NativeCall(f"{type(obj).__qualname__}.{name}", (obj,), {})
    if entry is None:
        raise StopRecordingError("native-call", call.name)
    if name == "__enter__":
        observer.session.apply(observer, entry, call)


def _adopt_exit(observer: Observer, stack: list[Any]) -> None:
    observer.session.graph.adopt(stack[-2])


def with_except_start(observer: Observer, row: Row, stack: list[Any]) -> None:
    """WITH_EXCEPT_START: calls the `__exit__` below, with the exception on top."""
    leave, error = stack[-4], stack[-1]
    # What BEFORE_WITH of this run has left is known; otherwise it was before the run.
    if observer.session.graph.require(leave).external:
        call_object(observer, leave, (type(error), error, None), {})


def push_exc_info(observer: Observer, row: Row, stack: list[Any]) -> None:
    """PUSH_EXC_INFO: an exception that native code raised is new."""
    observer.session.graph.adopt(stack[-1])


def check_exc_match(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CHECK_EXC_MATCH: a tuple of classes is searched."""
    if type(stack[-1]) is tuple:
        read_value(observer, stack[-1])


def raise_varargs(observer: Observer, row: Row, stack: list[Any]) -> None:
    """RAISE_VARARGS: a class is instantiated."""
    if row.arg and is_class(stack[-row.arg]):
        call_class(observer, stack[-row.arg], (), {})
        observer.after = None


def call_intrinsic(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CALL_INTRINSIC_1 of 3.12: unary plus, list to tuple, generator exits."""
    if row.arg == _INTRINSIC_LIST_TO_TUPLE:
        list_to_tuple(observer, row, stack)
    elif row.arg == _INTRINSIC_UNARY_POSITIVE:
        if not is_scalar(stack[-1]):
            raise StopRecordingError("native-operator", "unary plus")
    elif row.arg != _INTRINSIC_STOP_ITERATION:
        raise StopRecordingError("opcode", f"CALL_INTRINSIC_1 {row.arg}")


# Include/internal/pycore_intrinsics.h of CPython 3.12.
_INTRINSIC_STOP_ITERATION: Final = 3
_INTRINSIC_UNARY_POSITIVE: Final = 5
_INTRINSIC_LIST_TO_TUPLE: Final = 6


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
