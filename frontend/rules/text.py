"""Owns what turning objects into text reads of them."""

from __future__ import annotations

import types
from typing import Any, Final

from magweld.frontend.catalogue import StopRecordingError
from magweld.frontend.monitor.code_table import Row
from magweld.frontend.monitor.observer import Observer
from magweld.frontend.rules.functions import register_function
from magweld.frontend.rules.protocols import read_value
from magweld.frontend.state.attributes import note_class
from magweld.frontend.state.contents import builtin_base, elements, read_all
from magweld.frontend.state.natives import is_buffer, scalar_base
from magweld.frontend.state.values import is_identity, is_scalar

FORMAT: Final = ("__format__", "__str__", "__repr__")
TEXT: Final = ("__str__", "__repr__")
REPRESENTATION: Final = ("__repr__",)
# FORMAT_VALUE, CONVERT_VALUE: what the conversion in the low bits asks for.
_CONVERSIONS: Final = (FORMAT, TEXT, REPRESENTATION, REPRESENTATION)
_HAS_SPECIFICATION: Final = 0x04


def format_value(observer: Observer, row: Row, stack: list[Any]) -> None:
    """FORMAT_VALUE: the value, above it the specification if there is one."""
    obj = stack[-2] if row.arg & _HAS_SPECIFICATION else stack[-1]
    read_text(observer, obj, _CONVERSIONS[row.arg & 0x03])


def format_simple(observer: Observer, row: Row, stack: list[Any]) -> None:
    """FORMAT_SIMPLE of 3.13: the value."""
    read_text(observer, stack[-1], FORMAT)


def format_with_spec(observer: Observer, row: Row, stack: list[Any]) -> None:
    """FORMAT_WITH_SPEC of 3.13: the value, above it the specification."""
    read_text(observer, stack[-2], FORMAT)


def convert_value(observer: Observer, row: Row, stack: list[Any]) -> None:
    """CONVERT_VALUE of 3.13: the value, of which text is made."""
    read_text(observer, stack[-1], _CONVERSIONS[row.arg])


def read_text(observer: Observer, obj: Any, methods: tuple[str, ...]) -> None:
    """Record what the text of an object is made of.

    Args:
        methods: Special methods that are asked in turn, each by the default of the
            one before.

    Raises:
        StopRecordingError: The text tells the value of a tensor, or an address.
    """
    if is_scalar(obj):
        return
    if observer.session.operators.is_tensor(type(obj)):
        raise StopRecordingError("tensor-value", "text of a tensor")
    graph = observer.session.graph
    for name in methods:
        method = note_class(graph, type(obj), name)
        if type(method) is types.FunctionType:
            graph.require(obj)
            register_function(observer.session, method)
            return
    observer.calls_native = True
    if is_identity(obj):
        return
    if builtin_base(obj) is not None:
        read_all(graph, obj)
        keys = list(dict.keys(obj)) if builtin_base(obj) is dict else []
        for item in (*keys, *elements(obj)):
            read_text(observer, item, REPRESENTATION)
    elif issubclass(type(obj), BaseException):
        _read_exception(observer, obj, methods)
    elif _has_plain_text(obj):
        read_value(observer, obj)
    else:
        raise StopRecordingError("opaque-value", type(obj).__qualname__)


def _has_plain_text(obj: Any) -> bool:
    kind = type(obj)
    if kind in (range, slice, types.MappingProxyType) or is_buffer(obj):
        return True
    return scalar_base(obj) is not None


def _read_exception(
    observer: Observer, obj: BaseException, methods: tuple[str, ...]
) -> None:
    if not observer.session.graph.require(obj).owned:
        raise StopRecordingError("opaque-value", type(obj).__qualname__)
    observer.session.graph.adopt(obj.args)
    for item in obj.args:
        read_text(observer, item, methods[-1:] if len(obj.args) > 1 else TEXT)


def read_format_arguments(observer: Observer, obj: Any) -> None:
    """Record what `text % obj` may make text of: `%s`, `%r` and numbers."""
    items = [obj]
    if builtin_base(obj) in (tuple, dict):
        read_all(observer.session.graph, obj)
        items = elements(obj)
    for item in items:
        read_text(observer, item, TEXT)
        read_text(observer, item, REPRESENTATION)
