"""Owns `with` and `match` statements, exceptions and the interpreter's own helpers."""

from __future__ import annotations

import sys
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.annotation import Entry, NativeCall
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules import class_checks
from magweld.frontend.rules.attributes import adopt_top, read_attribute
from magweld.frontend.rules.calls import call_class, call_object
from magweld.frontend.rules.functions import is_python, special_method
from magweld.frontend.rules.operators import read_length_of
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.contents import builtin_base, read_item
from magweld.frontend.state.lookup import Lookup
from magweld.frontend.state.mro import find_in_mro, is_class, is_immutable, mro


def before_with(observer: Observer, row: Row, stack: list[Any]) -> None:
    """BEFORE_WITH: pushes the bound `__exit__` and what `__enter__` returned."""
    for name in ("__enter__", "__exit__"):
        method = special_method(observer, stack[-1], name)
        if not is_python(method):
            _call_native(observer, method, name, stack[-1])
    observer.after = _adopt_exit


def _call_native(observer: Observer, method: Any, name: str, obj: Any) -> None:
    call = NativeCall(f"{type(obj).__qualname__}.{name}", (obj,), {})
    entry = _known_native(observer, method, call)
    if name == "__enter__":
        observer.session.apply(observer, entry, call)


def _known_native(observer: Observer, method: Any, call: NativeCall) -> Entry:
    entry = observer.session.annotations.find(method)
    if entry is None:
        raise StopRecordingError("native-call", call.name)
    return entry


# What LOAD_SPECIAL loads, by its argument; the others are of coroutines.
_SPECIAL: Final = ("__enter__", "__exit__")


def load_special(observer: Observer, row: Row, stack: list[Any]) -> None:
    """LOAD_SPECIAL of 3.14: pushes a method of the class, and its receiver if any."""
    if row.arg >= len(_SPECIAL):
        raise StopRecordingError("opcode", f"LOAD_SPECIAL {row.arg}")
    name, obj = _SPECIAL[row.arg], stack[-1]
    method = special_method(observer, obj, name)
    if not is_python(method):
        call = NativeCall(f"{type(obj).__qualname__}.{name}", (obj,), {})
        _known_native(observer, method, call)
    observer.after = adopt_top


def _adopt_exit(observer: Observer, stack: list[Any]) -> None:
    observer.session.graph.adopt(stack[-2])


def with_except_start(observer: Observer, row: Row, stack: list[Any]) -> None:
    """WITH_EXCEPT_START: calls the `__exit__` below, with the exception on top."""
    error = stack[-1]
    leave, receiver = _exit_below(stack, observer.session.reader.null)
    # What BEFORE_WITH of this run has left is known; otherwise it was before the run,
    # or LOAD_SPECIAL has found it in a class.
    if observer.session.graph.require(leave).external:
        args = (*receiver, type(error), error, None)
        call_object(observer, leave, args, {})


def _exit_below(stack: list[Any], null: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the `__exit__` that WITH_EXCEPT_START calls, and its receiver if any."""
    if not _EXIT_HAS_RECEIVER:
        return stack[-4], ()
    leave, receiver = stack[-5:-3]
    return leave, () if receiver is null else (receiver,)


_EXIT_HAS_RECEIVER: Final = sys.version_info >= (3, 14)


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
    """CALL_INTRINSIC_1 of 3.12 at the end of a generator."""
    if row.arg != _INTRINSIC_STOP_ITERATION:
        raise StopRecordingError("opcode", f"CALL_INTRINSIC_1 {row.arg}")


# Include/internal/pycore_intrinsics.h of CPython 3.12.
_INTRINSIC_STOP_ITERATION: Final = 3


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
